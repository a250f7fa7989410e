"""The embedded control plane: API server, nodes, the lives of pods, the clock. It needs nothing of the scheduler."""
