"""Filters and scorers of kube-scheduler: which nodes may take a pod, and how good each is."""
