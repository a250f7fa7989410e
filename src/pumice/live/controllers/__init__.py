"""Volcano's controllers on a live cluster: caches feed them, and their writes are sent to the API server."""
