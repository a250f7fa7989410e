"""The usage in recordings: the hours of CPUs, memory and GPUs that queues and users held, deserved, lent and borrowed.

A pod's requests count as held from the moment it has a node until it ends. A queue borrows what it holds beyond what it deserves. This is
lent by the queues that hold less than they deserve, each in proportion to what it leaves unused. What a queue deserves is what the
scheduler's plugins computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from pumice.api.annotations import GROUP_NAME, USER
from pumice.api.defaults import DEFAULT_QUEUE, ROOT_QUEUE
from pumice.api.pod import Pod
from pumice.api.quantity import is_gpu
from pumice.api.structs import decoder
from pumice.api.volcano import PodGroup, Queue
from pumice.inputs.recording.entry_format import Begin, Cycle, Entry, Put, Removed, Restored, Whole
from pumice.scheduler.model import status
from pumice.scheduler.model.pod_request import requested_by_containers

FIELDS = ("queue", "user", "namespace")  #: the fields by which usage can be summed up
NO_QUEUE = "-"  #: shown as the queue of pods without a PodGroup
HOUR_S = 3600.0
GIB = 2.0**30
_pod, _group, _queue = decoder(Pod), decoder(PodGroup), decoder(Queue)


class UsageAmounts(NamedTuple):
    """Amounts of CPUs, GiB of memory and GPUs, or hours of these."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def plus(self, other: UsageAmounts, times: float = 1.0) -> UsageAmounts:
        return UsageAmounts(*(mine + times * its for mine, its in zip(self, other, strict=True)))

    def beyond(self, other: UsageAmounts) -> UsageAmounts:
        """By how much these amounts exceed the others; 0 where they do not."""
        return UsageAmounts(*(max(0.0, mine - its) for mine, its in zip(self, other, strict=True)))


NOTHING = UsageAmounts()
Group = tuple[str, ...]  #: the values of the fields by which usage is summed up


@dataclass
class UsageAccount:
    """The usage of one group. Everything is in hours, except the numbers of pods."""

    got: UsageAmounts = NOTHING
    deserved: UsageAmounts = NOTHING
    lent: UsageAmounts = NOTHING
    borrowed: UsageAmounts = NOTHING
    waited: float = 0.0  #: the hours that pods waited for a node, added up
    pods: int = 0  #: the number of pods that were given a node
    evicted: int = 0  #: the number of pods that were evicted


@dataclass
class PodUsage:
    """The part of a pod that its usage depends on. `since`: when it began to wait, or to hold a node."""

    uid: str
    job: str
    namespace: str
    user: str
    amounts: UsageAmounts
    since: float
    holds: bool = False
    evicted: bool = False


