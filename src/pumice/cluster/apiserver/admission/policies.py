"""Admission policies: ValidatingAdmissionPolicies and MutatingAdmissionPolicies, whose expressions are evaluated here.

A policy says what is demanded or changed, a binding where. Bindings may name parameters, which are objects of any kind: the policy then
applies once for each of them. Expressions are compiled when a policy or binding has changed. All expressions of one policy share a budget.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api import Object
from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CelError, EvaluationError
from pumice.api.json_objects import copied, labels_of
from pumice.api.selectors import matches_selector
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes
from pumice.cluster.apiserver.admission.audit_notes import AuditNotes
from pumice.cluster.apiserver.admission.webhooks import GROUP, Selectors, changed_as, request_of, seen_as, shown_as
from pumice.cluster.apiserver.patches.json_patch import PatchError, json_patch
from pumice.cluster.apiserver.patches.server_side_apply import merged
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError

if TYPE_CHECKING:
    from pumice.api.cel.program import Program
    from pumice.cluster.apiserver.store import Store

VALIDATING, MUTATING = f"validatingadmissionpolicies.{GROUP}", f"mutatingadmissionpolicies.{GROUP}"
BINDINGS = {VALIDATING: f"validatingadmissionpolicybindings.{GROUP}", MUTATING: f"mutatingadmissionpolicybindings.{GROUP}"}
KINDS = frozenset({*BINDINGS, *BINDINGS.values()})
_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


class Validation(NamedTuple):
    program: Program
    stated: Object
    message: Program | None


class CompiledPolicy(NamedTuple):
    """A policy with its expressions compiled, and its bindings."""

    name: str
    spec: Object
    matches: Match
    conditions: list[tuple[str, Program]]
    variables: list[tuple[str, Program]]
    validations: list[Validation]
    annotations: list[tuple[str, Program]]  #: for the audit log
    mutations: list[tuple[str, Program]]
    bindings: list[tuple[Object, Match]]

    @property
    def is_strict(self) -> bool:
        return bool(self.spec.get("failurePolicy") != "Ignore")


class Match(NamedTuple):
    """Which writes a policy or a binding means."""

    spec: Object
    selectors: Selectors

    @classmethod
    def of(cls, spec: Object | None) -> Match:
        return cls(spec or {}, Selectors(spec or {}))

    def holds(self, review: AdmissionAttributes, store: Store, by_default: bool) -> ServedKind | None:
        """The version of the written kind that is meant, if the write is. `by_default`: what a match without rules means."""
        if seen_as(self.spec, "excludeResourceRules", review, store.kinds) is not None:
            return None
        named = seen_as(self.spec, "resourceRules", review, store.kinds)
        if not self.spec.get("resourceRules") and by_default:
            named = review.kind
        return named if named is not None and self.selectors.match(review, store) else None


def _compiled(policy: Object, bindings: Iterable[Object]) -> CompiledPolicy:
    """Raises CompileError."""
    from pumice.api.cel.program import Program  # importing CEL takes 20 ms; most clusters have no policies
    from pumice.cluster.apiserver.admission.conditions import EXPRESSIONS, compiled

    name, spec = policy["metadata"]["name"], policy["spec"]

    def programs(field: str) -> list[tuple[str, Program]]:
        return compiled(spec.get(field) or (), EXPRESSIONS)

    def message(one: Object) -> Program | None:
        return Program(one["messageExpression"], EXPRESSIONS) if one.get("messageExpression") else None

    validations = spec.get("validations") or ()
    mutations = ((one["patchType"], one.get("jsonPatch") or one.get("applyConfiguration") or {}) for one in spec.get("mutations") or ())
    return CompiledPolicy(
        name,
        spec,
        Match.of(spec.get("matchConstraints")),
        programs("matchConditions"),
        programs("variables"),
        [Validation(Program(one["expression"], EXPRESSIONS), one, message(one)) for one in validations],
        [(one["key"], Program(one["valueExpression"], EXPRESSIONS)) for one in spec.get("auditAnnotations") or ()],
        [(type, Program(one["expression"], EXPRESSIONS)) for type, one in mutations],
        [(one, Match.of(one["spec"].get("matchResources"))) for one in bindings if one["spec"].get("policyName") == name],
    )


class PolicyRefusal(Exception):
    """A policy refuses a write, or cannot be evaluated and refuses it for that."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Policies:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._all: dict[str, list[CompiledPolicy]] = {}

    def changed(self) -> None:
        self._all.clear()
        self.__dict__.pop("exist", None)

    def _policies(self, sort: str) -> list[CompiledPolicy]:
        found = self._all.get(sort)
        if found is None:
            bindings = list(self._store.all(BINDINGS[sort]))
            found = self._all[sort] = [_compiled(one, bindings) for one in self._store.all(sort)]
        return found

    @cached_property
    def exist(self) -> bool:
        return bool(self._policies(MUTATING) or self._policies(VALIDATING))

    def mutated(self, review: AdmissionAttributes) -> AdmissionAttributes:
        """The write as the policies have changed it. Raises StatusError."""
        if not self._policies(MUTATING):
            return review
        for policy, binding, kind, params in self._bound(MUTATING, review):
            try:
                shown = before = shown_as(review, kind)
                names = self._names(policy, shown, params)
                for number, (type, program) in enumerate(policy.mutations):
                    if names is None:
                        break
                    mutation = f'mutation {number} of policy "{policy.name}" for {binding["metadata"]["name"]}'
                    value = copied(self._store.evaluated(mutation, shown, partial(_own_value, program, names)))
                    shown = shown.about(_changed(shown, type, value))
                    names = self._names(policy, shown, params)
                review = review if shown is before else changed_as(review, kind, shown.obj)
            except (CelError, PatchError, PolicyRefusal) as error:
                if policy.is_strict:
                    raise _refusal(policy, binding, review, PolicyRefusal(str(error), "Invalid")) from None
        return review

    def check(self, review: AdmissionAttributes, notes: AuditNotes) -> None:
        """Refuse a write that a policy does not allow, or warn of it. Raises StatusError."""
        if not self._policies(VALIDATING):
            return
        for policy, binding, kind, params in self._bound(VALIDATING, review):
            name, actions = binding["metadata"]["name"], binding["spec"].get("validationActions") or ()
            for refused in self._refusals(policy, binding, shown_as(review, kind), params, notes):
                if "Audit" in actions:
                    failure = {"message": str(refused), "policy": policy.name, "binding": name, "validationActions": actions}
                    notes.setdefault(FAILURE, {})[json.dumps([failure])] = None
                if "Warn" in actions:
                    text = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding"
                    review.warnings.append(f"{text} '{name}': {refused}")
                if "Deny" in actions:
                    raise _refusal(policy, binding, review, refused)

    def _bound(self, sort: str, review: AdmissionAttributes) -> Iterator[tuple[CompiledPolicy, Object, ServedKind, Object | None]]:
        """The policies of a write, each with a binding, the version that it means, and a parameter. Raises StatusError if a parameter is
        missing that must exist."""
        for policy in self._policies(sort) if review.kind.group != GROUP else ():
            if not policy.bindings or (kind := policy.matches.holds(review, self._store, False)) is None:
                continue
            for binding, match in policy.bindings:
                if match.holds(review, self._store, True):
                    for params in self._params(policy, binding, review):
                        yield policy, binding, kind, params

    def _params(self, policy: CompiledPolicy, binding: Object, review: AdmissionAttributes) -> Iterator[Object | None]:
        wanted, ref = policy.spec.get("paramKind"), binding["spec"].get("paramRef")
        if not wanted or not ref:
            yield None
            return
        kind = self._store.kinds.of_object(wanted["apiVersion"], wanted["kind"])
        namespace = ref.get("namespace") or review.namespace
        all_of_kind = self._store.all(kind.resource, namespace if kind.namespaced else "") if kind is not None else ()
        found = [
            one
            for one in all_of_kind
            if (one["metadata"]["name"] == ref["name"] if ref.get("name") else matches_selector(ref.get("selector") or {}, labels_of(one)))
        ]
        if not found and ref.get("parameterNotFoundAction") != "Allow" and policy.spec.get("failurePolicy") != "Ignore":
            what = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            raise _refusal(policy, binding, review, PolicyRefusal(what, "Invalid"))
        yield from found

    def _names(self, policy: CompiledPolicy, review: AdmissionAttributes, params: Object | None) -> dict[str, Any] | None:
        """What expressions may name; None if the conditions do not hold. Raises EvaluationError. A variable that has no value is left out:
        only who uses it fails."""
        from pumice.cluster.apiserver.admission.conditions import names_of

        names = names_of(review, request_of(review), self._store)
        names |= {"params": params, "namespaceObject": self._store.find("namespaces", "", review.namespace) if review.namespace else None}
        return self._store.evaluated(f'the variables of policy "{policy.name}"', review, partial(_with_variables, policy, names))

    def _refusals(
        self, policy: CompiledPolicy, binding: Object, review: AdmissionAttributes, params: Object | None, notes: AuditNotes
    ) -> list[PolicyRefusal]:
        """What the policy has against a write. Its annotations are added to `notes`."""
        try:
            names = self._names(policy, review, params)
            what = f'the validations of policy "{policy.name}" for {binding["metadata"]["name"]}'
            refused, noted = self._store.evaluated(what, review, partial(_judged, policy, names)) if names is not None else ([], {})
        except EvaluationError as error:
            return [PolicyRefusal(str(error))] if policy.is_strict else []
        for key, values in noted.items():
            notes.setdefault(key, {}).update(values)
        return refused


