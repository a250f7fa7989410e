"""Volcano's controllers: for Jobs, JobFlows, CronJobs, PodGroups, queues, HyperNodes and finished jobs."""
