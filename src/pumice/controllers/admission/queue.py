"""Rules for queues: a valid state, amounts that fit together, and a tree in which children fit into their parent.

Amounts are compared if both sides state the resource: a resource that a queue does not state is not limited. Only a guarantee
needs a deserved amount too.
"""

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any

from pumice.api import Object, annotations as key, kinds, name_of, spec_of, status_of
from pumice.api.defaults import ROOT_QUEUE, required_queues
from pumice.api.json_objects import annotations_of, copied
from pumice.api.plural import counted
from pumice.controllers.admission.problem import DELETE, Problem, Settings, amounts
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.queue import CLOSED, OPEN

AMOUNTS: dict[str, Callable[[Object], Any]] = {
    "capability": lambda spec: spec.get("capability"),
    "deserved": lambda spec: spec.get("deserved"),
    "guarantee.resource": lambda spec: (spec.get("guarantee") or {}).get("resource"),
}


def mutate(queue: Object, lister: Lister, settings: Settings) -> Object:
    result: Object = copied(queue)
    spec = result.setdefault("spec", {})
    if spec.get("reclaimable") is None:
        spec["reclaimable"] = True
    if not spec.get("weight"):
        spec["weight"] = 1
    notes = annotations_of(queue)
    path, weights = notes.get(key.HIERARCHY), notes.get(key.HIERARCHY_WEIGHTS)
    if path and weights and path.split("/")[0] != ROOT_QUEUE:
        result["metadata"]["annotations"] |= {key.HIERARCHY: f"{ROOT_QUEUE}/{path}", key.HIERARCHY_WEIGHTS: f"1/{weights}"}
    return result


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    if operation == DELETE:
        assert old is not None
        return list(_deletion(old, lister, settings))
    assert new is not None
    problems = [*_own(new, old), *_hierarchy(new, lister), *_amounts(new)]
    if old is not None and settings.protect_root and name_of(new) == ROOT_QUEUE:
        problems.extend(_root_changes(new, old))
    return problems or list(_tree(new, old, lister, settings))


def _deletion(queue: Object, lister: Lister, settings: Settings) -> Iterator[Problem]:
    name = name_of(queue)
    if name in required_queues():
        yield Problem("", f"`{name}` queue can not be deleted: the scheduler needs it")
    children = [name_of(child) for child in _children(name, lister)]
    if children:
        message = f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        yield Problem("", f"{message}; delete or move them first")
    pods = _allocated_pods(queue)
    if settings.check_allocated_pods and pods:
        yield Problem("status.allocated.pods", f'queue "{name}" still holds {counted(pods, "pod")}; end the jobs first')


def _allocated_pods(queue: Object) -> int:
    pods = (status_of(queue).get("allocated") or {}).get("pods")
    return ceil(amounts({"pods": pods or "0"}, "")[0].get("pods", 0) / 1000)


def _own(queue: Object, old: Object | None) -> Iterator[Problem]:
    state = status_of(queue).get("state")
    if state not in (None, "", OPEN, CLOSED) and state != status_of(old or {}).get("state"):
        yield Problem("status.state", f'queue state must be in [{OPEN} {CLOSED}]; "{state}" found')
    weight = spec_of(queue).get("weight")
    if weight is not None and not 1 <= weight <= 65535:
        yield Problem("spec.weight", f"queue weight must be a positive integer, at most 65535; {weight} found")
    priority = spec_of(queue).get("priority")
    if priority is not None and priority < 0:
        yield Problem("spec.priority", f"{priority} is negative; write 0 or more")