def _own_value(program: Program, names: Mapping[str, Any], budget: CostBudget | None) -> Any:
    """The value, shared with nothing. This and the next two may be done on a thread."""
    budget = budget or CostBudget()
    return _own(program.value(names, budget), budget)


def _with_variables(policy: CompiledPolicy, names: dict[str, Any], budget: CostBudget | None) -> dict[str, Any] | None:
    """The names, with the policy's variables; None if its conditions do not hold. Raises EvaluationError."""
    from pumice.cluster.apiserver.admission.conditions import conditions_hold

    variables: dict[str, Any] = {}
    names = names | {"variables": variables}
    if not conditions_hold(policy.conditions, names, budget):
        return None
    budget = budget or CostBudget()
    for name, program in policy.variables:
        try:
            variables[name] = program.value(names, budget)
        except EvaluationError:
            continue
    return names


def _judged(policy: CompiledPolicy, names: Mapping[str, Any], budget: CostBudget | None) -> tuple[list[PolicyRefusal], AuditNotes]:
    """What the policy has against a write, and its annotations."""
    refused: list[PolicyRefusal] = []
    notes: AuditNotes = {}
    budget = budget or CostBudget()
    for validation in policy.validations:
        text = validation.stated["expression"]
        try:
            if not validation.program.holds(names, budget):
                refused.append(PolicyRefusal(_message(validation, names, budget), validation.stated.get("reason") or "Invalid"))
        except EvaluationError as error:
            if policy.is_strict:
                refused.append(
                    PolicyRefusal(f"expression '{text}' resulted in error: {error}", validation.stated.get("reason") or "Invalid")
                )
    for key, program in policy.annotations:
        try:
            value = program.value(names, budget)
        except EvaluationError as error:
            if policy.is_strict:
                refused.append(PolicyRefusal(f"the value of audit annotation {key} resulted in error: {error}", "Invalid"))
            continue
        if isinstance(value, str) and value.strip():
            notes.setdefault(f"{policy.name}/{key}", {})[value.strip()] = None
    return refused, notes


