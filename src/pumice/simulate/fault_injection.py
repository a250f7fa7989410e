"""Carries out faults: jobs are disturbed as they come; nodes, the scheduler and its link to the API server are lost and come back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil
from random import Random

from pumice.api.core import Node
from pumice.simulate.fault_settings import Faults, Losses
from pumice.simulate.workload import Work

At = Callable[[float, Callable[[], None]], None]  #: call something at an instant
Lose = Callable[[Random], Callable[[], None] | None]  #: loses something, and returns what brings it back; None if there is nothing to lose


def random_of(faults: Faults, seed: int, what: str) -> Random:
    """The random generator for one kind of faults."""
    return Random(f"{seed if faults.seed is None else faults.seed}/faults/{what}")


def disturbed(jobs: Iterator[Work], faults: Faults, seed: int) -> Iterator[Work]:
    """The jobs with slow pods and wrong estimates."""
    slow, wrong = random_of(faults, seed, "pods"), random_of(faults, seed, "jobs")
    for work in jobs:
        if faults.stragglers is not None:
            share, factor = faults.stragglers
            work = replace(work, slow={number: factor for number in range(work.pods) if slow.random() < share} or None)
        if faults.estimates is not None:
            expected = work.run if work.estimate is None else work.estimate
            work = replace(work, estimate=expected * faults.estimates(wrong))
        yield work


class Accidents:
    """Something is lost and comes back, again and again while `goes_on` is true. It happens at whole seconds, as objects have these."""

    def __init__(self, losses: Losses, random: Random, at: At, lose: Lose) -> None:
        self._losses, self._random, self._at, self._lose = losses, random, at, lose

    def begin(self, now: float, goes_on: Callable[[], bool]) -> None:
        self._goes_on = goes_on
        self._plan(now)

    def _plan(self, now: float) -> None:
        when = float(ceil(now + self._random.expovariate(self._losses.rate)))
        self._at(when, lambda: self._happen(when))

    def _happen(self, now: float) -> None:
        if not self._goes_on():
            return
        back = self._lose(self._random)
        if back is not None:
            self._at(float(ceil(now + self._losses.back(self._random))), back)
        self._plan(now)


class NodeLosses:
    """Nodes fail, one after the other, and join again."""

    def __init__(self, nodes: list[Node], fail: Callable[[str], None], join: Callable[[Node], None]) -> None:
        self._up = {node.metadata.name: node for node in nodes}
        self._fail, self._join = fail, join

    def lose(self, random: Random) -> Callable[[], None] | None:
        if not self._up:
            return None
        name = random.choice(sorted(self._up))
        node = self._up.pop(name)
        self._fail(name)
        return lambda: self._back(node)

    def _back(self, node: Node) -> None:
        self._up[node.metadata.name] = node
        self._join(node)


def accidents_of(faults: Faults, seed: int, at: At, losable: Mapping[str, Lose]) -> Iterator[Accidents]:
    """The accidents that the faults have. `losable`: what may be lost, by the name of its field in `Faults`."""
    for name, lose in losable.items():
        losses: Losses | None = getattr(faults, name)
        if losses is not None:
            yield Accidents(losses, random_of(faults, seed, name), at, lose)
