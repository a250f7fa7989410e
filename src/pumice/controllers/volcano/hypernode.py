"""HyperNodes: the status of each tells how many nodes it has. All are counted together: a node may be in many of them."""

from collections.abc import Collection, Hashable, Iterable, Mapping

from pumice.api import Key, Object, kinds, name_of, spec_of, status_of
from pumice.api.json_objects import labels_of, terminating
from pumice.api.regular_expressions import PatternError, pattern
from pumice.api.selectors import Selector, label_selector, matches
from pumice.controllers.controller import Lister, ObjectChange, Result, result
from pumice.controllers.writes import status_change

ALL = Key("", "")  #: the only key


class HyperNodeCounts:
    """Keeps `status.nodeCount`."""

    name = "hypernode-count"

    def __init__(self) -> None:
        self.watches = {kinds.HYPER_NODE: all_if_it_says_more, kinds.NODE: lambda changed, lister: (ALL,) if moved(changed) else ()}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        hyper_nodes = {name_of(each): each for each in lister.all(kinds.HYPER_NODE)}
        nodes = _Labelled({name_of(node): labels_of(node) for node in lister.all(kinds.NODE)})
        domains = _Labelled({name: labels_of(each) for name, each in hyper_nodes.items()})
        own = {name: set(_selected(each, "Node", nodes)) for name, each in hyper_nodes.items()}
        within = {name: list(_selected(each, "HyperNode", domains)) for name, each in hyper_nodes.items()}
        counts = {name: len(set[str]().union(*(own[each] for each in _subtree(name, within)))) for name in hyper_nodes}
        there = ((each, counts[name]) for name, each in hyper_nodes.items() if not terminating(each))
        return result(write for each, count in there for write in status_change(each, {**status_of(each), "nodeCount": count}))


class _Labelled:
    """The labels of objects by their names, and who has a value of a label."""

    def __init__(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        self.labels = labels
        self._having: dict[str, dict[str | None, list[str]]] = {}  #: by label and value

    def matching(self, selector: Selector) -> Iterable[str]:
        return (name for name in self._candidates(selector) if matches(selector, self.labels[name]))

    def _candidates(self, selector: Selector) -> Collection[str]:
        first = selector[0]
        if first.operator != "In":
            return self.labels
        if first.key not in self._having:
            having = self._having[first.key] = {}
            for name, labels in self.labels.items():
                having.setdefault(labels.get(first.key), []).append(name)
        return [name for value in dict.fromkeys(first.values) for name in self._having[first.key].get(value, ())]


def _selected(hyper_node: Object, type_: str, among: _Labelled) -> Iterable[str]:
    """The names of the members of a type."""
    for member in spec_of(hyper_node).get("members") or ():
        if member.get("type") != type_:
            continue
        selector = member.get("selector") or {}
        if selector.get("exactMatch"):
            name = selector["exactMatch"].get("name")
            yield from [name] if name in among.labels else []
        elif selector.get("regexMatch"):
            text = selector["regexMatch"].get("pattern") or ""
            yield from (name for name in among.labels if _is_found(text, name))
        elif labels := label_selector(selector.get("labelMatch")):
            yield from among.matching(labels)


def _subtree(name: str, within: Mapping[str, Iterable[str]]) -> Collection[str]:
    """The names of a HyperNode and of all within it, which may contain each other."""
    found = {name: None}
    waiting = [name]
    while waiting:
        inside = [each for each in within[waiting.pop()] if each not in found]
        found |= dict.fromkeys(inside)
        waiting += inside
    return found


def _is_found(text: str, name: str) -> bool:
    try:
        return bool(text) and pattern(text).found_in(name)
    except PatternError:
        return False


def all_if_it_says_more(changed: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The key of all if a HyperNode is new or gone, or its spec or labels changed."""
    same = changed.old and changed.new and spec_of(changed.old) == spec_of(changed.new)
    return () if same and not moved(changed) else (ALL,)


def moved(changed: ObjectChange) -> bool:
    return not (changed.old and changed.new and labels_of(changed.old) == labels_of(changed.new))
