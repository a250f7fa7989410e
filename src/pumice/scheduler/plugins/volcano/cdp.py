"""cdp: a pod that has just started is left in peace for its cooldown time.

The time is a label or annotation of the pod (`volcano.sh/cooldown-time: 10m`) and counts from when the pod was scheduled.
"""

from typing import Any

from pumice.api import duration
from pumice.api.annotations import COOLDOWN_TIME
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Task, status


class CooldownProtection(Plugin):
    name = "cdp"

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not self._protected(task)]

    reclaimable = preemptable

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""

    def _protected(self, task: Task) -> bool:
        text = task.labels.get(COOLDOWN_TIME, task.annotations.get(COOLDOWN_TIME))
        if text is None or task.placed_at is None or task.status != status.RUNNING:
            return False
        try:
            return task.placed_at + duration(text) > self.session.now
        except ValueError:
            return False
