"""Kubernetes' own controllers, as far as a cluster for batch work needs them: workloads (ReplicaSet, Deployment, StatefulSet, DaemonSet,
Job), nodes, volumes, device claims, quotas, budgets, endpoints, service accounts.

Workloads make pods from templates, count them in their status the way kubectl reads it, and roll changes out within their limits.
They adopt pods and ReplicaSets that match their selector and have no controller, and release those that no longer match.
"""
