"""HyperNodes made from the labels of nodes, as topologies describe them (`HyperNodeTree`). Those that a user made are left alone.

The topologies come from the command line and from a ConfigMap, which may change at any time. If there is neither, no HyperNode is made or
deleted.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from pumice.api import InputError, Key, Object, key_of, kinds, name_of, yaml
from pumice.api.annotations import NETWORK_SOURCE
from pumice.api.json_objects import labels_of, suffix, terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.volcano.hypernode import ALL, all_if_it_says_more, moved
from pumice.controllers.volcano.hypernode_tree import FILE, HyperNodeTree, topologies_in
from pumice.controllers.writes import Create, Emit, Write, change, delete

BY_LABEL = "label"
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
            kinds.HYPER_NODE: all_if_it_says_more,
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
