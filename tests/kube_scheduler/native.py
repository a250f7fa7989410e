"""Small clusters with Kubernetes' own PodGroups: builders, and what a cycle by the rules of 1.37 comes to."""

from __future__ import annotations

from typing import Any, NamedTuple

from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP
from pumice.api.structs import KEPT, STRUCTS, convert
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.pods_to_try import EVERYBODY, WaitingPods
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing.builders import Builder, PodBuilder
from tests.kube_scheduler.stage import NOW, cluster, existing, waiting

TOPOLOGY = {"TopologyAwareWorkloadScheduling": True}
TREES = {"TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True}
CLAIMS = {"DRAWorkloadResourceClaims": True}


class GroupBuilder(Builder):
    """A PodGroup or CompositePodGroup."""

    def build(self) -> tuple[str, Any]:
        kept_as = self.document["kind"]
        return kept_as, convert(self.document, STRUCTS[KEPT[kept_as]])


def group(name: str, minimum: int = 0, *, key: str = "", priority: int = 0, whole: bool = False, parent: str = "") -> GroupBuilder:
    """A PodGroup with a minimum; without one its policy is basic. `key`: of its topology constraint. `whole`: it is evicted as a whole."""
    return _made(NATIVE_POD_GROUP, name, {"gang": {"minCount": minimum}} if minimum else {"basic": {}}, key, priority, whole, parent)


def tree(name: str, minimum: int = 0, *, key: str = "", priority: int = 0, whole: bool = False, parent: str = "") -> GroupBuilder:
    """A CompositePodGroup with a minimum of groups."""
    policy = {"gang": {"minGroupCount": minimum}} if minimum else {"basic": {}}
    return _made(COMPOSITE_POD_GROUP, name, policy, key, priority, whole, parent)


def _made(kind: str, name: str, policy: dict[str, Any], key: str, priority: int, whole: bool, parent: str) -> GroupBuilder:
    spec = {
        "schedulingPolicy": policy,
        "priority": priority,
        "disruptionMode": {"all": {}} if whole else {"single": {}},
        **({"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}),
        **({"parentCompositePodGroupName": parent} if parent else {}),
    }
    return GroupBuilder({"kind": kind, "metadata": {"name": name, "namespace": "default", "generation": 1}, "spec": spec})


def member(name: str, of: str, cpu: int | str = 1, priority: int = 0) -> PodBuilder:
    return waiting(name, cpu, priority).having("spec", "schedulingGroup", value={"podGroupName": of})


def running(name: str, of: str, on: str, cpu: int | str = 1, priority: int = 0, since: str | None = None) -> PodBuilder:
    made = existing(name, on, cpu, priority) if since is None else existing(name, on, cpu, priority, since)
    return made.having("spec", "schedulingGroup", value={"podGroupName": of})


class Outcome(NamedTuple):
    binds: dict[str, str]
    evictions: list[str]
    nominations: dict[str, str]
    told: dict[str, str]  #: pod to reason and message
    groups: dict[str, tuple[str, str]]  #: PodGroup to reason and message of its condition


def policy(gates: dict[str, bool] | None = None, conf: str = KUBE_DEFAULT) -> Policy:
    rules = release(37, {"GenericWorkload": True} | (gates or {}))
    return read_configurations([config_text(conf, "test")], PLUGINS, release=rules)[0]


def run(made: Cluster, chosen: Policy, now: float = NOW, queue: WaitingPods = EVERYBODY, world: World = NOWHERE) -> Outcome:
    """The outcome of one cycle, which is carried out."""
    decided = cycle(made, chosen, now, world, queue)
    made.check()
    outcome = Outcome(
        {bind.task.name: bind.node for bind in decided.binds},
        [eviction.task.name for eviction in decided.evictions],
        {task.name: node for task, node in decided.nominations.items()},
        {told.task.name: f"{told.reason}: {told.message}" for told in decided.waiting},
        {key.partition("/")[2]: (told.reason, told.message) for key, told in decided.native_groups.items()},
    )
    advance(made, decided, now)
    return outcome


def play(*objects: Any, gates: dict[str, bool] | None = None, conf: str = KUBE_DEFAULT, cycles: int = 1, world: World = NOWHERE) -> Outcome:
    """The outcome of the last of some cycles."""
    chosen = policy(gates, conf)
    made = cluster(chosen, *objects)
    for number in range(cycles):
        outcome = run(made, chosen, NOW + number, world=world)
    return outcome
