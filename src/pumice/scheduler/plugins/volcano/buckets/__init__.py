"""task-topology's model: which roles of a job attract or avoid each other, and the buckets of tasks that are placed together."""
