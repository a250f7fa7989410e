"""One evaluation for all tasks that the rules cannot tell apart. The last used are kept, so that ten thousand different jobs need no more
memory than some hundred.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pumice.engine.evaluation import Evaluation
from pumice.engine.rules import PLAINLY, Asking, Filter, Rule, Scorer
from pumice.model.cluster import Cluster
from pumice.model.task import Task

KEPT_CELLS = 1_000_000  #: evaluations times nodes
KEPT_AT_LEAST = 64


class Evaluations:
    """See the module. For as long as its rules live."""

    def __init__(self, cluster: Cluster, filters: Sequence[Filter], scorers: Sequence[Scorer], asking: Asking = PLAINLY) -> None:
        self._cluster = cluster
        self._filters = filters
        self._scorers = scorers
        self._asking = asking
        self._tellers = [rule.key for rule in (*filters, *scorers) if type(rule).key is not Rule.key]
        self._kept: dict[Hashable, Evaluation] = {}  #: in the order of their last use
        self._room = max(KEPT_AT_LEAST, KEPT_CELLS // max(len(cluster.nodes), 1))

    def of(self, task: Task) -> Evaluation:
        """The evaluation for a task, as it was when last refreshed."""
        key = (task.template, *[tell(task) for tell in self._tellers])
        found = self._kept.pop(key, None) or Evaluation(task, self._cluster, self._filters, self._scorers, self._asking)
        self._kept[key] = found
        if len(self._kept) > self._room:
            del self._kept[next(iter(self._kept))]
        return found
