"""binpack: prefer the nodes that are fullest in the resources the task asks for."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Struct, field

from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.engine.fullness import parts_of, weighted_mean
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import OneOf, Range, Task


class BinpackArgs(Struct):
    weight: Annotated[int, Range(0, 20)] = field(name="binpack.weight", default=1)
    cpu: Annotated[int, Range(0, 10)] = field(name="binpack.cpu", default=1)
    memory: Annotated[int, Range(0, 10)] = field(name="binpack.memory", default=1)
    resources: Annotated[str, OneOf("", "nvidia.com/gpu")] = field(name="binpack.resources", default="")
    named: dict[str, int] = field(default_factory=dict)  #: binpack.resources.<name>


class Binpack(Plugin):
    name = "binpack"
    tunable = True
    reads_only_state = True
    Args = BinpackArgs
    wildcard_args = ("binpack.resources.",)

    def scorers(self) -> list[Scorer]:
        if self.args.weight == 0:
            return []
        listed = [name.strip() for name in self.args.resources.split(",") if name.strip()]
        weights = {name: self.args.named.get(name, 1) for name in listed} | {"cpu": self.args.cpu, "memory": self.args.memory}
        weights = {name: weight if weight >= 0 else 1 for name, weight in weights.items()}
        return [Fullness(weights, self.args.weight, self.session.cluster.dimensions.names)]


class Fullness(Scorer):
    """The weighted mean of how full a node would be in the resources that the task requests; 0 if one would overflow."""

    name = "binpack"
    reach = Reach.NODE
    plannable = True

    def __init__(self, weights: dict[str, int], weight: float, names: Sequence[str]) -> None:
        self.weights = weights
        self.weight = weight * MAX_SCORE
        self.names = names

    def prepare(self, task: Task) -> Any:
        return parts_of(task.template, self._weigh)

    def _weigh(self, column: int) -> tuple[float, bool] | None:
        weight = self.weights.get(self.names[column])
        return None if weight is None else (weight, False)

    def score(self, parts: Any, nodes: View) -> Scores:
        return weighted_mean(parts, nodes)
