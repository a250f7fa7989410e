"""What all objects have in common: the base of the wire structs, metadata, conditions, and label selectors in their object form."""

from typing import Annotated

from msgspec import Meta, Struct, field

from pumice.api.selectors import Requirement, Selector
from pumice.api.times import instant_or

Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  #: an int64, which is what Kubernetes reads; Python's integers have no limit


class Wire(Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """Base of all wire structs: camelCase on the wire, not tracked by the garbage collector, unknown fields skipped."""


class OwnerReference(Wire, frozen=True):
    name: str
    uid: str = ""
    kind: str = ""
    api_version: str = ""
    controller: bool | None = None


class Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None
    resource_version: str | None = None
    generation: Int | None = None

    @property
    def identity(self) -> str:
        """The uid of the object; for an object from a file, which may have no uid, its namespace and name."""
        return self.uid or f"{self.namespace or 'default'}-{self.name}"

    @property
    def key(self) -> str:
        """The name by which the object is kept: "namespace/name", or the name of an object that has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def created(self) -> float:
        """The creation time in seconds since 1970; 0 if it is absent or not a valid time."""
        return instant_or(self.creation_timestamp, 0.0)

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class Condition(Wire, frozen=True):
    type: str
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    transition_id: str | None = field(name="transitionID", default=None)


class LabelSelectorRequirement(Wire, frozen=True):
    """One `matchExpressions` entry."""

    key: str
    operator: str
    values: list[str] | None = None

    @property
    def requirement(self) -> Requirement:
        return Requirement(self.key, self.operator, tuple(self.values or ()))


class LabelSelector(Wire, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None

    @property
    def requirements(self) -> Selector:
        exact = tuple(Requirement(key, "In", (value,)) for key, value in sorted((self.match_labels or {}).items()))
        return exact + tuple(expression.requirement for expression in self.match_expressions or ())
