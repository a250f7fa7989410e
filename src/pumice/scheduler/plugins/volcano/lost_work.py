"""lost-work: of those who may be evicted, first whoever loses the least work.

What a pod loses are its GPUs times the seconds since its last checkpoint. It makes one every `pumice.io/checkpoint-every` of its PodGroup;
without that annotation none. Nobody is evicted before `minimumRunTime`, nor a job more than `evictionsPerHour` times in an hour
(0: as often as others want).
"""

from typing import Annotated, Any

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.framework.eviction_cost import at_risk_s, gpus, ran_s
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import OneOf, Range, Task, status

HOUR_S = 3600.0


class LostWorkArgs(Struct):
    minimum_run_time: Annotated[Duration, OneOf("5m", "10m", "30m", "1h")] = field(name="minimumRunTime", default=Duration(0))
    evictions_per_hour: Annotated[int, Range(0, 10)] = field(name="evictionsPerHour", default=0)


class LostWork(Plugin):
    name = "lost-work"
    tunable = True
    Args = LostWorkArgs

    def open(self, session: Session) -> None:
        super().open(session)
        past: dict[str, tuple[float, ...]] = session.memory(self.name)
        self._evicted = {uid: recent for uid, times in past.items() if (recent := tuple(at for at in times if at > session.now - HOUR_S))}

    def task_order(self, task: Task) -> float:
        """The order of service: a task that would lose more work is served first, and so evicted last."""
        if not task.status & status.PREEMPTABLE:
            return 0.0
        return -at_risk_s(task, self.session.now) * gpus(task, self.session.cluster.dimensions)

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task]:
        least = self.args.minimum_run_time
        return [task for task in candidates if ran_s(task, self.session.now) >= least and not self._has_given_enough(task)]

    reclaimable = preemptable
    unified_evictable = preemptable

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""

    def close(self, session: Session) -> None:
        """Note which jobs were evicted. A job of which several pods go at once counts as evicted once."""
        for uid in {eviction.task.job.uid for eviction in session.decisions.evictions if eviction.task.job is not None}:
            self._evicted[uid] = (*self._evicted.get(uid, ()), session.now)
        session.cluster.memory[self.name] = self._evicted

    def _has_given_enough(self, task: Task) -> bool:
        most = self.args.evictions_per_hour
        return most > 0 and task.job is not None and len(self._evicted.get(task.job.uid, ())) >= most
