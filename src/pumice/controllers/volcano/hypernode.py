"""HyperNodes: the status of each tells how many nodes it has."""

from collections.abc import Hashable, Iterable

from pumice.api import Key, Object, kinds, name_of, spec_of, status_of
from pumice.api.json_objects import labels_of, terminating
from pumice.api.patterns import PatternError, pattern
from pumice.api.selectors import label_selector, matches
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import status_change


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
