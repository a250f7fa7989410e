"""Benchmarks: `python -m bench` prints every figure beside its budget, and writes them as JSON."""