def _hierarchy(queue: Object, lister: Lister) -> Iterator[Problem]:
    """The problems with the annotations of the older, weighted hierarchy."""
    notes = annotations_of(queue)
    path, weights = notes.get(key.HIERARCHY) or "", notes.get(key.HIERARCHY_WEIGHTS) or ""
    if not path and not weights:
        return
    field = f"metadata.annotations[{key.HIERARCHY}]"
    if path.count("/") != weights.count("/"):
        message = f"{key.HIERARCHY} must have the same length with {key.HIERARCHY_WEIGHTS}"
        yield Problem(field, f'{message}; "{path}" has {path.count("/") + 1} levels and "{weights}" {weights.count("/") + 1} weights')
    for weight in weights.split("/"):
        if problem := _not_a_weight(weight):
            yield Problem(f"metadata.annotations[{key.HIERARCHY_WEIGHTS}]", f'"{weight}" in "{weights}" {problem}')
    for other in lister.all(kinds.QUEUE):
        theirs = annotations_of(other).get(key.HIERARCHY) or ""
        if name_of(other) != name_of(queue) and theirs.startswith(path + "/"):
            message = f"{path} is not allowed to be in the sub path of {theirs} of queue {name_of(other)}"
            yield Problem(field, f"{message}; choose a leaf")


def _not_a_weight(text: str) -> str:
    try:
        return "" if float(text) > 0 else "must be larger than 0"
    except ValueError:
        return "is invalid number"


def _amounts(queue: Object) -> Iterator[Problem]:
    spec = spec_of(queue)
    read = {}
    for name, part in AMOUNTS.items():
        read[name], problems = amounts(part(spec), f"spec.{name}")
        yield from problems
    stated = {name: part(spec) or {} for name, part in AMOUNTS.items()}
    for resource, least in read["guarantee.resource"].items():
        if least > read["deserved"].get(resource, 0):
            message = f"deserved[{resource}] must be >= guarantee[{resource}]={stated['guarantee.resource'][resource]}"
            yield Problem(
                f"spec.deserved.{resource}", f"{message}; {stated['deserved'].get(resource, 'nothing')} found, raise it or guarantee less"
            )
    for resource, amount in read["deserved"].items():
        if amount > read["capability"].get(resource, amount):
            message = f"deserved[{resource}] must be <= capability[{resource}]={stated['capability'][resource]}"
            yield Problem(f"spec.deserved.{resource}", f"{message}; {stated['deserved'][resource]} found")


def _root_changes(new: Object, old: Object) -> Iterator[Problem]:
    for name in AMOUNTS:
        if _read(new, name) != _read(old, name):
            yield Problem(f"spec.{name}", "the root queue stands for the whole cluster and cannot be limited; set it on its children")


def _tree(queue: Object, old: Object | None, lister: Lister, settings: Settings) -> Iterator[Problem]:
    name = name_of(queue)
    if name == ROOT_QUEUE:
        return
    parent_name = spec_of(queue).get("parent") or ROOT_QUEUE
    if parent_name == name:
        yield Problem("spec.parent", f'queue "{name}" cannot be its own parent; name another queue, or leave it out')
        return
    parent = lister.get(kinds.QUEUE, "", parent_name)
    if parent is None and parent_name != ROOT_QUEUE:
        yield Problem("spec.parent", f'queue "{parent_name}" does not exist; create it first')
        return
    ancestors = list(_ancestors(parent_name, lister))
    if name in ancestors:
        yield Problem(
            "spec.parent",
            f'"{parent_name}" lies below "{name}": {" > ".join([name, *ancestors[: ancestors.index(name) + 1]])}; a tree has no loops',
        )
        return
    moved = old is None or (spec_of(old).get("parent") or ROOT_QUEUE) != parent_name
    if moved:
        yield from _place(queue, parent_name, parent, len(ancestors), lister, settings)
    yield from _fits(queue, ancestors, lister)


def _place(queue: Object, parent_name: str, parent: Object | None, depth: int, lister: Lister, settings: Settings) -> Iterator[Problem]:
    """The problems with the queue's place: the tree would be too deep, or the parent runs pods itself."""
    deepest = depth - 1 + _height(name_of(queue), lister)
    if deepest > settings.max_queue_depth:
        yield Problem("spec.parent", f"the tree would be {deepest} levels deep below root; at most {settings.max_queue_depth} are allowed")
    pods = _allocated_pods(parent) if parent else 0
    is_leaf = not any(name_of(child) != name_of(queue) for child in _children(parent_name, lister))
    if parent_name != ROOT_QUEUE and is_leaf and pods:
        text = f'queue "{parent_name}" runs {counted(pods, "pod")} itself and cannot become a parent; wait until it is empty'
        yield Problem("spec.parent", text)


