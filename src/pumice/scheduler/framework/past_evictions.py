"""Evictions of late: by which action, for whom, whom plugins let go, and what it cost. Kept for those who ask why afterwards, and told as
events to those who only read a cluster."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from pumice.api.annotations import CHECKPOINT
from pumice.api.core import Event, ObjectReference
from pumice.api.meta import Condition, Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.times import duration, instant_or, rfc3339
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.task import Task

MEMORY = "past evictions"  #: its key in the cluster's memory
KEPT = 1000


class PastEviction(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One pod. `text` is in the words of another scheduler, where those are all that is known."""

    pod: str  #: namespace/name
    at: float  #: seconds since 1970
    job: str = ""  #: its uid
    action: str = ""
    beneficiary: str = ""
    permitted_by: tuple[str, ...] = ()  #: plugins
    lost_s: float = 0.0  #: of work since its last checkpoint
    gpus: float = 0.0  #: on so many
    text: str = ""

    @property
    def words(self) -> str:
        """By which action, for whom, by which rule, at which cost."""
        if self.text:
            return self.text
        whom = f" for {self.beneficiary}" if self.beneficiary else ""
        verb = "permits" if len(self.permitted_by) == 1 else "permit"
        rule = f", as {', '.join(self.permitted_by)} {verb}" if self.permitted_by else ""
        on = f" on {self.gpus:g} GPU{'s' if self.gpus != 1 else ''}" if self.gpus else ""
        lost = f"; it loses {self.lost_s:.0f} s of work{on}" if self.lost_s else ""
        return f"{self.action}{whom}{rule}{lost}"


def past_eviction(eviction: Evict, cluster: Cluster, now: float) -> PastEviction:
    task = eviction.task
    job = task.job.uid if task.job is not None else ""
    lost = at_risk_s(task, now), gpus(task, cluster.dimensions)
    return PastEviction(task.key, now, job, eviction.action, eviction.beneficiary, eviction.permitted_by, *lost)


def note(cluster: Cluster, evictions: Iterable[PastEviction]) -> None:
    known: deque[PastEviction] = cluster.memory.setdefault(MEMORY, deque(maxlen=KEPT))
    known.extend(evictions)


def past_evictions(cluster: Cluster) -> tuple[PastEviction, ...]:
    """The oldest first."""
    return tuple(cluster.memory.get(MEMORY, ()))


# What an eviction costs its victim: the work since its last checkpoint. It makes one every `pumice.io/checkpoint-every` of its PodGroup;
# without that annotation none.


def ran_s(task: Task, now: float) -> float:
    since = task.started if task.started is not None else task.placed_at
    return 0.0 if since is None else max(0.0, now - since)


def at_risk_s(task: Task, now: float) -> float:
    """Seconds of work that would have to be done again."""
    every = seconds(task.job.annotations.get(CHECKPOINT, "")) if task.job is not None else 0.0
    return ran_s(task, now) % every if every > 0 else ran_s(task, now)


def gpus(task: Task, dimensions: Dimensions) -> float:
    return sum(float(amount) for column, amount in task.template.needs if dimensions.names[column].endswith("/gpu")) / 1000


def seconds(text: str) -> float:
    """0 for what is no duration."""
    try:
        return duration(text)
    except ValueError:
        return 0.0


# Evictions as conditions and events tell them, for those who only read a cluster: taken into what its state remembers.

EVICTION_REASONS = ("Evict", "Preempted")  #: of events, by Volcano and by kube-scheduler

_WORDS = re.compile(
    r"(?P<action>[\w-]+)(?: for (?P<beneficiary>[^\s,;]+))?(?:, as (?P<permitted>.+?) permits?)?"
    r"(?:; it loses (?P<seconds>\d+) s of work(?: on (?P<gpus>[\d.e+]+) GPUs?)?)?"
)
_OF_POD = "Pod is evicted, because of "
_OF_GROUP = re.compile(r"(?P<pod>[a-z0-9.-]+): (?P<words>\w.*)")


def take_in_evictions(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    """Take in what objects tell."""
    found: dict[tuple[str, str], PastEviction] = {}
    for told in sorted(_told(items), key=lambda each: each.at):
        known = found.get((told.pod, told.words))
        found[told.pod, told.words] = told if known is None or not known.job else replace(told, job=known.job)
    if found:
        note(cluster, found.values())


def eviction_events(cluster: Cluster) -> Iterator[Event]:
    """What is remembered, as others can take it in."""
    for number, told in enumerate(past_evictions(cluster)):
        namespace, _, pod = told.pod.partition("/")
        group = told.job.partition("/")[2]
        about = (
            ObjectReference(kind="PodGroup", name=group, namespace=namespace)
            if group
            else ObjectReference(kind="Pod", name=pod, namespace=namespace)
        )
        message = f"{pod}: {told.words}" if group else _OF_POD + told.words
        yield Event(Metadata(f"eviction-{number}", namespace), about, "Evict", message, rfc3339(told.at))


def _told(items: Iterable[tuple[str, Wire]]) -> Iterator[PastEviction]:
    for _, item in items:
        if isinstance(item, Event) and item.reason in EVICTION_REASONS:
            yield from _by_event(item)
        elif isinstance(item, Pod) and item.metadata.deletion_timestamp:
            yield from _by_conditions(item)


def _by_event(event: Event) -> Iterator[PastEviction]:
    about = event.involved_object
    namespace = about.namespace or "default"
    at = instant_or(event.last_timestamp or event.event_time, event.metadata.created)
    if about.kind == "Pod":
        yield _read(f"{namespace}/{about.name}", at, event.message)
    elif match := _OF_GROUP.search(event.message):
        yield _read(f"{namespace}/{match['pod']}", at, _OF_POD + match["words"], f"{namespace}/{about.name}")


def _by_conditions(pod: Pod) -> Iterator[PastEviction]:
    told: dict[str, Condition] = {f"{each.type}={each.reason}": each for each in pod.status.conditions or ()}
    condition = told.get("Ready=Evict") or told.get("DisruptionTarget=PreemptionByScheduler")
    if condition is not None and condition.message:
        at = instant_or(condition.last_transition_time, pod.metadata.created)
        yield _read(f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}", at, condition.message)


def _read(pod: str, at: float, message: str, job: str = "") -> PastEviction:
    words = message.partition(_OF_POD)[2]
    match = _WORDS.fullmatch(words)
    if match is None:
        return PastEviction(pod, at, job, text=message)
    permitted = tuple(match["permitted"].split(", ")) if match["permitted"] else ()
    lost = float(match["seconds"] or 0), float(match["gpus"] or 0)
    return PastEviction(pod, at, job, match["action"], match["beneficiary"] or "", permitted, *lost)
