"""conformance: what keeps the cluster alive is nobody's victim."""

from typing import Any

from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Task


class Conformance(Plugin):
    name = "conformance"
    reads_only_state = True

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task]:
        critical = {template for template in {task.template for task in candidates} if template.is_critical}
        return [task for task in candidates if task.template not in critical] if critical else candidates

    reclaimable = preemptable
    unified_evictable = preemptable

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""