@dataclass
class UsageTotals:
    """Adds up usage from entries, which must come in order. `accounts` are by the fields in `by`, for the time from `start` to `end`."""

    by: tuple[str, ...] = ("queue",)
    start: float = -inf
    end: float = inf
    accounts: dict[Group, UsageAccount] = field(default_factory=lambda: defaultdict(UsageAccount))
    flows: dict[tuple[str, str], UsageAmounts] = field(default_factory=dict)  #: by lender and borrower
    _at: float = -inf
    _pods: dict[str, PodUsage] = field(default_factory=dict)
    _queues: dict[str, str] = field(default_factory=dict)  #: by PodGroup: its queue
    _users: dict[str, str] = field(default_factory=dict)  #: by PodGroup: its user
    _held: dict[str, UsageAmounts] = field(default_factory=lambda: defaultdict(UsageAmounts))  #: by queue: what it holds now
    _deserved: dict[str, UsageAmounts] = field(default_factory=dict)  #: by queue: what it deserves now
    _branches: set[str] = field(default_factory=lambda: {ROOT_QUEUE})  #: queues with child queues, to which their share is passed on
    _missing: set[str] = field(default_factory=set)  #: known pods that a newly begun file has not listed yet

    def take(self, entry: Entry) -> None:
        if isinstance(entry, Begin):
            self._missing = set(self._pods)
        elif isinstance(entry, Whole):
            for key in self._missing:
                self._ended(key, self._at)
            self._missing = set()
        self._pass(entry.at)
        match entry:
            case Put(kind="PodGroup"):
                group = _group.decode(entry.object)
                job = f"{group.metadata.namespace or 'default'}/{group.metadata.name}"
                self._join(job, group.spec.queue or DEFAULT_QUEUE, entry.at)
                self._users[job] = (group.metadata.annotations or {}).get(USER, "")
            case Put(kind="Queue"):
                self._branches.add(_queue.decode(entry.object).spec.parent or ROOT_QUEUE)
            case Put(kind="Pod") | Restored():
                self._seen(_pod.decode(entry.object), entry.at)
            case Removed(kind="Pod"):
                self._ended(entry.key, entry.at)
            case Cycle():
                self._decided(entry)

    def close(self) -> None:
        """End the usage of all pods at the time of the last entry. No entry may follow."""
        for key in list(self._pods):
            self._ended(key, self._at)

    def cut(self, at: float) -> dict[Group, UsageAccount]:
        """The accounts up to an instant, before which all entries so far were. Those of the time after it begin at zero."""
        self._pass(at)
        for holder in self._pods.values():
            self._count(holder, at)
        found, self.accounts = self.accounts, defaultdict(UsageAccount)
        return found

    # -- pods

    def _seen(self, pod: Pod, at: float) -> None:
        meta = pod.metadata
        namespace = meta.namespace or "default"
        key = f"{namespace}/{meta.name}"
        self._missing.discard(key)
        known, now = self._pods.get(key), status.of_pod(pod)
        if known is not None and known.uid != meta.identity:
            self._ended(key, at)
            known = None
        if now & status.FINISHED:
            self._ended(key, at)
            return
        annotations = meta.annotations or {}
        if known is None:
            job = f"{namespace}/{annotations[GROUP_NAME]}" if GROUP_NAME in annotations else ""
            known = self._pods[key] = PodUsage(meta.identity, job, namespace, annotations.get(USER, ""), _asked(pod), at)
        if pod.spec.node_name and not known.holds:
            self._placed(known, at)
        elif not pod.spec.node_name and known.holds:  # its bind failed
            self._close(known, at)
            known.holds, known.since = False, at
        if any(each.type == "DisruptionTarget" and each.status == "True" for each in pod.status.conditions or ()):
            self._evicted(known, at)

    def _placed(self, holder: PodUsage, at: float) -> None:
        self._close(holder, at)
        holder.holds = True
        self._hold(holder)
        self._account(holder).pods += self.start <= at < self.end

    def _ended(self, key: str, at: float) -> None:
        holder = self._pods.pop(key, None)
        if holder is not None:
            self._close(holder, at)

    def _close(self, holder: PodUsage, at: float) -> None:
        """Add the time that the pod has waited, or held its node, since `since` to its account."""
        self._count(holder, at)
        if holder.holds:
            self._hold(holder, -1.0)

    def _hold(self, holder: PodUsage, sign: float = 1.0) -> None:
        queue = self._queue(holder)
        self._held[queue] = self._held[queue].plus(holder.amounts, sign)

    def _count(self, holder: PodUsage, at: float) -> None:
        hours, holder.since = self._hours(holder.since, at), at
        if not hours:
            return
        account = self._account(holder)
        if holder.holds:
            account.got = account.got.plus(holder.amounts, hours)
        else:
            account.waited += hours

    def _evicted(self, holder: PodUsage, at: float) -> None:
        if not holder.evicted:
            holder.evicted = True
            self._account(holder).evicted += self.start <= at < self.end

    def _decided(self, cycle: Cycle) -> None:
        for pod in cycle.binds:
            if pod in self._pods and not self._pods[pod].holds:
                self._placed(self._pods[pod], cycle.at)
        for eviction in cycle.evictions:
            if eviction.pod in self._pods:
                self._evicted(self._pods[eviction.pod], cycle.at)
        if cycle.deserved:  # a queue without jobs deserves nothing, and is not in it
            self._deserved = {queue: _counted(named) for queue, named in cycle.deserved.items() if queue not in self._branches}

    # -- queues

    def _join(self, job: str, queue: str, at: float) -> None:
        """Take in the queue of a PodGroup. What its pods held until now, another queue held, if they were known before."""
        if self._queues.get(job, DEFAULT_QUEUE) != queue:
            moving = [holder for holder in self._pods.values() if holder.job == job]
            for holder in moving:
                self._close(holder, at)
            self._queues[job] = queue
            for holder in moving:
                if holder.holds:
                    self._hold(holder)

    def _pass(self, at: float) -> None:
        """Add what queues deserved, lent and borrowed up to an instant to their accounts."""
        hours, self._at = self._hours(self._at, at), max(self._at, at)
        if not hours or self.by != ("queue",):
            return
        borrowed = {queue: self._held[queue].beyond(deserved) for queue, deserved in self._deserved.items()}
        left = {queue: deserved.beyond(self._held[queue]) for queue, deserved in self._deserved.items()}
        needed, offered = _sum(borrowed.values()), _sum(left.values())
        for queue, deserved in self._deserved.items():
            account = self.accounts[queue,]
            account.deserved = account.deserved.plus(deserved, hours)
            account.borrowed = account.borrowed.plus(borrowed[queue], hours)
            lent = _share(left[queue], offered, needed)
            account.lent = account.lent.plus(lent, hours)
            if any(lent):
                self._flow(queue, lent, borrowed, needed, hours)

    def _flow(self, lender: str, lent: UsageAmounts, borrowed: dict[str, UsageAmounts], needed: UsageAmounts, hours: float) -> None:
        for borrower, amounts in borrowed.items():
            if any(used := _share(amounts, needed, lent)):
                self.flows[lender, borrower] = self.flows.get((lender, borrower), NOTHING).plus(used, hours)

    # -- accounts

    def _hours(self, since: float, until: float) -> float:
        """The hours of this time that are between `start` and `end`."""
        return max(0.0, min(until, self.end) - max(since, self.start)) / HOUR_S if since > -inf else 0.0

    def _queue(self, holder: PodUsage) -> str:
        return self._queues.get(holder.job, DEFAULT_QUEUE) if holder.job else NO_QUEUE

    def _account(self, holder: PodUsage) -> UsageAccount:
        user = holder.user or self._users.get(holder.job, "")
        values = {"queue": self._queue(holder), "user": user or "-", "namespace": holder.namespace}
        return self.accounts[tuple(values[name] for name in self.by)]


def _sum(amounts: Iterable[UsageAmounts]) -> UsageAmounts:
    total = NOTHING
    for each in amounts:
        total = total.plus(each)
    return total


def _share(part: UsageAmounts, whole: UsageAmounts, of: UsageAmounts) -> UsageAmounts:
    """The share of the amounts `of` that `part` has of `whole`, and no more than `part`."""
    return UsageAmounts(*(min(some, some * there / all_) if all_ else 0.0 for some, all_, there in zip(part, whole, of, strict=True)))


def _counted(named: Mapping[str, float]) -> UsageAmounts:
    gpus = sum(amount for name, amount in named.items() if is_gpu(name))
    return UsageAmounts(named.get("cpu", 0.0), named.get("memory", 0.0) / GIB, gpus)


def _asked(pod: Pod) -> UsageAmounts:
    asked = requested_by_containers(pod.spec)
    gpus = sum(milli for name, milli in asked.items() if is_gpu(name))
    return UsageAmounts(asked.get("cpu", 0) / 1000, asked.get("memory", 0) / 1000 / GIB, gpus / 1000)
