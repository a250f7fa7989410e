"""The parts of an answer: structs that text, JSON and code share. Nothing is computed here.

A `Headline` names the binding constraint: what is needed, what there is, how much is short, and a remedy, which is exactly what is short.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from pumice.answers.changes import ClusterChange
from pumice.scheduler.framework.past_evictions import PastEviction


class Because(StrEnum):
    """What keeps a job or a pod waiting. The values are few, so that a metric can use them as a label."""

    OTHER_SCHEDULER = "other-scheduler"
    NO_PODGROUP = "no-podgroup"
    NO_QUEUE = "no-queue"
    NO_PODS = "no-pods"
    GATED = "gated"
    QUEUE_CLOSED = "queue-closed"
    QUOTA = "quota"
    POD_QUOTA = "pod-quota"  #: a ResourceQuota
    REFUSED = "pods-refused"  #: its controller cannot create its pods
    OVERCOMMITTED = "overcommitted"
    NOT_ADMITTED = "not-admitted"
    NO_NODES = "no-nodes"
    NO_ROOM = "no-room"
    FRAGMENTED = "fragmented"
    TOO_LARGE = "too-large"
    GANG = "gang"
    GANG_TOO_LARGE = "gang-too-large"
    TOPOLOGY = "topology"
    TAINT = "taint"
    AFFINITY = "affinity"
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"  #: nodes that are not ready, or short of memory, disk or process ids
    POD_AFFINITY = "pod-affinity"
    SPREAD = "spread"
    PORTS = "ports"
    VOLUME = "volume"
    DEVICES = "devices"
    CONFIGURATION = "configuration"
    RULE = "rule"  #: a rule of another plugin
    RELEASING = "releasing"  #: room is being made for it
    OUTRANKED = "outranked"
    UNKNOWN = "unknown"


class Headline(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The binding constraint. Amounts are quantities, as Kubernetes writes them."""

    because: Because
    text: str
    needed: str | UnsetType = UNSET
    available: str | UnsetType = UNSET
    short: str | UnsetType = UNSET
    #: with it the subject starts, or another constraint becomes the binding one; empty where none is known
    remedy: tuple[ClusterChange, ...] = ()


class ChainLink(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One question of the chain and its answer."""

    question: str
    fine: bool
    answer: str
    needed: str | UnsetType = UNSET
    available: str | UnsetType = UNSET
    short: str | UnsetType = UNSET


class Near(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A node that nearly fits."""

    node: str
    lacks: tuple[str, ...]


class Scored(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A node that was compared."""

    node: str
    total: float
    scores: dict[str, float] = {}


class Why(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The state of one subject, and the reason for it."""

    subject: str  #: kind/name, or kind/namespace/name
    state: str  #: "waits", "starts", "runs", "is evicted", ...
    headline: Headline | None = None  #: of a subject that waits
    text: str = ""  #: in one line, of a subject that does not wait
    advice: tuple[ClusterChange, ...] = ()  #: with it the subject starts: this was rehearsed, through as many cycles as it takes
    then: str = ""  #: of a subject whose remedy alone does not start it: what holds it back then
    note: str = ""  #: what the subject asks for and no plugin heeds
    never: str = ""  #: of a subject that waits: what keeps it from ever running here, if that differs from the headline
    chain: tuple[ChainLink, ...] = ()
    nearest: tuple[Near, ...] = ()
    like: str = ""  #: of a subject that waits: the node that further nodes should be like; empty if none would do
    alternatives: tuple[Scored, ...] = ()  #: of a running pod: the best nodes for it now
    evictions: tuple[PastEviction, ...] = ()  #: the last evictions of its pods
    parts: tuple[Why, ...] = ()  #: of a queue: the answers for its waiting jobs

    @property
    def line(self) -> str:
        return self.headline.text if self.headline is not None else self.text
