"""Volcano's controllers: Jobs, JobFlows, CronJobs, PodGroups, queues, HyperNodes, finished jobs."""
