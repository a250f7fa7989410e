"""HyperNodes: `HyperNodeCounts` keeps their number of nodes, and `HyperNodeDiscovery` makes HyperNodes from the labels of nodes.

HyperNodes are made from the labels of nodes, as topologies describe them (`HyperNodeTree`). HyperNodes that a user made are left alone.

The topologies come from the command line and from a ConfigMap, which may change at any time. If there is neither, no HyperNode is made or
deleted.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from pumice.api import InputError, Key, Object, key_of, kinds, name_of, spec_of, status_of, yaml
from pumice.api.annotations import NETWORK_SOURCE
from pumice.api.json_objects import labels_of, suffix, terminating
from pumice.api.patterns import PatternError, pattern
from pumice.api.selectors import label_selector, matches
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.volcano.hyper_node_tree import FILE, HyperNodeTree, topologies_in
from pumice.controllers.writes import Create, Emit, Write, change, delete, status_change


class HyperNodeCounts:
    """Keeps `status.nodeCount`."""

    name = "hypernode-count"

    def __init__(self) -> None:
        self.watches = {kinds.HYPER_NODE: _with_wider, kinds.NODE: _all_hyper_nodes}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        hyper_node = lister.get(kinds.HYPER_NODE, "", key.name)
        if hyper_node is None or terminating(hyper_node):
            return NOTHING
        count = len(nodes_in(hyper_node, lister))
        return result(status_change(hyper_node, {**status_of(hyper_node), "nodeCount": count}))


def nodes_in(hyper_node: Object, lister: Lister, above: frozenset[str] = frozenset()) -> set[str]:
    """The names of all nodes in a HyperNode and in the HyperNodes within it. A HyperNode that contains itself adds nothing."""
    found: set[str] = set()
    inside = above | {name_of(hyper_node)}
    for member in spec_of(hyper_node).get("members") or ():
        if member.get("type") == "Node":
            found.update(name_of(node) for node in lister.all(kinds.NODE) if selects(member, node))
            continue
        for other in lister.all(kinds.HYPER_NODE):
            if name_of(other) not in inside and selects(member, other):
                found |= nodes_in(other, lister, inside)
    return found


def selects(member: Object, candidate: Object) -> bool:
    selector = member.get("selector") or {}
    if selector.get("exactMatch"):
        return bool(selector["exactMatch"].get("name") == name_of(candidate))
    if selector.get("regexMatch"):
        return _is_found(selector["regexMatch"].get("pattern") or "", name_of(candidate))
    labels = label_selector(selector.get("labelMatch"))
    return bool(labels) and matches(labels or (), labels_of(candidate))


def _is_found(text: str, name: str) -> bool:
    try:
        return bool(text) and pattern(text).found_in(name)
    except PatternError:
        return False


def _with_wider(changed: ObjectChange, lister: Lister) -> Iterable[Key]:
    if changed.old and changed.new and spec_of(changed.old) == spec_of(changed.new):
        return itself(changed, lister)
    return [Key("", name_of(each)) for each in lister.all(kinds.HYPER_NODE)]


def _all_hyper_nodes(changed: ObjectChange, lister: Lister) -> Iterable[Key]:
    if moved(changed):
        yield from (Key("", name_of(each)) for each in lister.all(kinds.HYPER_NODE))


def moved(changed: ObjectChange) -> bool:
    return not (changed.old and changed.new and labels_of(changed.old) == labels_of(changed.new))


BY_LABEL = "label"
ALL = Key("", "")  #: the only key: all nodes are handled together
CONFIG_MAP = Key("volcano-system", "volcano-controller-configmap")


class HyperNodeDiscovery:
    """Makes the HyperNodes that topologies describe. `stated` are the topologies that apply in addition to those of the ConfigMap."""

    name = "hypernode-discovery"

    def __init__(self, stated: Sequence[HyperNodeTree] = (), config_map: Key = CONFIG_MAP) -> None:
        self.stated = tuple(stated)
        self.config_map = config_map
        self.consults = ((kinds.CONFIG_MAP, config_map),)
        self.watches = {
            kinds.NODE: lambda changed, lister: (ALL,) if moved(changed) else (),
            kinds.HYPER_NODE: lambda changed, lister: (ALL,),
            kinds.CONFIG_MAP: self._configured,
        }

    def _configured(self, changed: ObjectChange, lister: Lister) -> Iterable[Key]:
        return (ALL,) if key_of(changed.object) == self.config_map else ()

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        settings = lister.get(kinds.CONFIG_MAP, *self.config_map)
        if settings is None and not self.stated:
            return NOTHING
        try:
            topologies = [*self.stated, *(topologies_in(settings) if settings is not None else ())]
        except InputError as error:
            assert settings is not None
            return result([Emit(settings, "Warning", "InvalidConfiguration", str(error))])
        nodes = [node for node in lister.all(kinds.NODE) if not terminating(node)]
        if not nodes:
            return NOTHING  # more likely the nodes could not be read yet than that there are none
        wanted = {name_of(each): each for topology in topologies for each in discovered(topology, nodes)}
        return result([*_made_so(wanted, lister), *(_not_read(settings) if settings is not None else ())])


def _not_read(config_map: Object) -> Iterator[Write]:
    """The events about sources of the ConfigMap that are enabled and that nobody here reads."""
    for document in yaml.documents((config_map.get("data") or {}).get(FILE) or "", FILE):
        for source in document.value.get("networkTopologyDiscovery") or ():
            if source.get("enabled") and source.get("source") != BY_LABEL:
                message = f"HyperNodes are not discovered by {source.get('source')}: label the nodes, and use the source {BY_LABEL}"
                yield Emit(config_map, "Warning", "UnsupportedSource", message)


def _made_so(wanted: dict[str, Object], lister: Lister) -> list[Write]:
    writes: list[Write] = []
    missing = dict(wanted)
    for each in lister.all(kinds.HYPER_NODE):
        name, ours = name_of(each), labels_of(each).get(NETWORK_SOURCE) == BY_LABEL
        if ours and name not in wanted and not terminating(each):
            writes.append(delete(each))
        elif ours and name in wanted:
            metadata = {**each["metadata"], "labels": {**labels_of(each), **labels_of(wanted[name])}}
            writes.extend(change(each, {**each, "metadata": metadata, "spec": wanted[name]["spec"]}))
        missing.pop(name, None)
    return [*writes, *map(Create, missing.values())]


def discovered(topology: HyperNodeTree, nodes: Iterable[Object]) -> list[Object]:
    """The HyperNodes that a topology describes. A node that lacks one of the labels is in none of them."""
    labels = topology.labels
    members: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for node in nodes:
        domain = tuple(labels_of(node).get(label, "") for label in labels)
        if not all(domain) or not topology.covers(node):
            continue
        members.setdefault(domain, set()).add(("Node", name_of(node)))
        for depth in range(len(labels) - 1, 0, -1):
            members.setdefault(domain[:depth], set()).add(("HyperNode", _name(topology, domain[: depth + 1])))
    return [_hyper_node(topology, domain, sorted(inside)) for domain, inside in sorted(members.items())]


def _name(topology: HyperNodeTree, domain: tuple[str, ...]) -> str:
    return f"hypernode-{topology.name.lower()}-tier{_tier(topology, domain)}-{suffix(topology.name, *domain)}"


def _tier(topology: HyperNodeTree, domain: tuple[str, ...]) -> int:
    return len(topology.labels) - len(domain) + 1


def _hyper_node(topology: HyperNodeTree, domain: tuple[str, ...], inside: list[tuple[str, str]]) -> Object:
    members = [{"type": type_, "selector": {"exactMatch": {"name": name}}} for type_, name in inside]
    fields = {"tier": _tier(topology, domain), "tierName": topology.tier_names[len(domain) - 1], "members": members}
    made = kinds.new(kinds.HYPER_NODE, "", _name(topology, domain), spec=fields)
    own = {topology.labels[len(domain) - 1]: domain[-1]}  # that of its nodes
    made["metadata"]["labels"] = {NETWORK_SOURCE: BY_LABEL, **topology.tags, **own}
    return made
