"""Admission: rules that may change an object on its way in, and rules that may refuse it.

A `Rule` names resources and operations and has a `mutate` or a `validate`, or both. They are pure: a `Review` and a read-only `World`
go in, an object or a `Refusal` comes out. The server brings rules of its own (`own_rules`); others, such as Volcano's, are added to them.
All mutations run before all validations. `mutate` returns a new object or changes the given one, which nobody else holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pumice.cluster.apiserver.kinds import Kind
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.status import ApiError, forbidden


class User(NamedTuple):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()  #: what else is known, values by name


SYSTEM = User("system:pumice", ("system:masters",))


@dataclass
class Options:
    """What a write may say about itself, in the API's words."""

    dry_run: bool = False
    manager: str = ""  #: fieldManager
    validation: str = "Warn"  #: of unknown fields: Strict, Warn or Ignore
    force: bool = False  #: of an apply: take over fields of other managers
    user: User = SYSTEM
    tracked: bool = False  #: what is created has owners of its fields from the start
    owned: bool = False  #: the object handed in is nobody else's and may be kept as it is
    warnings: list[str] = field(default_factory=list)  #: filled by the store


class World(Protocol):
    """What a rule may look up."""

    def find(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def all(self, resource: str, namespace: str = "") -> Iterable[Object]: ...


@dataclass(frozen=True, slots=True)
class Review:
    """One write to be judged."""

    operation: str  #: CREATE, UPDATE, DELETE
    kind: Kind
    namespace: str
    name: str
    subresource: str
    obj: Object  #: as it would be stored; when DELETE, as it is
    old: Object | None  #: as it is stored; None when CREATE
    user: User
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)  #: what the rules have to say to the user beside yes and no

    def about(self, obj: Object) -> Review:
        """The same of an object that a rule has changed."""
        same = (self.operation, self.kind, self.namespace, self.name, self.subresource)
        return Review(*same, obj, self.old, self.user, self.dry_run, self.warnings)


class Refusal(NamedTuple):
    """Why not."""

    message: str
    code: int = 403
    reason: str = "Forbidden"

    def error(self, review: Review) -> ApiError:
        if self.reason == "Forbidden":
            return forbidden(review.kind.plural, review.kind.group, review.name, self.message)
        return ApiError(self.code, self.reason, self.message)


Mutate = Callable[[Review, World], Object]
Validate = Callable[[Review, World], "Refusal | None"]


@dataclass(frozen=True)
class Rule:
    """One rule for some resources ("pods", "jobs.batch.volcano.sh", "*") and operations. Status and other subresources are not asked about
    unless named, as `pods/status`."""

    resources: tuple[str, ...]
    operations: tuple[str, ...]
    mutate: Mutate | None = None
    validate: Validate | None = None


class Admission:
    """The rules in their order, found by resource and operation."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = list(rules)
        self._found: dict[tuple[str, str], tuple[tuple[Mutate, ...], tuple[Validate, ...]]] = {}

    def add(self, rules: Iterable[Rule]) -> None:
        self._rules.extend(rules)
        self._found.clear()

    def _for(self, review: Review) -> tuple[tuple[Mutate, ...], tuple[Validate, ...]]:
        resource = f"{review.kind.resource}/{review.subresource}" if review.subresource else review.kind.resource
        found = self._found.get((resource, review.operation))
        if found is None:
            anywhere = () if review.subresource else ("*",)
            rules = [rule for rule in self._rules if review.operation in rule.operations and {resource, *anywhere} & set(rule.resources)]
            found = tuple(rule.mutate for rule in rules if rule.mutate), tuple(rule.validate for rule in rules if rule.validate)
            self._found[(resource, review.operation)] = found
        return found

    def mutated(self, review: Review, world: World) -> Object:
        obj = review.obj
        for mutate in self._for(review)[0]:
            obj = mutate(review if obj is review.obj else review.about(obj), world)
        return obj

    def check(self, review: Review, world: World) -> None:
        """Raises ApiError with the first refusal."""
        for validate in self._for(review)[1]:
            refusal = validate(review, world)
            if refusal is not None:
                raise refusal.error(review)
