"""Conditions on the results of simulations: `p95(wait, queue=team-a) < 30m`, `utilisation.gpu > 70%`, `evictions <= 10`.

On the left is a measure by its path, as in summary.json, or a statistic of a distribution: mean, p50, p90, p95, p99, max. `queue=NAME`
selects one queue. On the right is a number, a percentage, a duration, or, where there is something to compare with, a multiple such as
`1.02x` of what the measure was before.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pumice.api import InputError, did_you_mean
from pumice.simulate.arrival_times import seconds
from pumice.simulate.output_columns import BY_RESOURCE, DISTRIBUTIONS, NUMBERS, OVER_TIME
from pumice.simulate.record import RESOURCES

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
OPERATORS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
BETTER_IF_MORE = ("utilisation", "goodput", "fairness", "jobs", "done")

_LEFT = r"\s*(?:(\w+)\(\s*(\w+)\s*(?:,\s*queue\s*=\s*([^\s()]+)\s*)?\)|([\w.]+))\s*"
_MEASURE = re.compile(rf"{_LEFT}\Z")
_FORM = re.compile(rf"{_LEFT}(<=|>=|<|>)\s*(\S+)\s*\Z")
_MULTIPLE = re.compile(r"(\d+(?:\.\d+)?)x\Z")


class ResultNumber(NamedTuple):
    """One number of the results of a simulation."""

    path: tuple[str, ...]  #: of the value in the measures
    queue: str = ""

    def of(self, summary: Mapping[str, Any]) -> float | None:
        """The value; None if the summary has none."""
        value: Any = summary["queues"].get(self.queue) if self.queue else summary["measures"]
        for step in self.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value if isinstance(value, int | float) else None

    @property
    def name(self) -> str:
        """Its path in summary.json."""
        return ".".join(self.path)

    @property
    def better_if_more(self) -> bool:
        return self.path[0] in BETTER_IF_MORE

    def __str__(self) -> str:
        if self.path[0] not in (*DISTRIBUTIONS, *OVER_TIME):
            return self.name
        return f"{self.path[1]}({self.path[0]}{f', queue={self.queue}' if self.queue else ''})"


class ResultCondition(NamedTuple):
    text: str
    measured: ResultNumber
    holds: Callable[[float, float], bool]
    bound: float
    is_multiple: bool = False  #: the bound counts multiples of the value before

    def fails(self, summary: Mapping[str, Any]) -> bool:
        value = self.measured.of(summary)
        return value is None or not self.holds(value, self.bound)


def measured_of(text: str, option: str) -> ResultNumber:
    """The measure that `text` names. Raises InputError, which names the column."""
    match = _MEASURE.match(text)
    if match is None:
        found = re.search(r"[<>]", text)
        message = "an objective has no bound; conditions are given with --keep" if found else "write such as 'p95(wait, queue=team-a)'"
        raise _wrong(option, text, found.start() if found else 0, message)
    return _measured(text, match, option)


def condition_of(text: str, option: str = "--assert", *, multiples: bool = False) -> ResultCondition:
    """The condition that `text` describes. Raises InputError, which names the column."""
    match = _FORM.match(text)
    if match is None:
        raise _wrong(option, text, _first_fault(text), "write such as 'p95(wait, queue=team-a) < 30m' or 'utilisation.gpu > 70%'")
    measured, right, column = _measured(text, match, option), match.group(6), match.start(6)
    multiple = _MULTIPLE.match(right)
    if multiple and multiples:
        return ResultCondition(text, measured, OPERATORS[match.group(5)], float(multiple.group(1)), is_multiple=True)
    try:
        bound = _bound(right)
    except ValueError:
        known = "number, per cent, duration or multiple such as 1.02x" if multiples else "number, per cent or duration"
        raise _wrong(option, text, column, f'"{right}" is no {known}') from None
    return ResultCondition(text, measured, OPERATORS[match.group(5)], bound)


def _measured(text: str, match: re.Match[str], option: str) -> ResultNumber:
    statistic, measure, queue, plain = match.groups()[:4]
    if plain is None:
        if statistic not in STATISTICS:
            raise _wrong(option, text, match.start(1), f'there is no statistic "{statistic}"; known: {", ".join(STATISTICS)}')
        if measure not in (*DISTRIBUTIONS, *OVER_TIME):
            raise _wrong(option, text, match.start(2), f'"{measure}" is no distribution{did_you_mean(measure, DISTRIBUTIONS)}')
        return ResultNumber((measure, statistic), queue or "")
    path = tuple(plain.split("."))
    known = (*DISTRIBUTIONS, *OVER_TIME, *BY_RESOURCE, *NUMBERS)
    if path[0] not in known:
        raise _wrong(option, text, match.start(4), f'there is no measure "{path[0]}"{did_you_mean(path[0], known)}')
    if path not in (numbers := _numbers(path[0])):
        raise _wrong(option, text, match.start(4), f'"{plain}" is no number of a simulation; known: {", ".join(numbers.values())}')
    return ResultNumber(path)


def _numbers(measure: str) -> dict[tuple[str, ...], str]:
    """The paths of a measure's numbers, and how they are written."""
    if measure in NUMBERS:
        return {(measure,): measure}
    if measure in BY_RESOURCE:
        return {(measure, each): f"{measure}.{each}" for each in RESOURCES}
    return {(measure, each): f"{each}({measure})" for each in STATISTICS}


def _first_fault(text: str) -> int:
    """The index at which the comparison is missing, or its right side; 0 if it is another fault."""
    found = re.search(r"<=|>=|<|>", text)
    return len(text) if found is None else found.end() if not text[found.end() :].strip() else 0


def _bound(right: str) -> float:
    """The number, share or duration; a minus before it makes it negative, as fairness may be. Raises ValueError."""
    if right.startswith("-") and not right.startswith("--"):
        return -_bound(right[1:])
    if right.endswith("%"):
        return seconds(float(right[:-1])) / 100
    return float(right) if right.replace(".", "", 1).isdigit() else seconds(right)


def _wrong(option: str, text: str, column: int, message: str) -> InputError:
    return InputError(f"{text!r}, column {column + 1}: {message}", where=option)
