"""Simulations in which every object is real: the embedded store, admission, controllers, simulated kubelets, and the live scheduler.

Scenario, measures and jobs are those of `pumice.simulate`; time is virtual, and there is no HTTP. `whole_cluster.py` puts the parts
together; `jobs.py` plays the users, who submit jobs, and records what becomes of the jobs.
"""

from pumice.live.whole.whole_cluster import ComparedWholeRun, play

__all__ = ["ComparedWholeRun", "play"]
