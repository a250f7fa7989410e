"""resource-strategy-fit: pack or spread by resource; keep GPU nodes free of pods that need no GPU.

Each resource has a strategy of its own: MostAllocated packs, LeastAllocated spreads. A pod may bring another by annotation.
`sra` scores nodes down for every scarce resource they have; `proportional` keeps so much cpu and memory idle per idle unit of a
scarce resource, against pods that do not ask for that.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import SCORING_TYPE, SCORING_WEIGHT
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import CPU, MEMORY, PODS, Task
from pumice.scheduler.plugins.resource_fullness import ResourceFullness

LEAST, MOST = "LeastAllocated", "MostAllocated"
DEFAULT_WEIGHT = 10
GIGA = 1_000_000  #: bytes per GB, for each thousandth of a unit


class FitStrategy(Struct):
    type: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    weight: int = 1


class SraArgs(Struct):
    enable: bool = False
    resources: str = ""
    weight: int = DEFAULT_WEIGHT
    resource_weight: dict[str, int] = field(name="resourceWeight", default_factory=dict)


class ProportionalArgs(Struct):
    enable: bool = False
    resources: str = ""
    proportion: dict[str, float] = field(name="resourceProportion", default_factory=dict)


class StrategyArgs(Struct):
    weight: int = field(name="resourceStrategyFitWeight", default=DEFAULT_WEIGHT)
    resources: dict[str, FitStrategy] = field(default_factory=lambda: {"cpu": FitStrategy(), "memory": FitStrategy()})
    sra: SraArgs = field(default_factory=SraArgs)
    proportional: ProportionalArgs = field(default_factory=ProportionalArgs)


class ResourceStrategyFit(Plugin):
    name = "resource-strategy-fit"
    reads_only_state = True
    Args = StrategyArgs

    def scorers(self) -> list[Scorer]:
        args = self.args
        strategies = {name: (s.weight if s.weight > 0 else 1, s.type == LEAST) for name, s in args.resources.items() if _usable(name)}
        found: list[Scorer] = [FitByStrategy(strategies, args.weight if args.weight >= 0 else DEFAULT_WEIGHT, self._names())]
        if args.sra.enable:
            found.append(
                SpareScarce({name: args.sra.resource_weight.get(name, 1) for name in _listed(args.sra.resources)}, args.sra.weight)
            )
        return found

    def filters(self) -> list[Filter]:
        args = self.args.proportional
        if not args.enable:
            return []
        return [KeepProportion({name: (_rate(args, name, "cpu"), _rate(args, name, "memory")) for name in _listed(args.resources)})]

    def _names(self) -> Sequence[str]:
        return self.session.cluster.dimensions.names


def _usable(name: str) -> bool:
    """Whether the text is a resource name, or a prefix followed by a star."""
    return "*" not in name[:-1] and name != "*"


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _rate(args: ProportionalArgs, resource: str, of: str) -> float:
    rate = args.proportion.get(f"{resource}.{of}", 1.0)
    return rate if rate >= 0 else 1.0


def best_match(name: str, known: Mapping[str, Any]) -> Any:
    """The value for this very name, else for its longest prefix that is followed by a star; None if there is none."""
    if name in known:
        return known[name]
    prefixes = [pattern for pattern in known if pattern.endswith("*") and name.startswith(pattern[:-1])]
    return known[max(prefixes, key=len)] if prefixes else None


class FitByStrategy(ResourceFullness):
    """How full or how empty the node would be, each resource by its own strategy."""

    name = "resource-strategy-fit"

    def key(self, task: Task) -> Hashable:
        return task.annotations.get(SCORING_TYPE), task.annotations.get(SCORING_WEIGHT)

    def prepare(self, task: Task) -> Any:
        own = _own_strategies(task)
        strategies = self.strategies if own is None else own
        return self.parts(task.template, lambda name: best_match(name, strategies)) or None


def _own_strategies(task: Task) -> dict[str, tuple[float, bool]] | None:
    """The strategies that the pod's annotations give; None if they give no type, empty if type or weights cannot be read."""
    kind = task.annotations.get(SCORING_TYPE)
    if kind is None:
        return None
    try:
        weights = msgspec.json.decode(task.annotations.get(SCORING_WEIGHT, ""), type=dict[str, int])
    except msgspec.DecodeError:
        return {}
    return {name: (weight, kind == LEAST) for name, weight in weights.items()} if kind in (LEAST, MOST) else {}


class SpareScarce(Scorer):
    """The score of a node: higher if it has fewer of the listed resources, 0 if it lacks a resource that the pod requests."""

    name = "resource-strategy-fit-sra"
    reach = Reach.STATIC

    def __init__(self, weights: dict[str, int], weight: float) -> None:
        self.weights = weights
        self.weight = weight * MAX_SCORE

    def prepare(self, task: Task) -> Any:
        return task.template if sum(self.weights.values()) > 0 else None

    def score(self, template: Any, nodes: View) -> Scores:
        present = np.zeros(len(nodes))
        for name, weight in self.weights.items():
            column = nodes.column(name)
            if column is not None:
                present += (nodes.allocatable[column] > 0) * weight
        has_all = (nodes.allocatable[template.columns] > 0).all(axis=0)
        return np.where(has_all, 1.0 - present / sum(self.weights.values()), 0.0)


class KeepProportion(Filter):
    """Refuses nodes that would keep too little cpu or memory idle per idle unit of a listed resource, if the pod requests none of these."""

    name = "resource-strategy-fit"
    reach = Reach.NODE
    plannable = True

    def __init__(self, rates: dict[str, tuple[float, float]]) -> None:
        self.rates = rates

    def prepare(self, task: Task) -> Any:
        return task.template

    def refuse(self, template: Any, nodes: View) -> Sequence[Refused]:
        columns = {name: column for name in self.rates if (column := nodes.column(name)) is not None}
        if any(template.request[column] > 0 for column in columns.values()):
            return []
        left = nodes.idle[:PODS] - template.request[:PODS, None]
        refusals = []
        for name, column in columns.items():
            idle = nodes.allocatable[column] - nodes.used[column]
            cpu, memory = self.rates[name]
            short = (left[CPU] < idle * cpu) | (left[MEMORY] < idle * memory * GIGA)
            reason = Reason(f"proportional of resource {name} check failed", final=True)
            refusals.append(Refused((nodes.allocatable[column] > 0) & short, reason))
        return refusals
