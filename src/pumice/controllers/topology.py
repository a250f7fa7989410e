"""Network topologies by node labels, as `networkTopologyDiscovery` in volcano-controller.conf states them.

A topology is a list of node labels from the widest domain to the narrowest: nodes with equal values share a domain. The
narrowest are tier 1 and hold nodes, each wider one holds those of the tier below. In the file the last label is the node's
own and no domain. A topology has labels only, or levels with names of their own and a selector of the nodes that it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pumice.api import yaml
from pumice.api.annotations import NETWORK_PROFILE
from pumice.api.errors import InputError
from pumice.api.selectors import Selector, label_selector, matches
from pumice.controllers.objects import Object, labels_of, name_of, namespace_of

FILE = "volcano-controller.conf"


class Topology(NamedTuple):
    name: str
    labels: tuple[str, ...]
    tier_names: tuple[str, ...]
    nodes: Selector = ()
    tags: Mapping[str, str] = {}  #: labels of its HyperNodes

    def covers(self, node: Object) -> bool:
        return matches(self.nodes, labels_of(node))


def by_labels(name: str, labels: tuple[str, ...]) -> Topology:
    return Topology(name, labels, labels)


def topologies_in(config_map: Object) -> list[Topology]:
    """Raises InputError."""
    text = (config_map.get("data") or {}).get(FILE) or ""
    where = f"{namespace_of(config_map)}/{name_of(config_map)}, {FILE}"
    found: list[Topology] = []
    for document in yaml.documents(text, where):
        try:
            found += _topologies(document.value)
        except (AttributeError, KeyError, TypeError):
            advice = "networkTopologyTypes maps names to lists of nodeLabel, or to nodeSelector and levels"
            raise InputError(f"networkTopologyDiscovery cannot be understood; {advice}", where=where) from None
    return found


def _topologies(stated: Any) -> Iterator[Topology]:
    for source in stated.get("networkTopologyDiscovery") or ():
        if source.get("source") == "label" and source.get("enabled"):
            for name, body in ((source.get("config") or {}).get("networkTopologyTypes") or {}).items():
                yield _profile(name, body) if isinstance(body, dict) else by_labels(name, _domains(body))


def _profile(name: str, body: dict[str, Any]) -> Topology:
    levels = body["levels"]
    names = tuple(level.get("tierName") or level["nodeLabel"] for level in levels[:-1])
    return Topology(name, _domains(levels), names, label_selector(body.get("nodeSelector")) or (), {NETWORK_PROFILE: name})


def _domains(levels: list[dict[str, str]]) -> tuple[str, ...]:
    return tuple(level["nodeLabel"] for level in levels[:-1])
