"""Owners of pods that want no pods for now: they are suspended, have ended, or ask for none; with the command that lets them go on."""

import json
from collections.abc import Iterator

from pumice.answers.answer import Why
from pumice.answers.subject import Subject
from pumice.api import Object, name_of, namespace_of
from pumice.api.gang_dialects import OWNERS
from pumice.api.json_objects import controller_of, field
from pumice.api.kinds import BATCH_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Kind, kind_of
from pumice.inputs.known_objects import known_object
from pumice.scheduler.model import Cluster

SUSPENDED, ENDED = ("Aborting", "Aborted"), ("Completed", "Failed", "Terminated")  #: phases of Volcano's Jobs
ENDS = ("Complete", "Completed", "Failed", "Succeeded")  #: conditions of other jobs
SWITCHES = ("spec.suspend", "spec.runPolicy.suspend")  #: where other jobs say that they are suspended
CALLED_JOB = (JOBS, BATCH_JOBS, *OWNERS)  #: the kinds that job/NAME may mean
SETS = {kind.kind.lower(): kind for kind in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS)}


def workload(cluster: Cluster, subject: Subject) -> tuple[Kind, Object] | None:
    namespace, _, name = (subject.asked or subject.key).partition("/")
    named = (SETS[subject.owner],) if subject.owner in SETS else CALLED_JOB if subject.kind == "job" else ()
    found = ((kind, known_object(cluster, kind, namespace, name)) for kind in named)
    return next(((kind, obj) for kind, obj in found if obj is not None), None)


def wanted_pods(kind: Kind, workload: Object) -> int:
    """How many pods a workload wants at a time: a StatefulSet makes its pods one after another, unless it says otherwise."""
    if kind is STATEFUL_SETS and field(workload, "spec.podManagementPolicy") != "Parallel":
        return min(int(field(workload, "spec.replicas") or 0), 1)
    if kind is not BATCH_JOBS:
        return int(field(workload, "spec.replicas") or 0)
    most = [field(workload, f"spec.{name}") for name in ("parallelism", "completions")]
    return min(int(each) for each in most if each is not None) if any(each is not None for each in most) else 1


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
