"""Pods that are not made: their owner is suspended, has ended or wants none; or a LimitRange, a webhook or a ResourceQuota refuses them.

A scheduler sees nothing of refused pods, so answers know of them only where the events of their controllers were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from pumice.answers.answer import Because, Headline, Link, Why
from pumice.answers.promised import is_promised
from pumice.answers.subject import NAMESPACED, Subject, split
from pumice.api import Object, name_of, namespace_of
from pumice.api.core import FAILED_CREATE, Event
from pumice.api.dialects import OWNERS
from pumice.api.json_objects import controller_of, field
from pumice.api.kinds import BATCH_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Kind, kind_of
from pumice.api.meta import Wire
from pumice.inputs.known_objects import known_object
from pumice.scheduler.model import Cluster, Job

MEMORY = "pods not made"  #: its key in the cluster's memory
OF_QUOTA = "exceeded quota"  #: in messages; what quotas refuse is computed anew for Volcano's Jobs

SUSPENDED, ENDED = ("Aborting", "Aborted"), ("Completed", "Failed", "Terminated")  #: phases of Volcano's Jobs
ENDS = ("Complete", "Completed", "Failed", "Succeeded")  #: conditions of other jobs
SWITCHES = ("spec.suspend", "spec.runPolicy.suspend")  #: where other jobs say that they are suspended
CALLED_JOB = (JOBS, BATCH_JOBS, *OWNERS)  #: the kinds that job/NAME may mean
SETS = {kind.kind.lower(): kind for kind in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS)}

Refusals = dict[tuple[str, str], str]  #: the last message by namespace and name of the owner


def take_in_refusals(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    events = [item for _, item in items if isinstance(item, Event) and item.reason == FAILED_CREATE]
    found: Refusals = {}
    for event in sorted(events, key=lambda each: each.last_timestamp or each.event_time or ""):
        about = event.involved_object
        found[about.namespace or "default", about.name] = event.message.removeprefix("Error creating: ")
    cluster.memory[MEMORY] = found


def without_pods(cluster: Cluster, text: str) -> Why | None:
    """The answer for a workload of which neither a pod nor a PodGroup is known, if the reason is known; else None."""
    subject = split(text)
    if subject.kind not in NAMESPACED:
        return None
    if (at_rest := resting(cluster, subject)) is not None:
        return at_rest
    if words := _words(cluster, subject):
        return _waits(str(subject), words)
    found = workload(cluster, subject)
    if found is None or found[0] is not JOBS:
        return None
    phase = field(found[1], "status.state.phase") or "Pending"
    return Why(str(subject), "waits", Headline(Because.NO_PODGROUP, f"its controller has made no PodGroup for it yet; it is {phase}"))


# -- owners that want no pods


def workload(cluster: Cluster, subject: Subject) -> tuple[Kind, Object] | None:
    """The object that is the subject, and its kind, if it is known."""
    namespace, _, name = (subject.asked or subject.key).partition("/")
    named = (SETS[subject.owner],) if subject.owner in SETS else CALLED_JOB if subject.kind == "job" else ()
    found = ((kind, known_object(cluster, kind, namespace, name)) for kind in named)
    return next(((kind, obj) for kind, obj in found if obj is not None), None)


def resting(cluster: Cluster, subject: Subject) -> Why | None:
    """The answer for a workload that wants no pods for now; None if it wants some, as far as is known."""
    found = workload(cluster, subject)
    if found is None:
        return None
    name, (kind, obj) = str(subject), found
    phase = field(obj, "status.state.phase") if kind is JOBS else ""
    if phase in SUSPENDED:
        return Why(name, "is suspended", text=f"`pumice job resume {_named(obj)}` lets it go on")
    conditions = field(obj, "status.conditions") or ()
    met = (each["type"] for each in conditions if each.get("status") == "True" and each["type"] in ENDS)
    if how := phase if phase in ENDED else next(met, ""):
        return Why(name, "has ended", text=f"it is {how}")
    for of, each in _with_owners(cluster, kind, obj):
        for switch in SWITCHES:
            if field(each, switch) is True:
                whose = "" if each is obj else f"its {of.kind} {name_of(each)} is: "
                return Why(name, "is suspended", text=f"{whose}`{_patch(of, each, switch, False)}` lets it go on")
    if kind is BATCH_JOBS and field(obj, "spec.parallelism") == 0:
        return Why(name, "wants no pods", text=f"`{_patch(kind, obj, 'spec.parallelism', 1)}` lets it have one")
    if field(obj, "spec.replicas") == 0:
        return Why(name, "wants no pods", text=f"`kubectl scale {kind.kind.lower()} {_named(obj)} --replicas=1` lets it have one")
    return None


def _with_owners(cluster: Cluster, kind: Kind, obj: Object) -> Iterator[tuple[Kind, Object]]:
    """The object, and those of its owners, owners' owners and so on that are known."""
    yield kind, obj
    while (owner := controller_of(obj)) is not None:
        above = next((each for each in CALLED_JOB if each.name == kind_of(owner)), None)
        found = known_object(cluster, above, namespace_of(obj), owner["name"]) if above is not None else None
        if above is None or found is None:
            return
        yield above, found
        obj = found


def _named(obj: Object) -> str:
    return name_of(obj) + (f" -n {namespace_of(obj)}" if namespace_of(obj) != "default" else "")


def _patch(kind: Kind, obj: Object, path: str, value: object) -> str:
    """The command that sets a field."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return f"kubectl patch {kind.resource} {_named(obj)} --type=merge -p '{json.dumps(value, separators=(',', ':'))}'"


# -- pods that are refused


def _words(cluster: Cluster, subject: Subject) -> str:
    """What the workload's controller was told when it could not create a pod; empty if it could, as far as is known."""
    namespace, _, name = (subject.asked or subject.key).partition("/")
    hashed = re.compile(rf"{re.escape(name)}-[a-z0-9]{{5,10}}")  # of a Deployment, its ReplicaSets
    refusals: Refusals = cluster.memory.get(MEMORY, {})
    found = (words for (space, owner), words in refusals.items() if space == namespace and (owner == name or hashed.fullmatch(owner)))
    return next(found, "")


def missing(cluster: Cluster, subject: Subject, count: int) -> str:
    """How many pods a workload lacks, of which there are `count`, and what refuses them; empty if it has all, as far as is known."""
    found, words = workload(cluster, subject), _words(cluster, subject)
    if found is None or not words:
        return ""
    wanted = int(field(found[1], "spec.parallelism" if found[0] is BATCH_JOBS else "spec.replicas") or 0)
    return f"{wanted - count} of its {wanted} pods are not made: {words}" if wanted > count else ""


def refused(cluster: Cluster, job: Job, subject: str) -> Why | None:
    """The answer for a job that would start if its controller could create the pods that it lacks; None if it can, as far as is known."""
    owner = job.group.metadata.controller if job.group is not None else None
    if owner is None or not any(map(is_promised, job.tasks.values())):
        return None
    refusals: Refusals = cluster.memory.get(MEMORY, {})
    words = refusals.get((job.namespace, owner.name), "")
    return _waits(subject, words) if words and OF_QUOTA not in words else None


def _waits(subject: str, words: str) -> Why:
    headline = Headline(Because.REFUSED, f"its controller cannot create its pods: {words}")
    return Why(subject, "waits", headline, chain=(Link("are its pods there?", False, headline.text),))
