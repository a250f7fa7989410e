"""Clusters read from files: objects with what they imply, workloads as the pods they will have, recordings of what a scheduler saw."""
