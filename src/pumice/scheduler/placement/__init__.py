"""What actions that place share: a job's pending tasks, runs of equal tasks, HyperNode domains, and the room to come."""
