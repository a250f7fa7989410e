"""A workload in a YAML file: kinds of jobs, when they come, how large they are, how long they run. docs/simulate.md shows one."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import merge
from itertools import islice, takewhile
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from msgspec.structs import fields

from pumice.api import InputError, did_you_mean, yaml
from pumice.api.core import Node
from pumice.api.files import file_bytes
from pumice.api.meta import Wire
from pumice.api.quantity import quantity
from pumice.api.structs import convert
from pumice.api.volcano import Queue, QueueSpec
from pumice.simulate.arrival_times import Instants, instants_of, rate, seconds
from pumice.simulate.fault_settings import NO_FAULTS, Api, Breaks, Faults, Losses, Stragglers
from pumice.simulate.inputs import nodes_of_pools
from pumice.simulate.workload import Role, Work, Workload, role
from pumice.simulate.workload_distributions import draw_of

TOP = ("duration", "nodes", "queues", "jobs", "faults")
QUEUE = tuple(field.encode_name for field in fields(QueueSpec))
JOB = ("name", "arrivals", "count", "run", "estimate", "pods", "minimum", "request", "queue", "user", "priority", "checkpoint")

T = TypeVar("T")
DrawOf = Callable[[Random], T]
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class JobKind:
    name: str
    arrivals: Instants
    count: int | None
    run: DrawOf[float]
    estimate: DrawOf[float] | None  #: as a multiple of the run time
    pods: DrawOf[int]
    minimum: int | None
    role: Callable[[int], Role]  #: by its number of pods
    queue: DrawOf[str]
    user: DrawOf[str]
    priority: DrawOf[int]
    checkpoint: float


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    page = WorkloadFile(path)
    end = page.read(("duration",), seconds) if "duration" in page.value else None
    kinds = page.kinds(endless=end is None)
    nodes = cluster if cluster is not None else page.nodes()
    left_out = Counter[str]()
    streams = [_jobs(kind, end, Random(f"{seed}/{number}/{kind.name}"), left_out) for number, kind in enumerate(kinds)]
    jobs = merge(*streams, key=lambda work: work.submit)
    return Workload(Path(path).name, jobs, nodes, page.queues(), left_out=left_out, faults=page.faults())


def nodes(path: str) -> list[Node]:
    return WorkloadFile(path).nodes()


def _jobs(kind: JobKind, end: float | None, random: Random, left_out: Counter[str]) -> Iterator[Work]:
    instants = kind.arrivals(random)
    if end is not None:
        instants = takewhile(lambda instant: instant < end, instants)
    for number, instant in enumerate(islice(instants, kind.count)):
        run = kind.run(random)
        estimate = run * kind.estimate(random) if kind.estimate else None
        roles = (kind.role(kind.pods(random)),)
        queue, user, priority = kind.queue(random), kind.user(random), kind.priority(random)
        if kind.minimum is not None and kind.minimum > roles[0].count:
            left_out["fewer pods than the minimum"] += 1
            continue
        yield Work(f"{kind.name}-{number:06d}", instant, run, roles, queue, user, priority, estimate, kind.minimum, kind.checkpoint)


class WorkloadFile:
    """A workload file. Its errors name the line."""

    def __init__(self, path: str) -> None:
        data = file_bytes(path)
        self._path = path
        found = next(iter(yaml.documents(data, path)), None)
        if found is None or not isinstance(found.value, dict) or not isinstance(found.value.get("jobs"), list):
            raise InputError("is no workload; write a mapping with `jobs:`, a list of kinds of jobs", where=path)
        self._document = found
        self.value: dict[str, Any] = found.value
        self._known((), TOP)

    def _known(self, place: Place, names: tuple[str, ...]) -> None:
        for name in self._at(place):
            if name not in names:
                raise self._document.error(f'there is no setting "{name}"{did_you_mean(str(name), names)}', (*place, name))

    def _at(self, place: Place) -> Any:
        value: Any = self.value
        for step in place:
            value = value[step]
        return value

    def read(self, place: Place, how: Callable[[Any], T]) -> T:
        try:
            return how(self._at(place))
        except (ValueError, TypeError, OverflowError) as error:
            raise self._document.error(f"{place[-1]}: {error}", place) from None

    def nodes(self) -> list[Node]:
        if "nodes" not in self.value:
            raise InputError("tells no nodes; write such as `nodes: 10x8gpu`, or say --nodes", where=self._path)
        return nodes_of_pools(str(self.value["nodes"]))

    def queues(self) -> list[tuple[str, Wire]]:
        """The queues: the file has their names, each with fields of a Queue's spec."""
        named = self.read(("queues",), _mapping) if "queues" in self.value else {}
        for name in named:
            if self.read(("queues", name), _mapping):
                self._known(("queues", name), QUEUE)
        return [("Queue", self.read(("queues", name), partial(_queue, name))) for name in named]

    def faults(self) -> Faults:
        """The faults that the block `faults:` describes."""
        if "faults" not in self.value:
            return NO_FAULTS
        self._known(("faults",), tuple(_FAULTS))
        read: dict[str, Any] = {_FIELDS.get(name, name): self.read(("faults", name), _FAULTS[name]) for name in self.value["faults"]}
        return Faults(**read)

    def kinds(self, *, endless: bool) -> list[JobKind]:
        found: dict[str, JobKind] = {}
        for number in range(len(self.value["jobs"])):
            kind = self._kind(("jobs", number), endless)
            if found.setdefault(kind.name, kind) is not kind:
                raise self._document.error(f'two kinds of jobs are called "{kind.name}"; give each a `name:` of its own', ("jobs", number))
        return [*found.values()]

    def _kind(self, place: Place, endless: bool) -> JobKind:
        given = self._at(place)
        if not isinstance(given, dict):
            raise self._document.error("a kind of jobs is a mapping", place)
        self._known(place, JOB)
        for name in ("arrivals", "run", "request"):
            if name not in given:
                raise self._document.error(f"a kind of jobs needs `{name}:`", place)
        if endless and "count" not in given and "at" not in given["arrivals"]:
            raise self._document.error("these jobs come without end; write `count:`, or `duration:` for all", place)

        def drawn(name: str, how: Callable[[Any], T], otherwise: Any) -> DrawOf[T]:
            return self.read((*place, name), lambda value: draw_of(value, how)) if name in given else draw_of(otherwise, how)

        def named(name: str, otherwise: str) -> DrawOf[str]:
            value = given.get(name, otherwise)
            return draw_of({"choice": value} if isinstance(value, dict) and "choice" not in value else value, str)

        return JobKind(
            name=str(given.get("name", f"job-{place[-1]}")),
            arrivals=self.read((*place, "arrivals"), instants_of),
            count=self.read((*place, "count"), _whole) if "count" in given else None,
            run=drawn("run", seconds, 0),
            estimate=drawn("estimate", _factor, 1) if "estimate" in given else None,
            pods=drawn("pods", _positive, 1),
            minimum=self.read((*place, "minimum"), _whole) if "minimum" in given else None,
            role=lru_cache(partial(role, requests=self.read((*place, "request"), _request))),
            queue=named("queue", "default"),
            user=named("user", ""),
            priority=drawn("priority", int, 0),
            checkpoint=self.read((*place, "checkpoint"), seconds) if "checkpoint" in given else 0.0,
        )


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise ValueError("is a mapping, such as {team-a: {weight: 2}, team-b: {}}")
    return value or {}


