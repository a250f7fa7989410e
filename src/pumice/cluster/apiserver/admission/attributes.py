"""Admission: rules that may change an object before it is stored, and rules that may refuse it.

An `AdmissionRule` names resources and operations and has a `mutate` or a `validate`, or both. They are pure: `AdmissionAttributes` and a
read-only `AdmissionLister` go in, an object or an `AdmissionRefusal` comes out. The server has rules of its own (`builtin_admission`);
others, such as Volcano's, are added to them.

All mutations run before all validations. `mutate` returns a new object or changes the given one, which is not shared with anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError, forbidden


class UserInfo(NamedTuple):
    """The user that makes a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()  #: further attributes: values by name


def account_groups(namespace: str) -> tuple[str, ...]:
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


SYSTEM = UserInfo("system:pumice", ("system:masters",))


@dataclass
class WriteOptions:
    """The options of a write, with the names of the API's parameters."""

    dry_run: bool = False
    manager: str = ""  #: fieldManager
    validation: str = "Warn"  #: fieldValidation, how to treat unknown fields: Strict, Warn or Ignore
    force: bool = False  #: for an apply: take over fields of other managers
    user: UserInfo = SYSTEM
    tracked: bool = False  #: a created object gets managedFields at once
    owned: bool = False  #: the caller gives the object away, so that it may be stored without a copy
    warnings: list[str] = field(default_factory=list)  #: warnings for the user, added by the store
    doubled: list[str] = field(default_factory=list)  #: paths of fields that stand twice in the body of the request


class AdmissionLister(Protocol):
    """The objects that a rule may look up."""

    def find(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def all(self, resource: str, namespace: str = "") -> Iterable[Object]: ...


class AdmissionAttributes(msgspec.Struct, frozen=True):
    """A write that the rules decide about."""

    operation: str  #: CREATE, UPDATE, DELETE
    kind: ServedKind
    namespace: str
    name: str
    subresource: str
    obj: Object  #: the object as it would be stored; for DELETE, as it is stored
    old: Object | None  #: the object as it is stored; None for CREATE
    user: UserInfo
    dry_run: bool = False
    warnings: list[str] = []  #: warnings for the user, added by the rules
    asked_kind: ServedKind | None = None  #: the version that was written, if objects are shown to a rule in another

    def about(self, obj: Object) -> AdmissionAttributes:
        """The same write with the object as a rule has changed it."""
        same = (self.operation, self.kind, self.namespace, self.name, self.subresource)
        return AdmissionAttributes(*same, obj, self.old, self.user, self.dry_run, self.warnings, self.asked_kind)


class AdmissionRefusal(NamedTuple):
    """Why a rule refuses a write."""

    message: str
    code: int = 403
    reason: str = "Forbidden"

    def error(self, review: AdmissionAttributes) -> StatusError:
        if self.reason == "Forbidden":
            return forbidden(review.kind.plural, review.kind.group, review.name, self.message)
        return StatusError(self.code, self.reason, self.message)


Mutate = Callable[[AdmissionAttributes, AdmissionLister], Object]
Validate = Callable[[AdmissionAttributes, AdmissionLister], "AdmissionRefusal | None"]


@dataclass(frozen=True)
class AdmissionRule:
    """One rule for some resources ("pods", "jobs.batch.volcano.sh", "*") and operations. The rule applies to status and other subresources
    only if it names them, such as `pods/status`."""

    resources: tuple[str, ...]
    operations: tuple[str, ...]
    mutate: Mutate | None = None
    validate: Validate | None = None


class Admission:
    """The rules in their order, found by resource and operation."""

    def __init__(self, rules: Iterable[AdmissionRule] = ()) -> None:
        self._rules = list(rules)
        self._found: dict[tuple[str, str, str], tuple[tuple[Mutate, ...], tuple[Validate, ...]]] = {}

    def add(self, rules: Iterable[AdmissionRule]) -> None:
        self._rules.extend(rules)
        self._found.clear()

    def _for(self, review: AdmissionAttributes) -> tuple[tuple[Mutate, ...], tuple[Validate, ...]]:
        resource, subresource, operation = key = review.kind.resource, review.subresource, review.operation
        found = self._found.get(key)
        if found is None:
            named = {f"{resource}/{subresource}"} if subresource else {resource, "*"}
            rules = [rule for rule in self._rules if operation in rule.operations and named & set(rule.resources)]
            found = tuple(rule.mutate for rule in rules if rule.mutate), tuple(rule.validate for rule in rules if rule.validate)
            self._found[key] = found
        return found

    def mutated(self, review: AdmissionAttributes, lister: AdmissionLister) -> Object:
        obj = review.obj
        for mutate in self._for(review)[0]:
            obj = mutate(review if obj is review.obj else review.about(obj), lister)
        return obj

    def check(self, review: AdmissionAttributes, lister: AdmissionLister) -> None:
        """Validate a write. Raises StatusError with the first refusal."""
        for validate in self._for(review)[1]:
            refusal = validate(review, lister)
            if refusal is not None:
                raise refusal.error(review)
