"""TaintToleration: nodes whose taints the pod does not tolerate are refused, or liked less if the taint only prefers so."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pumice.api.core import Taint
from pumice.api.pod import Toleration
from pumice.api.selectors import integer
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View, to_hundred
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, allows, always
from pumice.scheduler.model import Cluster, Nodes, Task
from pumice.scheduler.plugins.kube import KubePlugin

REFUSAL = Reason("node(s) had untolerated taint(s)", final=True)
HARD = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint, *, numbers: bool = False) -> bool:
    """`numbers`: the operators that compare numbers count, which in Kubernetes is a gate, off by default."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case None | "" | "Equal":
            return (toleration.value or "") == (taint.value or "")
        case "Exists":
            return True
        case "Gt" | "Lt" if numbers:
            mine, theirs = integer(toleration.value), integer(taint.value)
            if mine is None or theirs is None:
                return False
            return theirs > mine if toleration.operator == "Gt" else theirs < mine
    return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration], table: Nodes) -> bool:
    return any(tolerates(toleration, taint, numbers=table.numeric_taints) for toleration in tolerations)


class TaintFilter(Filter):
    name = "TaintToleration"
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        return tuple(task.template.spec.tolerations or ())

    def refuse(self, tolerations: Any, nodes: View) -> Sequence[Refused]:
        codes, lists = nodes.table.taint_codes()
        bad = [any(taint.effect in HARD and not tolerated(taint, tolerations, nodes.table) for taint in taints) for taints in lists]
        return [Refused(nodes.of(np.array(bad, bool)[codes]), REFUSAL)] if any(bad) else []  # type: ignore[arg-type]


class TaintScorer(Scorer):
    """Prefers nodes with fewer PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintToleration"
    reach = Reach.STATIC
    reads_amounts = False
    normalizes = True

    def prepare(self, task: Task) -> Any:
        return tuple(t for t in task.template.spec.tolerations or () if not t.effect or t.effect == "PreferNoSchedule")

    def score(self, tolerations: Any, nodes: View) -> Scores:
        codes, lists = nodes.table.taint_codes()
        soft = [[taint for taint in taints if taint.effect == "PreferNoSchedule"] for taints in lists]
        counts = [sum(not tolerated(taint, tolerations, nodes.table) for taint in taints) for taints in soft]
        return nodes.of(np.array(counts, float)[codes]) if any(counts) else np.zeros(len(nodes))  # type: ignore[return-value]

    def normalize(self, scores: Scores) -> Scores:
        return to_hundred(scores, reverse=True)


def _tolerated(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return allows(cluster, event, TaintFilter(), task)


PLUGIN = KubePlugin(
    "TaintToleration",
    "filter preScore score",
    weight=3,
    filters=lambda args, cluster: [TaintFilter()],
    scorer=lambda args, cluster: TaintScorer(),
    hints={EventKind.NODE_ADDED: _tolerated, EventKind.NODE_TAINTS: _tolerated, EventKind.OWN_TOLERATIONS: always},
)
