"""Simulated kubelets: pods on nodes start, run and end as stages say, and nodes say that they live."""
