"""Simulated kubelets: pods on nodes start, run and end as stages declare, and nodes report ready and renew their leases."""
