"""The model of the scheduler: resources, tasks, jobs, queues, nodes, and the cluster that keeps them.

State is kept, never rebuilt: `Cluster.put` and `Cluster.remove` take in events, `Cluster.move` changes a task's status and place,
and all of them keep every sum up to date.
"""
