"""Why jobs wait, each in one line: as an event of its PodGroup and, in few words, as a metric.

One job is asked about every few seconds, between two cycles, once it has waited for a while, and again much later: so it costs a cycle
now and then, however many wait, and a small part of the time where a cycle takes long. Who can never run is told so. Conditions keep
Volcano's and kube-scheduler's texts, which others read. A fault of ours in asking is told once, and that job gets no line.
"""

from __future__ import annotations

import logging
from collections import Counter

from pumice.client.events import EventRecord
from pumice.live.lifecycle import FaultLog
from pumice.live.scheduler.effects import about_group
from pumice.live.scheduler.loop import Scheduler
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job, is_shadow

log = logging.getLogger(__name__)
PERIOD_S = 5.0
PART = 0.005  #: of the time; the cycle after it costs as much again, since it cannot recall the last one
GRACE_S = 10.0  #: of waiting, before anybody wonders
ASKED_AGAIN_S = 600.0


class Headlines:
    """Whoever asks, between cycles, why jobs wait, and tells it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._faults = FaultLog(log)
        self._because: dict[str, tuple[float, str]] = {}  #: by job that waits: when it was asked about, and what was found

    async def run(self) -> None:
        clock, pause_s = self._scheduler.clock, PERIOD_S
        while True:
            await clock.sleep(pause_s)
            began = clock.now()
            for event in await self._scheduler.look(self._of_the_next):
                self._scheduler.tell(event)
            pause_s = max(PERIOD_S, (clock.now() - began) / PART)

    def _of_the_next(self, cluster: Cluster) -> list[EventRecord]:
        now = self._scheduler.clock.now()
        self._because = {uid: told for uid, told in self._because.items() if uid in cluster.waiting}
        job = min((job for job in cluster.waiting.values() if self._is_due(job, now)), key=self._asked_at, default=None)
        found = [] if job is None else self._contained(cluster, job, now)
        counts = Counter(because for _, because in self._because.values() if because)
        self._scheduler.metrics.waiting_because.replace({(because,): count for because, count in counts.items()})
        return found

    def _contained(self, cluster: Cluster, job: Job, now: float) -> list[EventRecord]:
        try:
            return self._asked(cluster, job, now)
        except Exception as error:
            self._because[job.uid] = now, ""
            self._faults.exception(error, "why PodGroup %s waits could not be found out", job.uid)
            return []

    def _asked(self, cluster: Cluster, job: Job, now: float) -> list[EventRecord]:
        from pumice.answers.fits import fits  # answers are loaded once somebody waits long enough
        from pumice.answers.why import why

        policy, subject = self._scheduler.policy, f"podgroup/{job.uid}"
        headline = why(cluster, policy, now, subject).headline
        self._because[job.uid] = now, headline.because if headline is not None else ""
        if headline is None:
            return []
        fit = fits(cluster, policy, now, subject)
        if fit.bound is not None:
            return [EventRecord(about_group(job), "Warning", "NeverFits", fit.line)]
        return [EventRecord(about_group(job), "Normal", "Waits", headline.text)]

    def _is_due(self, job: Job, now: float) -> bool:
        has_group = job.group is not None and not is_shadow(job.group)
        return has_group and now - job.created >= GRACE_S and now - self._asked_at(job) >= ASKED_AGAIN_S

    def _asked_at(self, job: Job) -> float:
        return self._because.get(job.uid, (0.0, ""))[0]
