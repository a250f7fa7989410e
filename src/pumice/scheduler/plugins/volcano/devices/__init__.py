"""Shared accelerator cards: what a node has, what its pods hold of it, and which cards a pod would get. One file a kind of device.

A pool's state is what stands on the node, never a count kept beside it: so whatever is undone is undone here too.
"""
