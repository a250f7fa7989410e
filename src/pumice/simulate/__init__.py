"""Workloads in files, decided by the scheduler that runs in production, on a simulated clock.

`simulated_cluster.py` is the heap of events; one file reads one format (`formats/`); `record.py` writes down what happens,
`measures.py` counts what came out, `outputs.py` writes it. `simulate()` is the same for notebooks.
"""

from pumice.simulate.notebook import Simulation, compare, simulate

__all__ = ["Simulation", "compare", "simulate"]
