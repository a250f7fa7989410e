"""Problems, and the settings of the rules: the flags of Volcano's webhook manager that change them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.api import did_you_mean
from pumice.api.quantity import QuantityError, quantity

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

A_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', of these at most 63, with no '-' at its ends"
)


class Problem(Struct, frozen=True):
    """A field of an object that must be written differently, and how."""

    field: str  #: a path such as "spec.tasks[0].replicas"
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Settings(Struct, frozen=True):
    """The settings of the rules, like the webhook manager's flags and with the same defaults."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    max_queue_depth: int = 5
    check_allocated_pods: bool = False  #: refuse to delete a queue that holds pods
    protect_root: bool = True  #: the root queue's amounts cannot be changed
    queue_gates: bool = False  #: pods that ask for it wait behind a scheduling gate until their queue has room
    resource_groups: Sequence[Mapping[str, Any]] = ()  #: the `resourceGroups` of the admission ConfigMap


def readable(field: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """These problems. If a value is not of the type that their check expects, one more problem says so and is the last."""
    try:
        yield from problems
    except (AttributeError, KeyError, TypeError, ValueError):
        yield Problem(field, "a value in it has another type than it should have, such as a text in the place of a list")


def not_negative(value: Any, field: str) -> Iterable[Problem]:
    if value is not None and value < 0:
        yield Problem(field, f"{value} is negative; write 0 or more")


def amounts(resources: Any, field: str) -> tuple[dict[str, int], list[Problem]]:
    """The amounts of a resource list in exact thousandths, without those that cannot be read; and the problems with it."""
    found: dict[str, int] = {}
    problems = []
    for name, text in (resources or {}).items():
        try:
            read = quantity(text)
        except QuantityError as error:
            problems.append(Problem(f"{field}.{name}", str(error)))
            continue
        if read.milli < 0:
            problems.append(Problem(f"{field}.{name}", f'"{text}" is negative; write 0 or more'))
        found[name] = read.milli
    return found, problems


def one_of(value: Any, allowed: Iterable[str], field: str) -> Iterable[Problem]:
    names = list(allowed)
    if value is not None and value not in names:
        yield Problem(field, f'"{value}" is not known; write one of {", ".join(names)}')


#: names that are compared for a hint: each comparison costs as much as a thousand look-ups
MOST_HINTS, MOST_COMPARED = 3, 100


class KnownNames:
    """Names that others must be among. `hint` proposes a name that is most like one that is not, for the first few of those."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = set(names)
        self._compared = list(dict.fromkeys(names))[:MOST_COMPARED]
        self._hints = 0

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def hint(self, name: str) -> str:
        self._hints += 1
        return did_you_mean(name, self._compared) if self._hints <= MOST_HINTS else ""


def loop(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """A path in the graph that ends where it began; empty if there is none. Names without an entry depend on nothing."""
    done: set[str] = set()
    for start in graph:
        path, waiting = {start: None}, [iter(graph[start])]
        while waiting:
            following = next(waiting[-1], None)
            if following is None:
                waiting.pop()
                done.add(path.popitem()[0])
            elif following in path:
                names = list(path)
                return [*names[names.index(following) :], following]
            elif following not in done:
                path[following] = None
                waiting.append(iter(graph.get(following, ())))
    return []
