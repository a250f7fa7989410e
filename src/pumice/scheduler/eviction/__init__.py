"""Making room by eviction: who may go, where that would help, who goes first, and the search that preempt and reclaim share.

Nothing is evicted but inside a statement that places the beneficiary.
"""
