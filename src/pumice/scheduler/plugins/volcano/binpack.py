"""binpack: prefer the nodes that are fullest in the resources the task asks for (`plugins/resource_fullness.py`)."""

from typing import Annotated, Any

from msgspec import Struct, field

from pumice.scheduler.engine import Scorer
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import OneOf, Range, Task
from pumice.scheduler.plugins.resource_fullness import ResourceFullness


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
        strategies = {name: (weight if weight >= 0 else 1, False) for name, weight in weights.items()}
        return [Fullness(strategies, self.args.weight, self.session.cluster.dimensions.names)]


class Fullness(ResourceFullness):
    name = "binpack"

    def prepare(self, task: Task) -> Any:
        return self.parts(task.template, self.strategies.get)
