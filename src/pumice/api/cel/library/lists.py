"""CEL's functions on lists and sets."""

from itertools import pairwise
from operator import itemgetter
from typing import Any

from pumice.api.cel.cost import EACH_EXPRESSION, CostBudget
from pumice.api.cel.errors import CostError, EvaluationError
from pumice.api.cel.functions import ORDERED, SUMMED, free, function, method
from pumice.api.cel.library.operators import whole
from pumice.api.cel.values import Optional, Span, equal, kind_of

MOST_VALUES = 48  #: the most values of a list attribute that `includes` accepts
Items = list[Any]
_ORDER = {each: "number" if each in ("int", "uint", "double") else each for each in ORDERED}  #: kinds that compare have one entry


def _walked(value: Items, *_: Any) -> int:
    """The cost of reading a whole value, with the items of lists. Those of lists within count twice, since a list may be there very often;
    it is counted no further than any budget goes. Raises CostError."""
    cost, left = 0, list(value)
    while left:
        item = left.pop()
        if isinstance(item, list):
            cost += 1 + len(item)
            left += item
        else:
            cost += len(item) // 10 if isinstance(item, str | bytes) else 1
        if cost > EACH_EXPRESSION:
            raise CostError
    return cost


def _by_length(items: Items, *_: Any) -> int:
    return len(items) + 11


def _squared(items: Items, *_: Any) -> int:
    return 2 * len(items) ** 2 + 11


def _sortable(items: Items, name: str) -> None:
    kinds = {_ORDER.get(kind_of(item), "") for item in items}
    if "" in kinds:
        raise EvaluationError("list elements must be comparable" if name == "sort" else "no such overload")
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type" if name == "sort" else "no such overload")


@method("isSorted(list<EACH>) bool", each=ORDERED, price=_walked)
def is_sorted(items: Items) -> bool:
    _sortable(items, "isSorted")
    return all(one <= other for one, other in pairwise(items))


@method("sum(list<EACH>) EACH", each=SUMMED, price=_walked)
def sum_of(items: Items) -> Any:
    kinds = {kind_of(item) for item in items}
    if len(kinds) > 1 or not kinds <= {*SUMMED}:
        raise EvaluationError("no such overload")
    if kinds == {"double"}:
        return sum(items)
    if kinds == {"duration"}:
        return Span(whole(sum(item.ns for item in items)))
    return whole(sum(map(int, items)), unsigned="uint" in kinds)


method("min(list<EACH>) EACH", each=ORDERED, price=_walked)(lambda items: _extreme(items, "min"))
method("max(list<EACH>) EACH", each=ORDERED, price=_walked)(lambda items: _extreme(items, "max"))


def _extreme(items: Items, name: str) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _sortable(items, name)
    return min(items) if name == "min" else max(items)


@method("indexOf(list<A>, A) int", price=_walked, pays=True)
def index_of(budget: CostBudget, items: Items, wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted, budget)), -1)


@method("lastIndexOf(list<A>, A) int", price=_walked, pays=True)
def last_index_of(budget: CostBudget, items: Items, wanted: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], wanted, budget)), -1)


@method("slice(list<A>, int, int) list<A>", price=lambda items, start, end: max(0, min(end, len(items)) - max(start, 0)) + 11)
def slice_(items: Items, start: int, end: int) -> Items:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{what}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{what}, start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{what}, list is length {len(items)}")
    return items[start:end]


@method("flatten(list<list<A>>) list<A>", "flatten(list<dyn>, int) list<dyn>", price=free, pays=True)
def flatten(budget: CostBudget, items: Items, level: int = 1) -> Items:
    if level < 0:
        raise EvaluationError("level must be non-negative")
    found: Items = []
    budget.pay(11)
    _flatten(budget, items, min(level, 200), found)
    return found


def _flatten(budget: CostBudget, items: Items, level: int, found: Items) -> None:
    budget.pay(len(items))
    for item in items:
        if isinstance(item, list) and level:
            _flatten(budget, item, level - 1, found)
        else:
            found.append(item)


@method("distinct(list<A>) list<A>", price=_squared, pays=True)
def distinct(budget: CostBudget, items: Items) -> Items:
    found: Items = []
    for item in items:
        if not any(equal(item, other, budget) for other in found):
            found.append(item)
    return found


@method("sort(list<EACH>) list<EACH>", each=ORDERED, price=_squared)
def sort(items: Items) -> Items:
    _sortable(items, "sort")
    return sorted(items)


def sort_by(items: Items, keys: Items) -> Items:
    """The items in the order of their keys. Raises EvaluationError."""
    _sortable(keys, "sort")
    return [item for _, item in sorted(zip(keys, items, strict=True), key=itemgetter(0))]


method("reverse(list<A>) list<A>", price=_by_length)(lambda items: items[::-1])
function("lists.range(int) list<int>", price=lambda count: max(0, count) + 11)(lambda count: list(range(count)))
method("first(list<A>) optional_type<A>")(lambda items: Optional(True, items[0]) if items else Optional(False))
method("last(list<A>) optional_type<A>")(lambda items: Optional(True, items[-1]) if items else Optional(False))


def _pairs(items: Items, others: Items) -> int:
    return len(items) * len(others) + 1


@function("sets.contains(list<A>, list<A>) bool", price=_pairs, pays=True)
def contains(budget: CostBudget, items: Items, others: Items) -> bool:
    return all(any(equal(item, other, budget) for item in items) for other in others)


@function("sets.equivalent(list<A>, list<A>) bool", price=lambda items, others: 2 * len(items) * len(others) + 1, pays=True)
def equivalent(budget: CostBudget, items: Items, others: Items) -> bool:
    return contains(budget, items, others) and contains(budget, others, items)


@function("sets.intersects(list<A>, list<A>) bool", price=_pairs, pays=True)
def intersects(budget: CostBudget, items: Items, others: Items) -> bool:
    return any(any(equal(item, other, budget) for item in items) for other in others)


@method("includes(dyn, dyn) bool", price=lambda value, wanted: 1, pays=True)
def includes(budget: CostBudget, value: Any, wanted: Any) -> bool:
    """Whether a device attribute, which may be one value or a list, has the wanted value. Raises EvaluationError for too long a list."""
    if not isinstance(value, list):
        return equal(value, wanted, budget)
    if len(value) > MOST_VALUES:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {MOST_VALUES} values")
    return any(equal(item, wanted, budget) for item in value)
