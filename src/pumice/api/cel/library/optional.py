"""Optional values."""

from collections.abc import Mapping
from typing import Any

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import function, method
from pumice.api.cel.values import Optional, Span

NONE = Optional(False)


function("optional.of(A) optional_type<A>")(lambda value: Optional(True, value))
function("optional.none() optional_type<A>")(lambda: NONE)


@function("optional.ofNonZeroValue(A) optional_type<A>")
def of_non_zero(value: Any) -> Optional:
    empty = value in (None, Span(0)) if not isinstance(value, bool | int | float | str | bytes | list | Mapping) else not value
    return NONE if empty else Optional(True, value)


method("hasValue(optional_type<A>) bool")(lambda value: value.present)


@method("value(optional_type<A>) A")
def value_of(value: Optional) -> Any:
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


method("or(optional_type<A>, optional_type<A>) optional_type<A>")(lambda value, other: value if value.present else other)
method("orValue(optional_type<A>, A) A")(lambda value, other: value.value if value.present else other)


@function("optional.unwrap(list<optional_type<A>>) list<A>", pays=True)
@method("unwrapOpt(list<optional_type<A>>) list<A>", pays=True)
def unwrap(budget: CostBudget, items: list[Any]) -> list[Any]:
    if not all(isinstance(item, Optional) for item in items):
        raise EvaluationError("no such overload")
    budget.pay(len(items) // 16)
    return [item.value for item in items if item.present]
