"""Kubernetes' own workloads, as far as a cluster for batch work needs them: ReplicaSet, Deployment, StatefulSet, DaemonSet, Job.

They make pods from templates, count them in their status the way kubectl reads it, and roll changes out within their limits.
Pods and ReplicaSets that fit their selector and have no controller they adopt; those that fit no more they let go.
"""
