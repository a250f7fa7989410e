"""Now and then it is forecast when a few jobs start that wait, and seen when they do: `pumice eta` corrects its P90 by that.

Between two cycles one rollout is made, and a small part of the time goes into them. Clusters in which one could take long are left alone. A
fault of ours in it is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from math import inf

from pumice.live.lifecycle import FaultLog
from pumice.live.scheduler.loop import Scheduler
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job

log = logging.getLogger(__name__)
PERIOD_S = 600.0
BREATH_S = 1.0  #: from one rollout to the next
PART = 0.005  #: of the time
LARGEST = 5_000  #: pods and nodes; a rollout takes 0.3 s there


class Forecasts:
    """Whoever makes them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._faults = FaultLog(log)

    async def run(self) -> None:
        while True:
            await self._scheduler.clock.sleep(PERIOD_S)
            try:
                await self._forecast()
            except Exception as error:
                self._faults.exception(error, "it could not be forecast when jobs start")

    async def _forecast(self) -> None:
        clock, look = self._scheduler.clock, self._scheduler.look
        began = clock.now()
        if not (wanted := await look(_who_is_asked_about)):
            return
        from pumice.answers.forecast import ROLLOUTS, Forecast  # a simulator is not for those where nobody waits

        def rollout(number: int, cluster: Cluster) -> dict[str, float]:
            return Forecast(cluster, self._scheduler.policy, clock.now()).rollout(number, set(wanted))

        rollouts = list[dict[str, float]]()
        for number in range(ROLLOUTS):
            at = clock.now()
            rollouts.append(await look(partial(rollout, number)))
            await clock.sleep(max(BREATH_S, (clock.now() - at) / PART))
        await look(partial(_keep, began, {job: sorted(each.get(job, inf) - began for each in rollouts) for job in wanted}))


def _who_is_asked_about(cluster: Cluster) -> Sequence[str]:
    """Some of those that wait as a whole and were not asked about before. What became of the others is seen."""
    from pumice.answers.past_forecasts import past_forecasts, some_of  # answers are loaded when they are due

    known = past_forecasts(cluster)
    for each in [each for each in known if each.started is None]:
        job = cluster.jobs.get(each.job)
        if job is None:
            known.forget(each.job)
        elif (started := _started(job)) is not None:
            known.started(each.job, started)
    if len(cluster.tasks) + len(cluster.nodes) > LARGEST:
        return []
    asked = {each.job for each in known}
    waiting = [uid for uid, job in {**cluster.waiting, **cluster.not_enqueued}.items() if job.group is not None and _started(job) is None]
    return some_of([uid for uid in waiting if uid not in asked])


def _started(job: Job) -> float | None:
    """When the first of its pods got a node."""
    found = (task.started if task.placed_at is None else task.placed_at for task in job.tasks.values())
    return min((at for at in found if at is not None), default=None)


def _keep(began: float, starts: dict[str, list[float]], cluster: Cluster) -> None:
    from pumice.answers.past_forecasts import past_forecasts

    past_forecasts(cluster).made(began, {uid: found for uid, found in starts.items() if uid in cluster.jobs})
