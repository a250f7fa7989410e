"""When the jobs of a workload file come.

`{poisson: 20/h}`; `{every: 10m}`; `{at: [0s, 1m]}`; `{diurnal: 20/h, peak: 3}`, a Poisson process whose rate swings over the day: at noon
it is `peak` times the rate at midnight; `{bursts: 2/d, size: 50}`, that many jobs at once, at random instants.
"""

from collections.abc import Callable, Iterator, Mapping
from math import cos, inf, pi
from random import Random
from typing import Any

from pumice.api import duration

DAY_S = 86_400.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S}

Instants = Callable[[Random], Iterator[float]]


def seconds(value: Any) -> float:
    """A number of seconds, or a duration such as 30m or 7d. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    elif isinstance(value, str):
        found = float(value[:-1]) * DAY_S if value.endswith("d") and value[:-1].replace(".", "", 1).isdigit() else duration(value)
    else:
        raise ValueError(f'"{value}" is not a duration; write one such as 30s, 5m, 1h30m or 7d')
    if not 0 <= found < 1e12:
        raise ValueError(f'"{value}" is out of range')
    return found


def rate(value: Any) -> float:
    """A rate such as 20/h, as a number per second. Raises ValueError."""
    count, slash, unit = str(value).partition("/")
    try:
        if not slash or not 0 < float(count) < inf:
            raise ValueError
        return float(count) / UNITS[unit]
    except (ValueError, KeyError):
        raise ValueError(f'"{value}" is no rate; write one such as 20/h, 3/m or 2/d') from None


def instants_of(value: Any) -> Instants:
    """A function that yields the instants of arrivals as `value` describes them. Raises ValueError."""
    given = dict(value) if isinstance(value, Mapping) else {}
    for name, (more, make) in _MAKERS.items():
        if name in given and set(given) <= {name, *more}:
            return make(given)
    raise ValueError("says when jobs come; write poisson, every, at, diurnal (with peak) or bursts (with size)")


def _poisson(given: Mapping[str, Any]) -> Instants:
    often = rate(given["poisson"])

    def instants(random: Random) -> Iterator[float]:
        now = 0.0
        while True:
            now += random.expovariate(often)
            yield now

    return instants


def _every(given: Mapping[str, Any]) -> Instants:
    step = seconds(given["every"])
    if not step:
        raise ValueError("every: 0 never ends; write a duration such as 10m")

    def instants(random: Random) -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += step

    return instants


def _at(given: Mapping[str, Any]) -> Instants:
    listed = sorted(seconds(each) for each in given["at"])
    return lambda random: iter(listed)


def _diurnal(given: Mapping[str, Any]) -> Instants:
    mean, peak = rate(given["diurnal"]), float(given.get("peak", 3))
    if peak < 1:
        raise ValueError("peak must be at least 1")
    swing = (peak - 1) / (peak + 1)

    def instants(random: Random) -> Iterator[float]:
        """Thinning: the process has the highest rate, and an arrival is kept by the ratio of the present rate to it."""
        now = 0.0
        while True:
            now += random.expovariate(mean * (1 + swing))
            if random.random() * (1 + swing) < 1 - swing * cos(2 * pi * now / DAY_S):
                yield now

    return instants


def _bursts(given: Mapping[str, Any]) -> Instants:
    often, size = rate(given["bursts"]), int(given.get("size", 10))
    if size < 1:
        raise ValueError("size must be at least 1")

    def instants(random: Random) -> Iterator[float]:
        now = 0.0
        while True:
            now += random.expovariate(often)
            yield from [now] * size

    return instants


_MAKERS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Instants]]] = {
    "poisson": ((), _poisson),
    "every": ((), _every),
    "at": ((), _at),
    "diurnal": (("peak",), _diurnal),
    "bursts": (("size",), _bursts),
}
