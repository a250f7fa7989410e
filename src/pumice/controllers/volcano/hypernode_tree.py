"""Network topologies by node labels, as `networkTopologyDiscovery` in volcano-controller.conf states them.

A topology is a list of node labels from the widest domain to the narrowest: nodes with equal values share a domain. The narrowest domains
are tier 1 and hold nodes, each wider domain holds the domains of the tier below. In the file, the last label is that of the node itself
and no domain. A topology has labels only, or levels with names of their own and a selector of the nodes that it covers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pumice.api import InputError, Object, name_of, namespace_of, yaml
from pumice.api.annotations import NETWORK_PROFILE
from pumice.api.json_objects import labels_of
from pumice.api.selectors import Selector, label_selector, matches

FILE = "volcano-controller.conf"


class HyperNodeTree(NamedTuple):
    name: str
    labels: tuple[str, ...]
    tier_names: tuple[str, ...]
    nodes: Selector = ()
    tags: Mapping[str, str] = {}  #: the labels that its HyperNodes get

    def covers(self, node: Object) -> bool:
        return matches(self.nodes, labels_of(node))


def by_labels(name: str, labels: tuple[str, ...]) -> HyperNodeTree:
    return HyperNodeTree(name, labels, labels)


def topologies_in(config_map: Object) -> list[HyperNodeTree]:
    """The topologies that a ConfigMap states. Raises InputError if they cannot be read."""
    text = (config_map.get("data") or {}).get(FILE) or ""
    where = f"{namespace_of(config_map)}/{name_of(config_map)}, {FILE}"
    found: list[HyperNodeTree] = []
    for document in yaml.documents(text, where):
        try:
            found += _topologies(document.value)
        except (AttributeError, KeyError, TypeError):
            advice = "networkTopologyTypes maps names to lists of nodeLabel, or to nodeSelector and levels"
            raise InputError(f"networkTopologyDiscovery cannot be understood; {advice}", where=where) from None
    return found


def _topologies(stated: Any) -> Iterator[HyperNodeTree]:
    for source in stated.get("networkTopologyDiscovery") or ():
        if source.get("source") == "label" and source.get("enabled"):
            for name, body in ((source.get("config") or {}).get("networkTopologyTypes") or {}).items():
                yield _profile(name, body) if isinstance(body, dict) else by_labels(name, _domains(body))


def _profile(name: str, body: dict[str, Any]) -> HyperNodeTree:
    levels = body["levels"]
    names = tuple(level.get("tierName") or level["nodeLabel"] for level in levels[:-1])
    return HyperNodeTree(name, _domains(levels), names, label_selector(body.get("nodeSelector")) or (), {NETWORK_PROFILE: name})


def _domains(levels: list[dict[str, str]]) -> tuple[str, ...]:
    return tuple(level["nodeLabel"] for level in levels[:-1])
