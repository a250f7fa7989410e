"""Simulations in which every object is real: the embedded store, admission, controllers, simulated kubelets, and the live scheduler.

The same scenario, the same measures and jobs as `pumice.simulate`, in virtual time and without HTTP. `whole_cluster.py` brings them
together, `jobs.py` plays the users whose jobs come, and notes what becomes of them.
"""

from pumice.live.whole.whole_cluster import ComparedWholeRun, play

__all__ = ["ComparedWholeRun", "play"]
