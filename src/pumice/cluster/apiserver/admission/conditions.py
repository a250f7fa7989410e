"""Expressions of webhooks and policies: what they may name, and what is wrong with them.

Who has no such expression does not load this module, as the language takes long to load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api import Object
from pumice.api.cel.check import Environment
from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CompileError, EvaluationError
from pumice.api.cel.program import Program
from pumice.api.cel.values import AUTHORIZER, AUTHORIZER_FIELDS, BOOL, DYN, STRING, Authorizer, ResourceCheck
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, UserInfo, account_groups
from pumice.cluster.apiserver.admission.expressions import on_loop
from pumice.cluster.apiserver.auth.grants import Attributes
from pumice.cluster.apiserver.auth.rbac import allowed
from pumice.cluster.apiserver.validation.field_rules import Causes

#: the names that conditions may use
CONDITIONS = Environment(dict.fromkeys(("object", "oldObject", "request"), DYN) | {"authorizer": AUTHORIZER}, AUTHORIZER_FIELDS)
#: those that the expressions of policies may use
EXPRESSIONS = Environment(CONDITIONS.names | dict.fromkeys(("params", "namespaceObject", "variables"), DYN), AUTHORIZER_FIELDS)
TEXT = (STRING, DYN)  #: the types of an expression that makes a text, as far as they are known


def compiled(stated: Iterable[Object], environment: Environment = CONDITIONS) -> list[tuple[str, Program]]:
    """Expressions with names, compiled. Raises CompileError."""
    return [(one.get("name", ""), Program(one["expression"], environment)) for one in stated]


def conditions_hold(conditions: Iterable[tuple[str, Program]], names: Mapping[str, Any], budget: CostBudget | None) -> bool:
    """Whether all conditions hold. Raises EvaluationError if none is false and one has no value."""
    failed: list[str] = []
    budget = budget or CostBudget()
    for name, program in conditions:
        try:
            if not program.holds(names, budget):
                return False
        except EvaluationError as error:
            failed.append(f'expression "{program.text}" of condition "{name}" resulted in error: {error}')
    if failed:
        raise EvaluationError("; ".join(failed))
    return True


def names_of(review: AdmissionAttributes, request: Object, lister: AdmissionLister) -> dict[str, Any]:
    """What the expressions of conditions and policies may name."""

    def may(account: tuple[str, str] | None, verb: str, about: dict[str, str]) -> bool:
        user = review.user if account is None else UserInfo(f"system:serviceaccount:{':'.join(account)}", account_groups(account[0]))
        return on_loop(lambda: allowed(lister, user, Attributes(verb, **about)))

    authorizer, kind = Authorizer(may), review.kind
    asked = ResourceCheck(authorizer, kind.group, kind.plural, review.subresource, review.namespace, review.name)
    authorizer["requestResource"] = asked
    return {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request, "authorizer": authorizer}


def condition_causes(path: str, conditions: Iterable[Object], environment: Environment = CONDITIONS) -> Causes:
    return [cause for index, one in enumerate(conditions) for cause in expression_causes(f"{path}[{index}].expression", one, environment)]


def expression_causes(path: str, stated: Object, environment: Environment, wanted: tuple[Any, ...] = (BOOL, DYN)) -> Causes:
    """The causes for an expression that cannot be compiled, or whose value is none of the `wanted` types; none: of any type."""
    text = str(stated.get("expression") or "")
    if not text.strip():
        return [(path, "Required value")]
    try:
        found = Program(text, environment).kind
    except CompileError as error:
        return [(path, f'Invalid value: "{text}": compilation failed: {error}')]
    return [] if not wanted or found in wanted else [(path, f'Invalid value: "{text}": must evaluate to {wanted[0]}')]
