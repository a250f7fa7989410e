"""Evictions as conditions and events tell them, for those who only read a cluster: taken into what its state remembers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pumice.api.core import Event, ObjectReference
from pumice.api.meta import Condition, Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.times import instant_or, rfc3339
from pumice.scheduler.framework.past_evictions import PastEviction, note, past_evictions
from pumice.scheduler.model.cluster import Cluster

REASONS = ("Evict", "Preempted")  #: of events, by Volcano and by kube-scheduler

_WORDS = re.compile(
    r"(?P<action>[\w-]+)(?: for (?P<beneficiary>[^\s,;]+))?(?:, as (?P<permitted>.+?) permits?)?"
    r"(?:; it loses (?P<seconds>\d+) s of work(?: on (?P<gpus>[\d.e+]+) GPUs?)?)?"
)
_OF_POD = "Pod is evicted, because of "
_OF_GROUP = re.compile(r"(?P<pod>[a-z0-9.-]+): (?P<words>\w.*)")


def remember(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    """Take in what objects tell."""
    found: dict[tuple[str, str], PastEviction] = {}
    for told in sorted(_told(items), key=lambda each: each.at):
        known = found.get((told.pod, told.words))
        found[told.pod, told.words] = told if known is None or not known.job else replace(told, job=known.job)
    if found:
        note(cluster, found.values())


def as_events(cluster: Cluster) -> Iterator[Event]:
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
        if isinstance(item, Event) and item.reason in REASONS:
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