def _queue(name: str, spec: dict[str, Any] | None) -> Queue:
    queue = convert({"metadata": {"name": name}, "spec": {"weight": 1} | (spec or {}), "status": {"state": "Open"}}, Queue)
    if (queue.spec.weight or 0) < 1:
        raise ValueError(f"weight: {queue.spec.weight} is out of range; it must be at least 1")
    return queue


def _whole(value: Any) -> int:
    """The value as a whole number. It may be text, as keys of mappings are. Raises ValueError."""
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f'"{value}" is not a whole number')
    if (number := int(value)) >= 2**31:
        raise ValueError(f"{number} is out of range; write less than {2**31}")
    return number


def _positive(value: Any) -> int:
    if not (number := _whole(value)):
        raise ValueError("must be at least 1")
    return number


def _factor(value: Any) -> float:
    """By how much something is multiplied. Raises ValueError."""
    if not 0 <= (factor := float(value)) < 1e12:
        raise ValueError(f"{value} is out of range; write how many times as much, such as 1.5")
    return factor


def _request(value: Any) -> dict[str, str | int]:
    if not isinstance(value, dict) or not value:
        raise ValueError("is a mapping of resources to amounts")
    for name, amount in value.items():
        if quantity(amount).milli < 0:
            raise ValueError(f"{name}: {amount} is below 0")
    return dict(value)


def _taken(value: Any, needed: tuple[str, ...], *more: str) -> dict[str, Any]:
    """The value, if it is a mapping of all `needed` settings, and of no others except `more`. Raises ValueError."""
    if not isinstance(value, dict) or set(needed) - set(value) or set(value) - {*needed, *more}:
        names = ", ".join((*needed, *(f"{name} (may be left out)" for name in more)))
        raise ValueError(f"is a mapping of {names}")
    return value


def _share(value: Any) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError(f"{value} is no share; write a number from 0 to 1")
    return share


def _losses(often: str, back: str) -> Callable[[Any], Losses]:
    def read(value: Any) -> Losses:
        given = _taken(value, (often, back))
        return Losses(rate(given[often]), draw_of(given[back], seconds))

    return read


def _stragglers(value: Any) -> Stragglers:
    given = _taken(value, ("share", "factor"))
    return Stragglers(_share(given["share"]), _factor(given["factor"]))


def _breaks(value: Any) -> Breaks:
    given = _taken(value, (), "late", "by", "lost")
    return Breaks(_share(given.get("late", 0)), seconds(given.get("by", 5)), _share(given.get("lost", 0)))


def _api(value: Any) -> Api:
    given = _taken(value, (), "slow", "errors")
    return Api(draw_of(given["slow"], seconds) if "slow" in given else None, _share(given.get("errors", 0)))


_FAULTS: dict[str, Callable[[Any], Any]] = {
    "seed": int,
    "nodes": _losses("lost", "back"),
    "stragglers": _stragglers,
    "estimates": lambda value: draw_of(value, _factor),
    "scheduler": _losses("restarts", "away"),
    "clock": seconds,
    "events": _breaks,
    "api": _api,
    "link": _losses("clogged", "for"),
}
_FIELDS = {"clock": "skew_s"}
