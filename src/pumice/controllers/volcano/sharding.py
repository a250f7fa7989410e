"""Sharding: which nodes each of several schedulers should have, as a NodeShard for each of them.

The schedulers are served in the order of the configuration. A scheduler may have the nodes that none before it has and that all its
policies accept; they are put in order by the sum of the policies' scores, then by name; policies that limit the number take the first ones.

allocation-rate   accepts nodes whose pods request a share of their CPU between minCPUUtil and maxCPUUtil, the fullest first
warmup            prefers nodes with a label (node.volcano.sh/warmup=true)
node-limit        takes at most maxNodes

The configuration is `sharding.yaml` in a ConfigMap, which may change at any time; without one, what the flag --scheduler-configs says. A
ConfigMap that cannot be read leaves the shards as they are. The shards are decided anew after each period, and at once if nodes come, go or
change, if the share of a node changes by more than half, and if somebody else changes a NodeShard. A small change of a shard waits: only a
tenth of its nodes, or another number of them, is written. NodeShards of schedulers that are not configured are deleted.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.api import InputError, Key, Object, did_you_mean, duration, key_of, kinds, name_of, namespace_of, spec_of, status_of, yaml
from pumice.api.json_objects import annotations_of, labels_of, terminating
from pumice.api.quantity import QuantityError, quantity
from pumice.controllers.controller import Lister, ObjectChange, Result, result
from pumice.controllers.writes import Create, Emit, Write, delete, patch

FILE = "sharding.yaml"
CONFIG_MAP = Key("volcano-system", "volcano-sharding-configmap")
PERIOD_S = 60.0
LARGE_CHANGE = 0.5  #: of a node's requested share, and of its CPU: the shards are decided anew at once
MIRROR = "kubernetes.io/config.mirror"
ALL = Key("", "")  #: the only key: all shards are decided together


class ShardPolicy(Struct, frozen=True):
    """A policy for the nodes of one scheduler."""

    name: str
    weight: float = 1.0
    arguments: Mapping[str, Any] = {}


class ShardOf(Struct, frozen=True):
    """A scheduler that shall have nodes of its own, and the policies that choose them."""

    scheduler: str
    policies: tuple[ShardPolicy, ...]


class ShardingSettings(Struct, frozen=True):
    shards: tuple[ShardOf, ...]
    period_s: float = PERIOD_S
    on_changes: bool = True  #: whether nodes and pods that change decide the shards anew at once


def of_flag(text: str) -> ShardOf:
    """The scheduler that `name:type:minCPU:maxCPU:preferWarmup:minNodes:maxNodes` states. Raises InputError."""
    parts = text.split(":")
    where = "--scheduler-configs"
    if len(parts) != 7:
        raise InputError(f'"{text}" has not seven parts; write name:type:minCPU:maxCPU:preferWarmup:minNodes:maxNodes', where=where)
    least, most = (_share(part, where) for part in parts[2:4])
    limits = {"minNodes": _count(parts[5], where), "maxNodes": _count(parts[6], where)}
    return _shard({"name": parts[0], "cpuUtilizationMin": least, "cpuUtilizationMax": most, **limits}, where)


DEFAULT_SHARDS = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")  #: as --scheduler-configs


def settings_in(config_map: Object, otherwise: ShardingSettings) -> ShardingSettings:
    """The settings that a ConfigMap states; what it leaves out is as in `otherwise`. Raises InputError."""
    where = f"{namespace_of(config_map)}/{name_of(config_map)}, {FILE}"
    text = (config_map.get("data") or {}).get(FILE)
    if text is None:
        raise InputError(f"the ConfigMap has no {FILE}", where=where)
    stated: Any = next((document.value for document in yaml.documents(text, where)), None)
    schedulers = stated.get("schedulerConfigs") if isinstance(stated, dict) else None
    if not isinstance(schedulers, list) or not schedulers or not all(isinstance(each, dict) for each in schedulers):
        raise InputError("schedulerConfigs is not a list of schedulers, each with its name", where=where)
    period, trigger = stated.get("shardSyncPeriod"), stated.get("enableNodeEventTrigger")
    try:
        period_s = duration(str(period)) if period else otherwise.period_s
    except ValueError as error:
        raise InputError(str(error), where=where, field="shardSyncPeriod") from None
    shards = tuple(_shard(each, where) for each in schedulers)
    return ShardingSettings(shards, period_s or otherwise.period_s, otherwise.on_changes if trigger is None else bool(trigger))


def _shard(stated: Mapping[str, Any], where: str) -> ShardOf:
    name = stated.get("name")
    if not name or not isinstance(name, str):
        raise InputError("a scheduler of schedulerConfigs has no name", where=where)
    policies = [_policy(each, name, where) for each in stated.get("policies") or ()]
    if not policies:
        range_ = stated.get("arguments") or {
            "minCPUUtil": stated.get("cpuUtilizationMin", 0.0),
            "maxCPUUtil": stated.get("cpuUtilizationMax", 0.0),
        }
        policies = [ShardPolicy("allocation-rate", arguments=range_)]
        policies += [ShardPolicy("warmup")] if stated.get("preferWarmupNodes") else []
    limits = {key: stated[key] for key in ("minNodes", "maxNodes") if stated.get(key)}
    if limits and all(policy.name != "node-limit" for policy in policies):
        policies.append(ShardPolicy("node-limit", arguments=limits))
    for policy in policies:
        _check(policy, name, where)
    return ShardOf(name, tuple(policies))


def _policy(stated: Any, scheduler: str, where: str) -> ShardPolicy:
    name = stated.get("name") if isinstance(stated, dict) else None
    if name not in POLICIES:
        raise InputError(f'"{name}" is not a policy{did_you_mean(str(name), POLICIES)}', where=where, field=f"policies of {scheduler}")
    return ShardPolicy(name, _number(stated.get("weight") or 1, where, "weight"), stated.get("arguments") or {})


def _check(policy: ShardPolicy, scheduler: str, where: str) -> None:
    of = f"{policy.name} of {scheduler}"
    if policy.weight < 0:
        raise InputError("weight is negative", where=where, field=of)
    if policy.name == "allocation-rate":
        least, most = _range(policy, where)
        if not 0 <= least <= most <= 1:
            raise InputError(f"{least:g} to {most:g} is no range within 0 to 1", where=where, field=of)
    if policy.name == "node-limit":
        low, high = (_number(policy.arguments.get(key) or 0, where, key) for key in ("minNodes", "maxNodes"))
        if low < 0 or 0 < high < low:
            raise InputError(f"minNodes {low:g} and maxNodes {high:g} are no limits", where=where, field=of)


def _range(policy: ShardPolicy, where: str = "") -> tuple[float, float]:
    least, most = (_number(policy.arguments.get(key) or 0, where, key) for key in ("minCPUUtil", "maxCPUUtil"))
    return round(least, 2), round(most, 2)


def _number(value: Any, where: str, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f'"{value}" is not a number', where=where, field=field)
    return float(value)


def _share(text: str, where: str) -> float:
    named = {"inf": 1.0, "infinity": 1.0, "-inf": 0.0, "-infinity": 0.0}
    try:
        return named[text] if text in named else float(text)
    except ValueError:
        raise InputError(f'"{text}" is not a share from 0 to 1', where=where) from None


def _count(text: str, where: str) -> int:
    if not text.isdecimal():
        raise InputError(f'"{text}" is not a number of nodes', where=where)
    return int(text)


class ShardCandidate(Struct, frozen=True):
    """A node that a scheduler may have."""

    name: str
    share: float  #: of its CPU that pods request, from 0 to 1, to two decimal places
    labels: Mapping[str, str]


Choice = Callable[[ShardPolicy, list[ShardCandidate]], list[ShardCandidate]]
Score = Callable[[ShardPolicy, ShardCandidate], float]


def _accepted(policy: ShardPolicy, found: list[ShardCandidate]) -> list[ShardCandidate]:
    least, most = _range(policy)
    return [node for node in found if least <= node.share <= most]


def _fullness(policy: ShardPolicy, node: ShardCandidate) -> float:
    least, most = _range(policy)
    return 1.0 if least == most else (node.share - least) / (most - least)


def _is_warm(policy: ShardPolicy, node: ShardCandidate) -> float:
    label = policy.arguments.get("warmupLabel", "node.volcano.sh/warmup")
    return float(node.labels.get(label) == policy.arguments.get("warmupLabelValue", "true"))


def _limited(policy: ShardPolicy, found: list[ShardCandidate]) -> list[ShardCandidate]:
    most = int(policy.arguments.get("maxNodes") or 0)
    return found[:most] if most else found


POLICIES = ("allocation-rate", "warmup", "node-limit")
FILTERS: Mapping[str, Choice] = {"allocation-rate": _accepted}
SCORES: Mapping[str, Score] = {"allocation-rate": _fullness, "warmup": _is_warm}
LIMITS: Mapping[str, Choice] = {"node-limit": _limited}


def assigned(shards: Iterable[ShardOf], nodes: Iterable[ShardCandidate]) -> dict[str, list[str]]:
    """The nodes of each scheduler, the best first."""
    left = sorted(nodes, key=lambda node: node.name)
    found: dict[str, list[str]] = {}
    for shard in shards:
        chosen = left
        for policy in shard.policies:
            chosen = FILTERS[policy.name](policy, chosen) if policy.name in FILTERS else chosen
        scorers = [(policy, SCORES[policy.name]) for policy in shard.policies if policy.name in SCORES]
        chosen = sorted(chosen, key=lambda node: -sum(policy.weight * score(policy, node) for policy, score in scorers))
        for policy in shard.policies:
            chosen = LIMITS[policy.name](policy, chosen) if policy.name in LIMITS else chosen
        found[shard.scheduler] = [node.name for node in chosen]
        taken = set(found[shard.scheduler])
        left = [node for node in left if node.name not in taken]
    return found


class NodeShards:
    """Keeps a NodeShard for each scheduler. `stated` applies as long as there is no ConfigMap."""

    name = "sharding"

    def __init__(self, stated: ShardingSettings | None = None, config_map: Key = CONFIG_MAP) -> None:
        self._stated = stated or ShardingSettings(tuple(map(of_flag, DEFAULT_SHARDS)))
        self._settings: ShardingSettings | None = None  #: those that were last in force
        self._shares: dict[str, float] = {}  #: of each node when the shards were last decided; for the question what is a large change
        self.config_map = config_map
        self.consults = ((kinds.CONFIG_MAP, config_map),)
        self.watches = {
            kinds.NODE: self._of_node,
            kinds.POD: self._of_pod,
            kinds.NODE_SHARD: lambda change, lister: () if _same(change, spec_of) else (ALL,),
            kinds.CONFIG_MAP: lambda change, lister: (ALL,) if key_of(change.object) == config_map else (),
        }

    # -- what decides the shards anew

    def _on_changes(self) -> bool:
        return (self._settings or self._stated).on_changes

    def _of_node(self, change: ObjectChange, lister: Lister) -> Iterable[Key]:
        if not self._shares or self._settings is None:
            return (ALL,)
        if not self._on_changes() or (_same(change, labels_of) and _same(change, annotations_of) and not _resized(change)):
            return ()
        return (ALL,)

    def _of_pod(self, change: ObjectChange, lister: Lister) -> Iterable[Key]:
        if not self._on_changes() or _same(change, _holds):
            return
        for name in {name for state in change.states if (name := _node_of(state))}:
            node = lister.get(kinds.NODE, "", name)
            if node is not None and name in self._shares and abs(_share_of(node, lister) - self._shares[name]) > LARGE_CHANGE:
                yield ALL
                return

    # -- the decision

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        writes: list[Write] = []
        config_map = lister.get(kinds.CONFIG_MAP, *self.config_map)
        if config_map is None:
            self._settings = self._settings or self._stated  # a ConfigMap that was deleted leaves its settings in force
        else:
            try:
                self._settings = settings_in(config_map, self._stated)
            except InputError as error:
                writes.append(Emit(config_map, "Warning", "InvalidConfiguration", str(error)))
        settings = self._settings
        if settings is None:
            return result(writes)
        later = [(now + settings.period_s, ALL)]
        nodes = [node for node in lister.all(kinds.NODE) if not terminating(node)]
        if not nodes:
            return result(writes, later)  # more likely the nodes could not be read yet than that there are none
        self._shares = {name_of(node): _share_of(node, lister) for node in nodes}
        wanted = assigned(settings.shards, [ShardCandidate(name_of(each), self._shares[name_of(each)], labels_of(each)) for each in nodes])
        return result([*writes, *_made_so(wanted, lister)], later)


def _made_so(wanted: Mapping[str, list[str]], lister: Lister) -> Iterable[Write]:
    missing = dict(wanted)
    for shard in lister.all(kinds.NODE_SHARD):
        nodes = missing.pop(name_of(shard), None)
        if nodes is None and not terminating(shard):
            yield delete(shard)
        elif nodes is not None and _differs(spec_of(shard).get("nodesDesired") or [], nodes):
            yield patch(shard, {"spec": {"nodesDesired": nodes}})
    for name, nodes in missing.items():
        yield Create(kinds.new(kinds.NODE_SHARD, "", name, spec={"nodesDesired": nodes}))


def _differs(there: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a shard changes enough to be written: by another number of nodes, or by a tenth of them."""
    return len(there) != len(wanted) or len(set(wanted) - set(there)) >= max(1, len(wanted) // 10)


def _same(change: ObjectChange, part: Callable[[Object], Any]) -> bool:
    return change.old is not None and change.new is not None and part(change.old) == part(change.new)


def _resized(change: ObjectChange) -> bool:
    before, after = (_milli((status_of(state).get("capacity") or {}).get("cpu")) if state else 0 for state in change)
    return abs(after - before) > LARGE_CHANGE * (before + 1000)


def _share_of(node: Object, lister: Lister) -> float:
    """The share of a node's CPU that its pods request."""
    capacity = _milli((status_of(node).get("capacity") or {}).get("cpu"))
    requested = sum(_requested(pod) for pod in lister.by_field(kinds.POD, "spec.nodeName", name_of(node)))
    return round(min(1.0, requested / capacity), 2) if capacity else 0.0


def _requested(pod: Object) -> int:
    if not _node_of(pod) or MIRROR in annotations_of(pod):
        return 0
    containers = spec_of(pod).get("containers") or ()
    return sum(_milli(((each.get("resources") or {}).get("requests") or {}).get("cpu")) for each in containers)


def _holds(pod: Object) -> tuple[str, int]:
    """What a pod holds of a node: a change of it may change the node's share."""
    return _node_of(pod), _requested(pod)


def _node_of(pod: Object) -> str:
    """The node on which a pod holds room; empty if it holds none."""
    over = status_of(pod).get("phase") in ("Succeeded", "Failed")
    return "" if over else spec_of(pod).get("nodeName") or ""


def _milli(amount: Any) -> int:
    try:
        return quantity(amount).milli if amount is not None else 0
    except (QuantityError, TypeError):
        return 0
