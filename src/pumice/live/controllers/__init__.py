"""Volcano's controllers on a live cluster: caches feed them, and what they want written is written."""
