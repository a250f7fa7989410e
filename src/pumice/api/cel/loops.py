"""The macros over lists and maps: `all`, `exists`, `filter`, `map` and similar ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pumice.api.cel.activation import Activation, Step
from pumice.api.cel.cost import LIST, PASSED_OVER
from pumice.api.cel.errors import CostError, EvaluationError
from pumice.api.cel.functions import NO_OVERLOAD
from pumice.api.cel.library.lists import sort_by
from pumice.api.cel.library.operators import truth

Bound = Iterator[tuple[Any, Any]]


def decided(run: Activation, decisive: bool, sides: Iterable[Step]) -> bool:
    """The value of `&&` or `||`: one operand with the decisive value is enough, even if others raise EvaluationError."""
    error: EvaluationError | None = None
    for side in sides:
        try:
            if truth(side(run)) is decisive:
                return decisive
        except CostError:
            raise
        except EvaluationError as met:
            run.budget.pay(PASSED_OVER)
            error = error or met
    if error is not None:
        raise error
    return not decisive


def _decided(decisive: bool) -> Callable[[Activation, Bound, list[Step], Any], bool]:
    def turns(run: Activation, items: Bound, part: Step) -> Iterator[Step]:
        for _ in items:
            run.budget.pay(4 if decisive else 3)
            yield part

    def decide(run: Activation, items: Bound, parts: list[Step], held: Any) -> bool:
        run.budget.pay(1)
        return decided(run, decisive, turns(run, items, parts[0]))

    return decide


def _one(run: Activation, items: Bound, parts: list[Step], held: Any) -> bool:
    count = sum(truth(parts[0](run)) for _ in items)
    run.budget.pay(2 * count + 2)
    return count == 1


def _filtered(run: Activation, items: Bound, parts: list[Step], held: Any) -> list[Any]:
    found = []
    for _, item in items:
        if truth(parts[0](run)):
            run.budget.pay(LIST + 3)
            found.append(item)
    run.budget.pay(1)
    return found


def _mapped(run: Activation, items: Bound, parts: list[Step], held: Any) -> list[Any]:
    found = []
    for _ in items:
        if len(parts) == 1 or truth(parts[0](run)):
            found.append(parts[-1](run))
            run.budget.pay(LIST + 2)
    run.budget.pay(1)
    return found


def _mapped_values(run: Activation, items: Bound, parts: list[Step], held: Any) -> dict[Any, Any]:
    found = {}
    for key, _ in items:
        if len(parts) == 1 or truth(parts[0](run)):
            found[key] = parts[-1](run)
            run.budget.pay(3)
    run.budget.pay(1)
    return found


def _mapped_entries(run: Activation, items: Bound, parts: list[Step], held: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for _ in items:
        if len(parts) == 1 or truth(parts[0](run)):
            entries = parts[-1](run)
            if not isinstance(entries, Mapping):
                raise EvaluationError(NO_OVERLOAD)
            run.budget.pay(2 + len(entries) // 16)
            for key, value in entries.items():
                if key in found:
                    raise EvaluationError(f"insert failed: key {key} already exists")
                found[key] = value
    run.budget.pay(1)
    return found


def _sorted(run: Activation, items: Bound, parts: list[Step], held: Any) -> list[Any]:
    keys = _mapped(run, items, parts, held)
    run.budget.pay(2 * len(keys) ** 2 + 13)
    return sort_by(list(held), keys)


MACROS: dict[str, Callable[[Activation, Bound, list[Step], Any], Any]] = {
    "all": _decided(False),
    "exists": _decided(True),
    "exists_one": _one,
    "existsOne": _one,
    "filter": _filtered,
    "map": _mapped,
    "transformList": _mapped,
    "transformMap": _mapped_values,
    "transformMapEntry": _mapped_entries,
    "sortBy": _sorted,
}
