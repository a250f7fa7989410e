"""shortest-first: the job that is expected to run for the shortest time goes first; those of which nothing is known go last.

What is expected stands in the annotation pumice.io/estimate of the PodGroup, a duration such as 1h30m.
"""

from math import inf

from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Job


class ShortestFirst(Plugin):
    name = "shortest-first"
    tunable = True
    reads_only_state = True
    plain_in_line = True

    def class_key(self, job: Job) -> float | None:
        return job.estimate

    def job_order(self, job: Job) -> float:
        return inf if job.estimate is None else job.estimate

    order_of_newcomer = job_order
