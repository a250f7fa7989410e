"""The table of functions, methods and operators: the argument types and the result type of each, its implementation and its cost.

A signature is written as `charAt(string, int) string`; the first argument of a method is its object. A signature for several kinds is
written once, with a list of these kinds. The checker uses signatures; an evaluation uses the kinds of the actual values. Costs are counted
as in Kubernetes and paid from the budget of the evaluation; values that can grow large are paid for before they are made.
"""

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, NamedTuple, TypeVar

from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.values import CelType, kind, kind_of, size_of

Run = Callable[..., Any]
Done = TypeVar("Done", bound=Run)
Price = Callable[..., int]  #: computes the cost of a call from its arguments
ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
SUMMED = ("int", "uint", "double", "duration")
_SIGNATURE = re.compile(r"(?P<name>[^\s(]+)\((?P<takes>.*)\) (?P<gives>.+)")
NO_OVERLOAD = "no such overload"


class Overload(NamedTuple):
    takes: tuple[CelType, ...]
    gives: CelType
    run: Run
    price: Price | None  #: None: each call costs 1
    is_paid_by_itself: bool  #: `run` gets the budget as its first argument, to pay before it makes large values


class Function(NamedTuple):
    name: str
    overloads: list[Overload]
    found: dict[tuple[type, ...], Overload]  #: the overloads found so far, by the Python types of the arguments

    def overload_for(self, values: Sequence[Any]) -> Overload:
        """The overload that takes these values. Raises EvaluationError."""
        types = tuple(map(type, values))
        overload = self.found.get(types)
        if overload is None:
            kinds = list(map(kind_of, values))
            overload = next((each for each in self.overloads if _takes(each, kinds)), None)
            if overload is None:
                raise EvaluationError(NO_OVERLOAD)
            self.found[types] = overload
        return overload


FUNCTIONS: dict[str, Function] = {}
METHODS: dict[str, Function] = {}


def function(*signatures: str, each: Sequence[str] = ("",), price: Price | None = None, pays: bool = False) -> Callable[[Done], Done]:
    return _enter(FUNCTIONS, signatures, each, price, pays)


def method(*signatures: str, each: Sequence[str] = ("",), price: Price | None = None, pays: bool = False) -> Callable[[Done], Done]:
    return _enter(METHODS, signatures, each, price, pays)


def _enter(
    table: dict[str, Function], signatures: Sequence[str], each: Sequence[str], price: Price | None, pays: bool
) -> Callable[[Done], Done]:
    def enter(run: Done) -> Done:
        for text in (signature.replace("EACH", one) for signature in signatures for one in each):
            match = _SIGNATURE.fullmatch(text)
            assert match is not None, text
            takes = kind(f"list<{match['takes']}>").of if match["takes"] else ()
            named = table.setdefault(match["name"], Function(match["name"], [], {}))
            named.overloads.append(Overload(takes, kind(match["gives"]), run, price, pays))
        return run

    return enter


def _takes(overload: Overload, kinds: Sequence[str]) -> bool:
    if len(kinds) != len(overload.takes):
        return False
    return all(wanted.is_variable or wanted.is_open or wanted.name == found for found, wanted in zip(kinds, overload.takes, strict=True))


def tenth(*sizes: int) -> int:
    """The cost of reading this many characters."""
    return ceil(sum(sizes) / 10)


def by_size(text: Any, *_: Any) -> int:
    return tenth(size_of(text))


def by_twice_its_size(text: Any, *_: Any) -> int:
    return ceil(size_of(text) / 5)


def free(*_: Any) -> int:
    return 0
