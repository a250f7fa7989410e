"""Numbers and instants as a workload file describes them: one value, a distribution, arrivals; drawn with a seeded generator.

`30m`, `{exponential: 1h}`, `{lognormal: 1h, sigma: 1.5}` (the median), `{uniform: [1m, 1h]}`, `{choice: {1: 5, 8: 1}}` (values and their
weights).
"""

from collections.abc import Callable, Mapping
from math import inf
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Draw = Callable[[Random], Any]

KINDS = ("exponential", "lognormal", "uniform", "choice")


def draw_of(value: Any, read: Callable[[Any], T]) -> Callable[[Random], T]:
    """A function that draws values as `value` describes them. `read` converts each written value. Raises ValueError."""
    if not isinstance(value, Mapping):
        constant = read(value)
        return lambda random: constant
    kind = next((name for name in KINDS if name in value), None)
    if kind is None or set(value) - {kind, "sigma"} or ("sigma" in value) != (kind == "lognormal"):
        raise ValueError(f"is no distribution; write one of {', '.join(KINDS)} (lognormal with sigma)")
    return _KINDS[kind](value, read)


def _exponential(value: Mapping[str, Any], read: Callable[[Any], Any]) -> Draw:
    mean = read(value["exponential"])
    return lambda random: random.expovariate(1 / mean) if mean else 0.0


def _lognormal(value: Mapping[str, Any], read: Callable[[Any], Any]) -> Draw:
    median, sigma = read(value["lognormal"]), float(value["sigma"])
    return lambda random: median * random.lognormvariate(0, sigma)


def _uniform(value: Mapping[str, Any], read: Callable[[Any], Any]) -> Draw:
    low, high = map(read, value["uniform"])
    return lambda random: random.uniform(low, high)


def _choice(value: Mapping[str, Any], read: Callable[[Any], Any]) -> Draw:
    if not isinstance(value["choice"], Mapping) or not value["choice"]:
        raise ValueError("choice is a mapping of values to weights")
    values, weights = [read(each) for each in value["choice"]], [float(weight) for weight in value["choice"].values()]
    if min(weights) < 0 or not 0 < sum(weights) < inf:
        raise ValueError("weights of a choice are numbers, none below 0 and not all 0")
    return lambda random: random.choices(values, weights)[0]


_KINDS: dict[str, Callable[[Mapping[str, Any], Callable[[Any], Any]], Draw]] = {
    "exponential": _exponential,
    "lognormal": _lognormal,
    "uniform": _uniform,
    "choice": _choice,
}
