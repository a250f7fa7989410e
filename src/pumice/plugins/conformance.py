"""conformance: what keeps the cluster alive is nobody's victim."""

from __future__ import annotations

from typing import Any

from pumice.framework.plugin import Plugin
from pumice.model.task import Task

CRITICAL = ("system-cluster-critical", "system-node-critical")


class Conformance(Plugin):
    name = "conformance"

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task]:
        return [t for t in candidates if t.template.spec.priority_class_name not in CRITICAL and t.namespace != "kube-system"]

    reclaimable = preemptable
    unified_evictable = preemptable

    def evictor_kind(self, evictor: Task) -> None:
        """All are alike."""
