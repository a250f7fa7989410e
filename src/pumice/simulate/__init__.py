"""Workloads in files, decided by the scheduler that runs in production, on a simulated clock.

`world.py` is the heap of events; one file reads one format (`formats/`); `measures.py` counts what came out, `outputs.py` writes it.
"""
