"""Kubernetes' Job: when its next pod is made, which failures count, and how it ends."""
