"""Floors to measure policies by: what no policy can go below for the same jobs on the same nodes, however it decides.

A job j comes at r_j. Its pod i runs for l_i seconds and holds d_ik of resource k, of which all nodes together have C_k. A pod that is
evicted begins again, or goes on from a checkpoint; until it ends it has held its request for at least l_i seconds in all. All bounds follow
from relaxations of the cluster: one in which jobs may be cut into pieces as small as one likes, and one with room for all.

**The machine of a resource.** Look at resource k alone, and forget nodes and gangs. At each instant the pods of all jobs hold at most C_k.
Job j needs w_jk = sum_i d_ik l_i / C_k seconds of a machine that is the whole resource, and what any schedule does on the cluster is done
by this machine too: it gives each job the share that the job's pods hold. Hence every bound for one preemptive machine with these jobs is a
bound for the cluster. A resource that a job does not request bounds the job by nothing.

* *Makespan*, total work: what comes at or after t is done after t, so the end is at least t + sum of w_jk over all jobs with r_j >= t, for
  every t. *Critical path*: the end is at least r_j + max_i l_i for every j, as a pod does not run beside itself.
* *Turnaround*, shortest remaining work: a machine that works at each instant on the job with the least work left minimises the sum of the
  ends of the jobs (Schrage 1968), also among schedules that share the machine, which are limits of ever shorter slices. So the sum of ends
  is at least that of this rule. *Critical path*: it is at least the sum of r_j + max_i l_i.
* *Turnaround*, mean busy times: let M_j be the mean of the instants at which the machine works on j, weighted by how much it does. A pod
  works at one rate, so the mean of its work is at least l_i / 2 before its end, which is at most the end of the job. Weighted by work over
  the pods: end_j >= M_j + h_j, with h_j = sum_i d_ik l_i (l_i / 2) / sum_i d_ik l_i. And the sum of the M_j is least if the machine works
  at each instant on the job with the least *whole* work of those that are there and not done: swapping two slices of jobs a and b in the
  other order changes the sum by slice * gap * (1 / w_a - 1 / w_b), which is against the job with more work (Goemans 1997). So the sum of
  ends is at least that of this rule's M_j plus the h_j. Work that an eviction undid is not counted: without it, the machine does less.
* *Wait*, only where nothing was evicted: at its start s_j, the pods of j that start then run through, so M_j = s_j + h_j for these pods.
  Which they are depends on the policy: at least one pod, and at least the minimum of the gang if gangs start as a whole. Take so many
  pods with the least work each: less work of a job in place of more, at the same instants, leaves M_j and needs less of the machine. So
  s_j >= M_j - max_i l_i / 2, with the M_j of the rule for this smaller work. Where evictions are allowed, the first start is bounded by
  nothing: a policy may start each job for a second when it comes.

Of all resources and relaxations the best bound counts. Means are over all jobs: a run in which some never started or ended has other means.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain, repeat
from typing import Any, NamedTuple

from pumice.api.core import Node
from pumice.scheduler.model.pod_request import requested_by_containers
from pumice.simulate.workload import Role, Work

Machine = tuple[list[float], list[float]]  #: by job: how much of the machine it needs, in seconds; what its pods take in the mean, h_j


class LowerBounds(NamedTuple):
    """Lower bounds in seconds, for all jobs of a workload together."""

    makespan: float
    wait: float  #: its mean, where nothing is evicted
    turnaround: float  #: its mean

    def of(self, measure: str, measures: dict[str, Any]) -> tuple[float, float] | None:
        """The value of a measure of a run, and its bound; None if the bound does not hold for this run, or says nothing."""
        value, bound = (measures[measure], self.makespan) if measure == "makespan" else (measures[measure]["mean"], getattr(self, measure))
        whole = measures["done"] == measures["jobs"] and (measure != "wait" or not measures["evictions"])
        return (value, bound) if whole and bound > 0 else None


MEASURES = LowerBounds._fields


def bounds_of(jobs: Iterable[Work], nodes: Iterable[Node], *, whole_gangs: bool = False, kill_at_estimate: bool = False) -> LowerBounds:
    """The bounds for these jobs on these nodes. `whole_gangs`: the minimum of a gang starts at one instant."""
    parts = [_Parts(work, kill_at_estimate=kill_at_estimate) for work in jobs]
    if not parts:
        return LowerBounds(0.0, 0.0, 0.0)
    capacity = _capacity(nodes)
    comes = [part.work.submit for part in parts]
    first, last = min(comes), [part.longest for part in parts]
    ends = sum(come + longest for come, longest in zip(comes, last, strict=True))
    starts, makespan = sum(comes), max(come + longest for come, longest in zip(comes, last, strict=True))
    for resource, amount in capacity.items():
        needs, half = _machine(parts, resource, amount, _Parts.all_pods)
        if not any(needs):
            continue
        makespan = max(makespan, _total(comes, needs))
        ends = max(ends, sum(finishes(comes, needs)), sum(mean_busy_times(comes, needs)) + sum(half))
        needs, _ = _machine(parts, resource, amount, lambda part, key: part.least_pods(key, whole_gangs=whole_gangs))
        starts = max(starts, sum(mean_busy_times(comes, needs)) - sum(longest / 2 for longest in last))
    count = len(parts)
    return LowerBounds(makespan - first, (starts - sum(comes)) / count, (ends - sum(comes)) / count)


class _Parts:
    """The pods of a job, as the bounds see them: by role how many, what each requests, how long each runs."""

    def __init__(self, work: Work, *, kill_at_estimate: bool) -> None:
        self.work = work
        limit = work.estimate if kill_at_estimate and work.estimate is not None else float("inf")
        slow = work.slow or {}
        self._lengths = [min(work.run * slow.get(number, 1.0), limit) for number in range(work.pods)] if slow else []
        self._length = min(work.run, limit)
        self.longest = max(self._lengths, default=self._length)

    def all_pods(self, resource: str) -> list[tuple[float, float]]:
        """Of each pod: how much of the resource it requests, and how long it runs."""
        amounts = chain.from_iterable(repeat(_requests(role).get(resource, 0.0), role.count) for role in self.work.roles)
        return list(zip(amounts, self._lengths or repeat(self._length), strict=False))

    def least_pods(self, resource: str, *, whole_gangs: bool) -> list[tuple[float, float]]:
        """Those pods with the least work that certainly run from the start of the job on."""
        least = max(1, min(self.work.gang, self.work.pods)) if whole_gangs else 1
        return sorted(self.all_pods(resource), key=lambda pod: pod[0] * pod[1])[:least]


@lru_cache(maxsize=4096)
def _requests(role: Role) -> dict[str, float]:
    return {name: milli / 1000 for name, milli in requested_by_containers(role.spec).items()}


def _capacity(nodes: Iterable[Node]) -> dict[str, float]:
    """What all nodes have together."""
    total: dict[str, float] = {}
    for node in nodes:
        for name, amount in (node.status.allocatable or {}).items():
            total[name] = total.get(name, 0.0) + float(amount.milli) / 1000
    return total


def _machine(
    parts: Sequence[_Parts], resource: str, capacity: float, pods_of: Callable[[_Parts, str], Iterable[tuple[float, float]]]
) -> Machine:
    needs, halves = [], []
    for part in parts:
        pods = list(pods_of(part, resource))
        work = sum(amount * length for amount, length in pods)
        needs.append(work / capacity if capacity else 0.0)
        halves.append(sum(amount * length * length / 2 for amount, length in pods) / work if work else part.longest)
    return needs, halves


def _total(comes: Sequence[float], needs: Sequence[float]) -> float:
    """When a machine that is never idle without need has done all."""
    now = 0.0
    for come, need in sorted(zip(comes, needs, strict=True)):
        now = max(now, come) + need
    return now


def finishes(comes: Sequence[float], needs: Sequence[float]) -> list[float]:
    """When each job is done if the machine works on the one with the least work left."""
    ends = list(comes)
    for number, _, until, _ in _slices(comes, needs, lambda number, left: left):
        ends[number] = until
    return ends


def mean_busy_times(comes: Sequence[float], needs: Sequence[float]) -> list[float]:
    """The mean busy time of each job if the machine works on the one with the least work in all. A job without work: when it comes."""
    means = [0.0 if need else come for come, need in zip(comes, needs, strict=True)]
    for number, since, until, done in _slices(comes, needs, lambda number, left: needs[number]):
        means[number] += done / needs[number] * (since + until) / 2
    return means


def _slices(
    comes: Sequence[float], needs: Sequence[float], rank: Callable[[int, float], float]
) -> Iterable[tuple[int, float, float, float]]:
    """What the machine does: the job, from when, until when, how much. Of the jobs that are there it takes the one of the least rank."""
    order = sorted((number for number in range(len(comes)) if needs[number]), key=lambda number: comes[number])
    there: list[tuple[float, int, float]] = []  #: rank, job, work left
    now, upcoming = 0.0, 0
    while there or upcoming < len(order):
        if not there:
            now = max(now, comes[order[upcoming]])
        while upcoming < len(order) and comes[order[upcoming]] <= now:
            number = order[upcoming]
            heappush(there, (rank(number, needs[number]), number, needs[number]))
            upcoming += 1
        _, number, left = heappop(there)
        until = now + left
        if upcoming < len(order) and comes[order[upcoming]] < until:
            until = comes[order[upcoming]]
        done = min(left, until - now) if until < now + left else left
        yield number, now, until, done
        if done < left:
            heappush(there, (rank(number, left - done), number, left - done))
        now = until