def _fits(queue: Object, ancestors: list[str], lister: Lister) -> Iterator[Problem]:
    limits = _read(queue, "capability")
    for resource, limit in limits.items():
        above = next((each for each in ancestors if resource in _stored(each, "capability", lister)), None)
        if above is not None and limit > _stored(above, "capability", lister)[resource]:
            found, most = _text(queue, "capability", resource), _text(lister.get(kinds.QUEUE, "", above), "capability", resource)
            yield Problem(f"spec.capability.{resource}", f'{found} is more than ancestor "{above}" may use ({most}); write at most that')
        for below in _subtree(name_of(queue), lister):
            if _read(below, "capability").get(resource, 0) > limit:
                found, most = _text(queue, "capability", resource), _text(below, "capability", resource)
                problem = f'{found} is less than queue "{name_of(below)}" below it may use ({most}); write at least that'
                yield Problem(f"spec.capability.{resource}", problem)
    for name in ("guarantee.resource", "deserved"):
        yield from _sums(queue, ancestors[0] if ancestors else ROOT_QUEUE, name, lister)


def _sums(queue: Object, parent: str, part: str, lister: Lister) -> Iterator[Problem]:
    """The problems with sums: the children of a queue may not have more together than the queue itself."""
    own = _read(queue, part)
    of_children = [_read(child, part) for child in _children(name_of(queue), lister)]
    for resource, amount in own.items():
        if sum(each.get(resource, 0) for each in of_children) > amount:
            found = _text(queue, part, resource)
            yield Problem(f"spec.{part}.{resource}", f"{found} is less than its children have together; write at least their sum")
    if parent == ROOT_QUEUE:
        return
    siblings = [_read(each, part) for each in _children(parent, lister) if name_of(each) != name_of(queue)]
    for resource, amount in _stored(parent, part, lister).items():
        if resource in own and own[resource] + sum(each.get(resource, 0) for each in siblings) > amount:
            most = _text(lister.get(kinds.QUEUE, "", parent), part, resource)
            problem = f'{_text(queue, part, resource)} makes the children of "{parent}" have more than it has ({most}); write less'
            yield Problem(f"spec.{part}.{resource}", problem)


def _read(queue: Object, part: str) -> dict[str, int]:
    return amounts(AMOUNTS[part](spec_of(queue)), "")[0]


def _stored(name: str, part: str, lister: Lister) -> dict[str, int]:
    queue = lister.get(kinds.QUEUE, "", name)
    return _read(queue, part) if queue is not None else {}


def _text(queue: Object | None, part: str, resource: str) -> str:
    return str((AMOUNTS[part](spec_of(queue or {})) or {}).get(resource))


def _children(name: str, lister: Lister) -> Iterable[Object]:
    return lister.by_field(kinds.QUEUE, "spec.parent", name)


def _ancestors(name: str, lister: Lister) -> Iterator[str]:
    """The names of a queue and of the queues above it, root last; they end at a loop."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        yield name
        if name == ROOT_QUEUE:
            return
        name = spec_of(lister.get(kinds.QUEUE, "", name) or {}).get("parent") or ROOT_QUEUE


def _subtree(name: str, lister: Lister) -> Iterator[Object]:
    """All queues below the queue of this name."""
    waiting, seen = [name], {name}
    while waiting:
        for child in _children(waiting.pop(), lister):
            if name_of(child) not in seen:
                seen.add(name_of(child))
                waiting.append(name_of(child))
                yield child


def _height(name: str, lister: Lister, above: frozenset[str] = frozenset()) -> int:
    """The number of levels of the subtree under and with this queue: 1 for a leaf."""
    if name in above:
        return 0
    return 1 + max((_height(name_of(child), lister, above | {name}) for child in _children(name, lister)), default=0)
