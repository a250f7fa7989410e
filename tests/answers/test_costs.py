"""What an answer costs, counted in work: it does not grow with what the answer is not about."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.answers import POLICY, full
from bench.sessions import NOW
from pumice.answers import Why, why
from pumice.scheduler.model import Cluster, Job
from tests.calls import calls


class Watched(dict[str, Job]):
    """The jobs of a queue, which note how often somebody looks through all of them."""

    looks = 0

    def values(self) -> Any:
        self.looks += 1
        return super().values()


def asked(cluster: Cluster) -> Why:
    return why(cluster, POLICY, NOW, "job/wait-3")


def test_why_a_gang_waits_does_not_cost_more_with_more_nodes_or_more_jobs_that_run() -> None:
    counts = []
    for nodes in (10, 40):
        cluster = full(nodes)
        queue = cluster.queues["default"]
        queue.jobs = watched = Watched(queue.jobs)
        answer = asked(cluster)
        assert answer.headline is not None and answer.line.endswith("are held or promised; it asks for 40 (40 short)")
        assert not watched.looks, "nothing is promised to anybody: nobody need be asked"
        counts.append(calls(partial(asked, cluster)))
    assert counts[0] == counts[1]
