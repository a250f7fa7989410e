"""Evictions as conditions of pods and events tell of them, for tools that only read a cluster."""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.core import Event, ObjectReference
from pumice.api.meta import Condition, Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.times import instant_or
from pumice.scheduler.framework.past_evictions import PastEviction, note, past_evictions
from pumice.scheduler.model import Cluster

EVICTION_REASONS = ("Evict", "Preempted")  #: reasons of events: of Volcano, and of kube-scheduler

_PATTERN = re.compile(
    r"(?P<action>[\w-]+)(?: for (?P<beneficiary>[^\s,;]+))?(?:, as (?P<permitted>.+?) permits?)?"
    r"(?:; it loses (?P<seconds>\d+) s of work(?: on (?P<gpus>[\d.e+]+) GPUs?)?)?"
)
_OF_POD = "Pod is evicted, because of "
_OF_GROUP = re.compile(r"(?P<pod>[a-z0-9.-]+): (?P<words>\w.*)")


def take_in_evictions(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    """Remember the evictions that these objects (events and pods) tell of."""
    found: dict[tuple[str, str], PastEviction] = {}
    for eviction in sorted(_reported(items), key=lambda each: each.at):
        known = found.get((eviction.pod, eviction.cause))
        found[eviction.pod, eviction.cause] = eviction if known is None or not known.job else replace(eviction, job=known.job)
    if found:
        note(cluster, found.values())


def eviction_events(cluster: Cluster) -> Iterator[Event]:
    """The remembered evictions as events, in the form that `take_in_evictions` reads."""
    for number, eviction in enumerate(past_evictions(cluster)):
        namespace, _, pod = eviction.pod.partition("/")
        group = eviction.job.partition("/")[2]
        about = (
            ObjectReference(kind="PodGroup", name=group, namespace=namespace)
            if group
            else ObjectReference(kind="Pod", name=pod, namespace=namespace)
        )
        message = f"{pod}: {eviction.cause}" if group else _OF_POD + eviction.cause
        yield Event(Metadata(f"eviction-{number}", namespace), about, "Evict", message, rfc3339(eviction.at))


def _reported(items: Iterable[tuple[str, Wire]]) -> Iterator[PastEviction]:
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
    conditions: dict[str, Condition] = {f"{each.type}={each.reason}": each for each in pod.status.conditions or ()}
    condition = conditions.get("Ready=Evict") or conditions.get("DisruptionTarget=PreemptionByScheduler")
    if condition is not None and condition.message:
        at = instant_or(condition.last_transition_time, pod.metadata.created)
        yield _read(f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}", at, condition.message)


def _read(pod: str, at: float, message: str, job: str = "") -> PastEviction:
    cause = message.partition(_OF_POD)[2]
    match = _PATTERN.fullmatch(cause)
    if match is None:
        return PastEviction(pod, at, job, text=message)
    permitted = tuple(match["permitted"].split(", ")) if match["permitted"] else ()
    lost = float(match["seconds"] or 0), float(match["gpus"] or 0)
    return PastEviction(pod, at, job, match["action"], match["beneficiary"] or "", permitted, *lost)
