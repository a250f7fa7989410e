"""The orders of a session: which queue, job, sub-job and task is served first, and whose tasks are evicted first. Plugins decide, then age.

An order is a sort key where a key is possible. In a hierarchy queues have none: two of them are compared where their paths part.
"""

from collections.abc import Callable, Iterable
from functools import cached_property, cmp_to_key
from typing import Any

from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.model import Cluster, Job, Queue, SubJob, Task

OrderKey = tuple[Any, ...]


class Orders:
    """The orders in which a session serves, made of what its plugins answer."""

    def __init__(self, cluster: Cluster, plugins: OpenPlugins) -> None:
        self._cluster = cluster
        self._plugins = plugins

    def job_key(self, job: Job) -> OrderKey:
        return (*self.job_plugin_key(job), job.created, job.uid)

    def job_plugin_key(self, job: Job) -> OrderKey:
        """The part of a job's sort key that plugins decide, without age and name."""
        return tuple([method(job) for method in self._plugins.flat["job_order"]])

    def task_key(self, task: Task) -> OrderKey:
        return (*[method(task) for method in self._plugins.flat["task_order"]], task.index, task.created, task.number)

    def sub_job_key(self, subjob: SubJob) -> OrderKey:
        return (*[method(subjob) for method in self._plugins.flat["sub_job_order"]], subjob.match_index, subjob.uid)

    def queue_key(self, queue: Queue) -> OrderKey:
        return (*[method(queue) for method in self._plugins.flat["queue_order"]], queue.created, queue.name)

    @property
    def queues_need_comparing(self) -> bool:
        """Whether queues cannot be ordered by a key: in a hierarchy two queues are compared where their paths part."""
        return bool(self._plugins.flat["compare_queues"])

    @property
    def compares_by_state(self) -> bool:
        """Whether queues that need comparing are compared only by the kept state, which no refused try changes."""
        plugins = [method.__self__ for method in self._plugins.flat["compare_queues"]]  # type: ignore[attr-defined]
        return all(plugin.compares_by_state for plugin in plugins)

    @cached_property
    def _queue_rules(self) -> list[tuple[str, Callable[..., Any]]]:
        rules = self._plugins.in_order("compare_queues", "queue_order")
        comparing = {method.__self__ for hook, method in rules if hook == "compare_queues"}  # type: ignore[attr-defined]
        return [(hook, method) for hook, method in rules if hook == "compare_queues" or method.__self__ not in comparing]  # type: ignore[attr-defined]

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """Whether the left queue is served first. The first plugin that does not rank them equal decides, by a comparison or by keys."""
        for hook, method in self._queue_rules:
            if hook == "compare_queues":
                order = method(left, right)
            else:
                one, other = method(left), method(right)
                order = (one > other) - (one < other)
            if order:
                return bool(order < 0)
        return (left.created, left.name) < (right.created, right.name)

    def in_queue_order(self, queues: Iterable[Queue]) -> list[Queue]:
        """The queues sorted, the queue that is served first in front. Where they are compared, their order is that among all queues with
        jobs, and depends not on which of them are asked for: where branches are equal there may be circles of queues."""
        if not self.queues_need_comparing:
            return sorted(queues, key=self.queue_key)
        wanted = set(queues)

        def compare(left: Queue, right: Queue) -> int:
            return -1 if self.queue_before(left, right) else 1

        if len(wanted) < 2:
            return [*wanted]
        existing = (queue for queue in self._cluster.queues.values() if queue.exists and queue.jobs)
        by_age = sorted(existing, key=lambda queue: (queue.created, queue.name))
        return [queue for queue in sorted(by_age, key=cmp_to_key(compare)) if queue in wanted]

    def victim_queue_before(self, left: Queue, right: Queue, preemptor: Queue) -> bool:
        """Whether the left queue's tasks are evicted first."""
        order = self._plugins.questions["victim_queue_order"](left, right, preemptor)
        return order < 0 if order else self.queue_before(right, left)
