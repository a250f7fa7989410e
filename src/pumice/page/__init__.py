"""The page: the cluster, its queues and jobs, and what the scheduler decides, in a browser. Its charts are the reports' as well."""
