"""One evaluation for all tasks that the rules cannot tell apart. The last used are kept, so that ten thousand different jobs need no more
memory than some hundred.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import Generic

from pumice.scheduler.engine.best_by_bounds import BestByBounds
from pumice.scheduler.engine.evaluation import Evaluation, T
from pumice.scheduler.engine.rules import PLAINLY, Asking, Filter, Rule, Scorer
from pumice.scheduler.engine.shared_answers import Common
from pumice.scheduler.engine.view import SharedScores
from pumice.scheduler.model import Cluster, Task, Template

KEPT_CELLS = 1_000_000  #: evaluations times nodes
KEPT_AT_LEAST = 64
LASTING_CELLS = 100_000  #: the same for evaluations that are left for later sessions


class LastUsed(Generic[T]):
    """The values that were used last, by key."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.kept: dict[Hashable, T] = {}  #: in the order of their last use

    def find(self, key: Hashable) -> T | None:
        found = self.kept.pop(key, None)
        if found is not None:
            self.kept[key] = found
        return found

    def take(self, key: Hashable) -> T | None:
        """Remove the value of a key, and return it; None if there is none."""
        return self.kept.pop(key, None)

    def keep(self, key: Hashable, value: T) -> T:
        self.kept[key] = value
        if len(self.kept) > self._room:
            del self.kept[next(iter(self.kept))]
        return value


class Evaluations:
    """The evaluations used last, by kind of task. They hold as long as the rules do."""

    def __init__(
        self, cluster: Cluster, filters: Sequence[Filter], scorers: Sequence[Scorer], asking: Asking = PLAINLY, *, shortcuts: bool = True
    ) -> None:
        """`shortcuts`: keep evaluations, and look for best nodes by bounds. Without it each task is evaluated anew."""
        self._cluster = cluster
        self._filters = filters
        self._scorers = scorers
        self._asking = asking
        self._shortcuts = shortcuts
        self._shared = SharedScores(cluster)
        self._bounds = cache(partial(BestByBounds, cluster))
        self._tellers = [rule for rule in (*filters, *scorers) if type(rule).key is not Rule.key]
        self._keys: dict[Template, list[Callable[[Task], Hashable]]] = {}  #: by template: what tells its tasks apart
        self._room = max(KEPT_AT_LEAST, KEPT_CELLS // max(len(cluster.nodes), 1))
        lasting = LASTING_CELLS // max(len(cluster.nodes), 1)
        self._most_keys = max(KEPT_AT_LEAST, lasting)
        self._lasting: LastUsed[Evaluation] = LastUsed(lasting)  #: left by earlier sessions
        self._kept: LastUsed[Evaluation] = LastUsed(self._room)
        self._commons: LastUsed[Common] = LastUsed(self._room)

    def key(self, task: Task) -> tuple[Hashable, ...]:
        """The kind of a task: equal for tasks that the rules cannot tell apart."""
        template = task.template
        keys = self._keys.get(template)
        if keys is None:
            if len(self._keys) >= self._most_keys:
                self._keys.clear()
            keys = self._keys[template] = list(dict.fromkeys(rule.key for rule in self._tellers if rule.tells_apart(template)))
        return (template, *[key(task) for key in keys]) if keys else (template,)

    def of(self, task: Task) -> Evaluation:
        """The evaluation for a task, as it was when last refreshed."""
        key = self.key(task)
        if not self._shortcuts:
            return Evaluation(task, Common(task, self._cluster, self._filters, self._scorers, self._asking, SharedScores(self._cluster)))
        return self._kept.find(key) or self._kept.keep(key, self._lasting.take(key) or Evaluation(task, self._common(task, key)))

    def lasting(self, task: Task) -> Evaluation | None:
        """The evaluation for a task that an earlier session has left."""
        return self._lasting.find(self.key(task))

    def keep_lasting(self) -> None:
        """Keep only the evaluations that later sessions may use. Called at the end of a session, and when claims change in it."""
        for key, evaluation in self._kept.kept.items():
            if evaluation.lasts:
                self._lasting.keep(key, evaluation)
        self._kept = LastUsed(self._room)
        self._commons = LastUsed(self._room)

    def _common(self, task: Task, key: tuple[Hashable, ...]) -> Common:
        alike = (task.template.without_amounts(), *key[1:])
        return self._commons.find(alike) or self._commons.keep(
            alike, Common(task, self._cluster, self._filters, self._scorers, self._asking, self._shared, self._bounds)
        )
