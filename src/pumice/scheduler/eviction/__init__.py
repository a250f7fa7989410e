"""Making room by eviction: which tasks may be evicted, on which nodes that helps, in which order, and the search of preempt and reclaim.

A task is evicted only inside a statement that places the beneficiary.
"""
