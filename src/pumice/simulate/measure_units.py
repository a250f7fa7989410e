"""How people read the measures of a simulation: what each is called, in which unit it stands, and whether less of it is better."""

from typing import NamedTuple

from pumice.api.plural import plural

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
SECONDS = ("wait", "turnaround", "makespan")
SHARES = ("utilisation",)
WORK = ("goodput", "lost_work")  #: in resource-seconds
RESOURCES = {"cpu": "CPU", "gpu": "GPU", "memory": "GiB"}
GIB = 2**30


class Meaning(NamedTuple):
    text: str
    lower_is_better: bool = True


#: the measures that policies are compared by
MEANINGS = {
    "wait.mean": Meaning("mean wait"),
    "wait.p95": Meaning("95th percentile of the wait"),
    "bounded_slowdown.mean": Meaning("mean bounded slowdown"),
    "utilisation.cpu": Meaning("CPUs in use", lower_is_better=False),
    "utilisation.gpu": Meaning("GPUs in use", lower_is_better=False),
    "makespan": Meaning("makespan"),
    "evictions": Meaning("evictions"),
    "fairness.mean": Meaning("fairness (Jain's index)", lower_is_better=False),
    "fragmentation.mean": Meaning("fragmentation"),
}


def measured(name: str, value: float) -> str:
    """The value of a measure, by its path in summary.json, with its unit."""
    first, _, last = name.partition(".")
    if first in SECONDS:
        return duration(value)
    if first in SHARES:
        return f"{100 * value:.1f} %"
    if first in WORK:
        return f"{number(value / 3600 / (GIB if last == 'memory' else 1))} {RESOURCES.get(last, last)}-hours"
    return f"{number(value)} {plural(value, 'GPU')}" if first == "fragmentation" else number(value)


def number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A duration in its two largest units, as the charts show it."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    left, parts = round(seconds), []
    at = next(index for index, (size, _) in enumerate(UNITS) if left >= size)
    for size, unit in UNITS[at : at + 2]:
        count, left = divmod(left, size)
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts)