FAILURE = "validation.policy.admission.k8s.io/validation_failure"  #: the annotation with failures that a binding wants audited


def _message(validation: Validation, names: Mapping[str, Any], budget: CostBudget) -> str:
    if validation.message is not None:
        try:
            found = validation.message.value(names, budget)
        except EvaluationError:
            found = ""
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found.strip()
    return str(validation.stated.get("message") or f"failed expression: {validation.stated['expression'].strip()}")


def _refusal(policy: CompiledPolicy, binding: Object, review: AdmissionAttributes, refused: PolicyRefusal) -> StatusError:
    sort = "MutatingAdmissionPolicy" if policy.mutations else "ValidatingAdmissionPolicy"
    text = f"{sort} '{policy.name}' with binding '{binding['metadata']['name']}' denied request: {refused}"
    found = review.kind.forbidden(review.name, text)
    reason = refused.reason or "Forbidden"
    return StatusError(_CODES.get(reason, 422), reason, found.message, {**(found.details or {}), "causes": [{"message": text}]})


def _own(value: Any, budget: CostBudget) -> Any:
    """The value in which no two places hold the same list or map; each part is paid for, since a value may hold another very often."""
    match value:
        case Mapping():
            budget.pay(1 + len(value))
            return {key: _own(inner, budget) for key, inner in value.items()}
        case list():
            budget.pay(1 + len(value))
            return [_own(inner, budget) for inner in value]
    return value


def _changed(review: AdmissionAttributes, type: str, value: Any) -> Object:
    """The object after a mutation. Raises PatchError, Refused."""
    if type == "JSONPatch":
        found = json_patch(review.obj, value)
        if not isinstance(found, dict):
            raise PolicyRefusal("the patch leaves no object")
        return found
    if not isinstance(value, dict):
        raise PolicyRefusal("an apply configuration is an Object")
    head = {key: review.obj[key] for key in ("apiVersion", "kind") if key in review.obj}
    return merged(review.kind.shape, review.obj, value | head)
