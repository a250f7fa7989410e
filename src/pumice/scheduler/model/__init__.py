"""What the scheduler thinks in: resources, tasks, jobs, queues, nodes, and the cluster that keeps them.

State is kept, never rebuilt: `Cluster.put` and `Cluster.remove` take events, `Cluster.move` changes a task's status and place,
and every sum is kept up to date on the way.
"""
