"""The entries of a recording, in the order in which things happened.

A file begins with `Begin`, followed by all objects of the kept state, and by `Whole`. After that comes an entry for each change of the kept
state and for each cycle, in order: the entries before a `Cycle` give the state that this cycle saw. Times are seconds since 1970.
"""

from hashlib import blake2b
from math import inf
from typing import TypeAlias

import msgspec
from msgspec import Struct

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.gathering import Kept
from pumice.scheduler.model import Dimensions, Job, Vector
from pumice.scheduler.model.resources import MOST_OF_MANY, in_units

VERSION = 1


class Begin(msgspec.Struct, array_like=True, frozen=True, tag="begin"):
    """The beginning of a file: what is needed besides the objects to decide its cycles anew."""

    at: float
    version: int
    number: int  #: the number of the last cycle before this file
    schedulers: list[str]  #: the schedulerNames of the pods that the scheduler places
    default_queue: str
    shadow_groups: bool
    gathering_s: float
    configurations: list[str]  #: the policy, as text
    anonymous: bool = False  #: names are hashed
    release: str = ""  #: the release of kube-scheduler whose rules profiles follow; empty for the default


class Whole(msgspec.Struct, array_like=True, frozen=True, tag="whole"):
    """All objects that existed when the file began have been recorded."""

    at: float


class Put(msgspec.Struct, array_like=True, frozen=True, tag="put"):
    """An object was added or changed."""

    at: float
    kind: str
    object: msgspec.Raw


class Removed(msgspec.Struct, array_like=True, frozen=True, tag="removed"):
    at: float
    kind: str
    key: str


class Restored(msgspec.Struct, array_like=True, frozen=True, tag="restored"):
    """A pod as it was read again after its bind or eviction had failed."""

    at: float
    object: msgspec.Raw


class PhaseSet(msgspec.Struct, array_like=True, frozen=True, tag="phase"):
    """A job's phase was set between two cycles."""

    at: float
    job: str
    phase: str


class Eviction(msgspec.Struct, array_like=True, frozen=True):
    pod: str
    node: str
    beneficiary: str
    action: str
    permitted_by: tuple[str, ...] = ()  #: the plugins that permit victims of this action; not part of the digest


class GroupPhase(msgspec.Struct, array_like=True, frozen=True):
    """A PodGroup as a cycle left it."""

    job: str
    phase: str
    hypernode: str = ""


class Cycle(msgspec.Struct, array_like=True, frozen=True, tag="cycle"):
    """A cycle and its decisions. Later cycles that decide the same because nothing has happened are not recorded."""

    at: float
    number: int
    took_s: float
    digest: str  #: a hash of the binds, evictions, pipelined pods and nominations
    binds: dict[str, str]  #: pod to node
    evictions: list[Eviction]
    pipelined: dict[str, str]  #: pod to node
    nominations: dict[str, str]  #: pod to node; "" takes the nomination back
    groups: list[GroupPhase]
    written: dict[str, dict[str, str]]  #: by pod: the annotations that its bind writes
    tried: list[str]  #: the pods of kube-scheduler's profiles that the cycle tried to place
    gathering: tuple[float, float, list[str]] | None  #: while jobs arrive: when the first and last were enqueued; those lacking pods
    deserved: dict[str, dict[str, float]]  #: by queue and resource; if empty, as in the last cycle where it is not


Entry: TypeAlias = Begin | Whole | Put | Removed | Restored | PhaseSet | Cycle


class Decided(Struct, frozen=True):
    """A cycle as its observer noted it. A `Cycle` is made of it later, on another thread."""

    at: float
    number: int
    took_s: float
    decisions: Decisions
    tried: list[str]
    gathering: Kept | None
    deserved: dict[str, Vector]
    dimensions: Dimensions


def cycle_of(decided: Decided) -> Cycle:
    decisions = decided.decisions
    binds = {bind.task.key: bind.node for bind in decisions.binds}
    evictions = [(each.task.key, each.node, each.beneficiary, each.action) for each in decisions.evictions]
    pipelined = {place.task.key: place.node for place in decisions.pipelined}
    nominations = {task.key: node for task, node in decisions.nominations.items()}
    outcome = msgspec.json.encode((binds, evictions, pipelined, nominations), order="deterministic")
    kept = decided.gathering
    return Cycle(
        at=decided.at,
        number=decided.number,
        took_s=round(decided.took_s, 6),
        digest=blake2b(outcome, digest_size=8).hexdigest(),
        binds=binds,
        evictions=[Eviction(*fields, each.permitted_by) for fields, each in zip(evictions, decisions.evictions, strict=True)],
        pipelined=pipelined,
        nominations=nominations,
        groups=[GroupPhase(job.uid, phase, hypernode) for job, phase, hypernode in _phases(decisions)],
        written={bind.task.key: bind.annotations for bind in decisions.binds if bind.annotations},
        tried=decided.tried,
        gathering=(kept.began, kept.last, kept.incomplete) if kept is not None and kept.began < inf else None,
        deserved={queue: _by_name(deserved, decided.dimensions) for queue, deserved in decided.deserved.items()},
    )


def _phases(decisions: Decisions) -> list[tuple[Job, str, str]]:
    if decisions.conclusion is not None:
        return decisions.conclusion.phases()
    return [(group.job, group.phase, group.hypernode) for group in decisions.groups]


def _by_name(amounts: Vector, dimensions: Dimensions) -> dict[str, float]:
    """The amounts by resource name, in CPUs, bytes and cards. Zero and unbounded amounts are left out."""
    named = zip(dimensions.names, amounts.tolist(), strict=False)
    return {name: amount if in_units(name) else amount / 1000 for name, amount in named if 0 < amount < MOST_OF_MANY}
