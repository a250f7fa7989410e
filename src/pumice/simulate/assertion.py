"""What a comparison must come to: `p95(wait, queue=team-a) < 30m`, `utilisation.gpu > 70%`, `evictions <= 10`.

On the left a measure by its path, as in summary.json, or a statistic of a distribution: mean, p50, p90, p95, p99, max. `queue=NAME` asks of
one queue. On the right a number, per cent, or a duration.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pumice.api.errors import InputError, did_you_mean
from pumice.simulate.columns import BY_RESOURCE, DISTRIBUTIONS, NUMBERS, OVER_TIME
from pumice.simulate.draws import seconds

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
OPERATORS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}

_FORM = re.compile(r"\s*(?:(\w+)\(\s*(\w+)\s*(?:,\s*queue\s*=\s*([^\s()]+)\s*)?\)|([\w.]+))\s*(<=|>=|<|>)\s*(\S+)\s*\Z")


class Assertion(NamedTuple):
    text: str
    path: tuple[str, ...]  #: in the measures
    queue: str
    holds: Callable[[float, float], bool]
    bound: float

    def of(self, summary: Mapping[str, Any]) -> float | None:
        """The value that is asked about, if there is one."""
        value: Any = summary["queues"].get(self.queue) if self.queue else summary["measures"]
        for step in self.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value if isinstance(value, int | float) else None

    def fails(self, summary: Mapping[str, Any]) -> bool:
        value = self.of(summary)
        return value is None or not self.holds(value, self.bound)


def assertion_of(text: str) -> Assertion:
    """The assertion that is written. Raises InputError, which names the column."""
    match = _FORM.match(text)
    if match is None:
        raise _wrong(text, _first_fault(text), "write such as 'p95(wait, queue=team-a) < 30m' or 'utilisation.gpu > 70%'")
    statistic, measure, queue, plain, compare, right = match.groups()
    if plain is None:
        if statistic not in STATISTICS:
            raise _wrong(text, match.start(1), f'there is no statistic "{statistic}"; known: {", ".join(STATISTICS)}')
        if measure not in (*DISTRIBUTIONS, *OVER_TIME):
            raise _wrong(text, match.start(2), f'"{measure}" is no distribution{did_you_mean(measure, DISTRIBUTIONS)}')
        path: tuple[str, ...] = (measure, statistic)
    else:
        path = tuple(plain.split("."))
        known = (*DISTRIBUTIONS, *OVER_TIME, *BY_RESOURCE, *NUMBERS)
        if path[0] not in known:
            raise _wrong(text, match.start(4), f'there is no measure "{path[0]}"{did_you_mean(path[0], known)}')
    return Assertion(text, path, queue or "", OPERATORS[compare], _bound(text, right, match.start(6)))


def _first_fault(text: str) -> int:
    """Where the comparison is missing, or what follows it."""
    found = re.search(r"<=|>=|<|>", text)
    return len(text) if found is None else found.end() if not text[found.end() :].strip() else 0


def _bound(text: str, right: str, column: int) -> float:
    try:
        if right.endswith("%"):
            return float(right[:-1]) / 100
        return float(right) if right.replace(".", "", 1).isdigit() else seconds(right)
    except ValueError:
        raise _wrong(text, column, f'"{right}" is no number, per cent or duration') from None


def _wrong(text: str, column: int, message: str) -> InputError:
    return InputError(f"{text!r}, column {column + 1}: {message}", where="--assert")
