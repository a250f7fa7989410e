"""The tasks that may be evicted from a domain, as columns with one entry per task, kept from gang to gang.

Tasks are in the order of their jobs' names, and within a job the least important first. When a task of a job has moved, it is asked anew
which tasks of the job may go, which are surplus, and how the job ranks. The other jobs are not looked at again.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from pumice.scheduler.eviction.candidate_nodes import Eligible
from pumice.scheduler.eviction.gang_bundles import safe_ones
from pumice.scheduler.eviction.gang_offer import Columns, Offer, Ranks, importance
from pumice.scheduler.model import Cluster, Job, Mask, NDArray, Table, Task, Vector
from pumice.scheduler.model.resources import Sum, as_vectors, no_sum

RankKey = Callable[[Job], Hashable]  #: the key that decides the place of a job among the victims
SAFE, WHOLE, STAYS = 0, 1, 2


class Roster:
    """The tasks of a domain that may be evicted, as columns. The answers of `may_go` and `rank_key` depend on the job's state alone."""

    def __init__(self, cluster: Cluster, domain: Mask, may_go: Eligible, rank_key: RankKey) -> None:
        self._cluster, width = cluster, cluster.dimensions.width
        self._may_go, self._rank_key = may_go, rank_key
        rows = np.flatnonzero(domain).tolist()
        found = [task for row in rows for task in cluster.nodes.tasks[row].values() if may_go(task)]
        self._tasks = sorted(found, key=lambda task: (_job(task).uid, task.priority, task.uid))
        templates = {template: number for number, template in enumerate(dict.fromkeys(task.template for task in self._tasks))}
        self._columns = Columns(
            np.array([task.node for task in self._tasks], int),
            np.array([templates[task.template] for task in self._tasks], int),
            np.array([importance(task) for task in self._tasks], float),
            np.array([np.inf if task.started is None else task.started for task in self._tasks], float),
        )
        self._requests: Table = np.array([template.taken for template in templates]).reshape(len(templates), width).T
        self._part = np.full(len(self._tasks), STAYS)
        self._jobs: list[Job] = []
        self._spans: dict[str, tuple[int, int, int]] = {}  #: by job uid: its number, its first entry, and the entry after its last
        for job, its_tasks in groupby(self._tasks, _job):
            begin = self._spans[self._jobs[-1].uid][2] if self._jobs else 0
            self._spans[job.uid] = (len(self._jobs), begin, begin + len(list(its_tasks)))
            self._jobs.append(job)
        self._owner = np.repeat(np.arange(len(self._jobs)), [end - begin for _, begin, end in self._spans.values()])
        requests = [sum((task.template.exactly for task in job.tasks.values()), no_sum(width)) for job in self._jobs]
        self._of_all: Sum = np.array(requests, np.int64).reshape(len(self._jobs), 2, width).transpose(1, 2, 0)
        self._rank_keys: dict[Hashable, int] = {}
        self._codes = np.zeros(len(self._jobs), int)  #: of each job, the number of its rank key
        for job in self._jobs:
            self._look_at(job, self._span(job))
        self._position = len(cluster.log)

    def __bool__(self) -> bool:
        self._catch_up()
        return bool((self._part != STAYS).any())

    def offer(self, need: Vector, in_order: Callable[[list[Any]], list[Any]]) -> Offer:
        """All bundles that may go (there must be one): Safe ones first, then in the order in which `in_order` puts rank keys, then those
        that give most here in relation to what they cost in the whole cluster."""
        self._catch_up()
        bundle = 2 * self._owner + self._part
        entries = np.argsort(bundle, kind="stable")
        entries = entries[self._part[entries] != STAYS]
        bundle = bundle[entries]
        first = np.flatnonzero(np.diff(bundle, prepend=-1))
        bundles = bundle[first]
        jobs = bundles // 2
        ranks = Ranks(bundles % 2 == WHOLE, self._ranks(in_order)[self._codes[jobs]], jobs)
        asked = np.flatnonzero(need)
        sizes: Table = np.add.reduceat(self._requests[np.ix_(asked, self._columns.template[entries])], first, axis=1)
        of_all = as_vectors(self._of_all[:, column, jobs] for column in asked)
        returns = _returns(sizes, of_all, need[asked, None], ranks.whole)
        order = np.lexsort((-returns, ranks.place_of_job, ranks.whole))
        place = np.empty(2 * len(self._jobs), int)
        place[bundles[order]] = np.arange(len(bundles))
        by_place = np.argsort(place[bundle], kind="stable")
        chosen = entries[by_place]
        tasks = [self._tasks[entry] for entry in chosen.tolist()]
        return Offer(tasks, self._columns.at(chosen), place[bundle][by_place], self._requests, ranks.at(order))

    def _ranks(self, in_order: Callable[[list[Any]], list[Any]]) -> NDArray[np.intp]:
        ranks = np.zeros(len(self._rank_keys), int)
        for rank, rank_key in enumerate(in_order(list(self._rank_keys))):
            ranks[self._rank_keys[rank_key]] = rank
        return ranks

    # -- upkeep

    def _catch_up(self) -> None:
        log = self._cluster.log
        for job in {change.task.job: None for change in log[self._position :]}:
            if job is not None and job.uid in self._spans:
                span = self._span(job)
                self._part[span.start : span.stop] = STAYS
                self._look_at(job, [entry for entry in span if self._may_go(self._tasks[entry])])
        self._position = len(log)

    def _span(self, job: Job) -> range:
        """The entries of the job's tasks."""
        _, begin, end = self._spans[job.uid]
        return range(begin, end)

    def _look_at(self, job: Job, here: Sequence[int]) -> None:
        """Take in the bundles and the rank key of a job. `here`: the entries of its tasks that may go."""
        number, _, _ = self._spans[job.uid]
        for entry, safe in zip(here, safe_ones(job, [self._tasks[entry] for entry in here]), strict=True):
            self._part[entry] = SAFE if safe else WHOLE
        self._codes[number] = self._rank_keys.setdefault(self._rank_key(job), len(self._rank_keys))


def _job(task: Task) -> Job:
    assert task.job is not None, "pods of no job are nobody's victims"
    return task.job


def _returns(sizes: Table, of_all: Table, need: Table, whole: Mask) -> Vector:
    """What each bundle gives here of the need, divided by what all pods of its gang request, also those that have ended, whose work may be
    lost with the gang; infinite for a Safe bundle."""
    gains = (np.minimum(sizes, need) / need).sum(axis=0)
    costs = np.where(whole, (of_all / need).sum(axis=0), 0.0)
    returns: Vector = np.divide(gains, costs, out=np.full(len(gains), np.inf), where=costs > 0)
    return returns
