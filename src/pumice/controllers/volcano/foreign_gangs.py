"""Which gang a pod belongs to by the objects of other projects, and the PodGroup of that gang: how `api/gang_dialects.py` is read.

Everything else in Pumice knows PodGroups of Volcano only. So a gang of another dialect is given one, and its pods the annotation that
names it: then queues, shares, reclaim, answers and recordings follow with no further code. A PodGroup that is made for another PodGroup
has the same name; one that is made for an owner has the owner's name and uid.

A gang whose object is not known yet has `owner` None: its pods wait for it. Of Kubernetes' own trees of groups, the highest composite
group with the policy `gang` is one gang, and each PodGroup below it a sub-group. Composite groups in between are not mapped: if there are
any, every PodGroup of the tree is needed.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from math import prod
from typing import Any

from pumice.api import Key, Object, annotations as key, kinds, name_of, namespace_of, spec_of, uid_of
from pumice.api.gang_dialects import BY_LABEL, BY_NAME, NAMED, Dialect, Roles
from pumice.api.integers import integer
from pumice.api.json_objects import annotations_of, controller_of, field, labels_of, suffix
from pumice.api.kinds import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUP, kind_of
from pumice.api.resource_quota import Usage, add, pod_usage, times, written
from pumice.controllers.controller import Lister

COMPOSITE = COMPOSITE_POD_GROUPS.name
MOST = 2**31 - 1  #: pods of a gang, as the field of a PodGroup holds them
MOST_OWNERS = 8  #: above a pod; a worker of a LeaderWorkerSet has four
LONGEST_LABEL, LONGEST_NAME = 63, 253
QUEUES = (key.QUEUE_NAME, key.JOB_QUEUE)  #: labels or annotations with a queue


class GangRole:
    """One role of an owner: how many pods it has, and how many of them must be there."""

    def __init__(self, name: str, count: int, least: int, template: Object) -> None:
        self.name, self.count, self.least, self.template = name.lower(), count, least, template


class ForeignGang:
    """The gang of a pod, as an object of another project means it."""

    def __init__(self, dialect: Dialect, owner: Object | None, above: Iterable[Object] = (), part: str = "", only: str = "") -> None:
        self.dialect = dialect
        self.owner = owner  #: None: it is not known yet
        self.above = tuple(above)  #: the known owners above the owner
        self.part = part  #: if the owner has several gangs: which of them it is
        self.only = only  #: if its roles are gangs of their own: the role

    @property
    def name(self) -> str:
        """The name of its PodGroup."""
        assert self.owner is not None
        if self.dialect in NAMED:
            return name_of(self.owner)
        return _unique(name_of(self.owner), uid_of(self.owner), self.part)

    @cached_property
    def roles(self) -> list[GangRole]:
        found = [role for each in self.dialect.roles for role in _roles(each, self.owner or {}, self.dialect.elastic)]
        return [role for role in found if not self.only or role.name == self.only]

    @cached_property
    def minimum(self) -> int:
        """How many of its pods must start together."""
        stated = [number(found) for path in self.dialect.minimum for found in _values(self.owner, path.split("."))]
        if stated and not self.only:
            return stated[0]
        return min(sum(role.least for role in self.roles), MOST) if self.roles else 1

    @property
    def sub_groups(self) -> list[Object]:
        """Its parts as Volcano's sub-group policies."""
        stated, owner = self.dialect.sub_groups, self.owner or {}
        tier = annotations_of(owner).get(stated.topology) if stated is not None and not self.only else None
        if stated is None or not tier or not (size := number(field(owner, stated.size), 0)):
            return []
        return [
            {
                "name": "part",
                "labelSelector": {"matchExpressions": [{"key": stated.label, "operator": "Exists"}]},
                "matchLabelKeys": [stated.label],
                "subGroupSize": size,
                "minSubGroups": number(field(owner, stated.whole)) // size,
                "networkTopology": {"mode": "hard", "highestTierName": tier},
            }
        ]

    def role_of(self, pod: Object) -> str:
        """The name of the pod's role; empty if its labels name none."""
        labels = labels_of(pod)
        value = next((labels[label].lower() for label in self.dialect.role_label.split("|") if label in labels), "")
        if self.dialect.by_rank and value:
            return self.dialect.roles[0 if value == "0" else -1].name
        return value

    @property
    def role_minimum(self) -> dict[str, int]:
        """The minimum of each role, where not all pods are needed: otherwise it says nothing more."""
        if not self.dialect.role_label or self.minimum >= sum(role.count for role in self.roles):
            return {}
        return {role.name: least for role in self.roles if (least := self._least(role))}

    def _least(self, role: GangRole) -> int:
        """How many pods of the role must be there: of a minimum that the owner states, only those of the leader are."""
        exact = self.minimum == sum(each.least for each in self.roles)
        return role.least if exact or role.name in self.dialect.leader else 0

    def usage(self, pod: Object) -> Usage:
        """What the least pods of the gang request: as many of each role as it must have, then others in order, up to the minimum."""
        left, parts = self.minimum, []
        chosen = {role: min(self._least(role), left) for role in self.roles}
        left -= sum(chosen.values())
        for role in self.roles:
            more = min(role.count - chosen[role], max(left, 0))
            left -= more
            parts.append(times(pod_usage(spec_of(role.template)), chosen[role] + more))
        return add(parts) if parts else times(pod_usage(spec_of(pod)), self.minimum)


def _unique(name: str, *more: str) -> str:
    """The name with these parts after it, cut so that all of it is a name."""
    rest = "-".join(filter(None, more))
    return f"{name[: LONGEST_NAME - 1 - len(rest)].rstrip('-.')}-{rest}" if rest else name


def _named(pod: Object) -> Iterator[tuple[Dialect, str]]:
    for dialect in NAMED:
        if name := (dialect.field and field(pod, dialect.field)) or labels_of(pod).get(dialect.group_label):
            yield dialect, str(name)


def _labelled(pod: Object) -> Iterator[tuple[Dialect, str]]:
    """The owner that an operator's label names, with its dialect."""
    labels = labels_of(pod)
    return ((dialect, labels[dialect.owner_label]) for dialect in BY_LABEL if labels.get(dialect.owner_label))


def known_by(pod: Object, lister: Lister) -> Iterator[tuple[str, Key]]:
    """The objects to read, by kind and key, so that the pod's gang is known."""
    for dialect, name in (*_named(pod), *_labelled(pod)):
        yield dialect.kind.name, Key(namespace_of(pod), name)
    reference = controller_of(pod)
    for _ in range(MOST_OWNERS):
        if reference is None:
            return
        kind, place = kind_of(reference), Key(namespace_of(pod), reference["name"])
        yield kind, place
        above = lister.get(kind, *place)
        reference = controller_of(above) if above is not None else None


def gang_of(pod: Object, lister: Lister) -> ForeignGang | None:
    """The gang of a pod; None if nothing but Volcano's own rules says one."""
    for named, name in _named(pod):
        group = lister.get(named.kind.name, namespace_of(pod), name)
        return native_gang(group, lister) if named.kind == kinds.NATIVE_POD_GROUPS else ForeignGang(named, group)
    found: Dialect | None = None
    chain: list[Object] = []
    for reference, subject in _owners(pod, lister):
        dialect = BY_NAME.get(kind_of(reference))
        if found is None and dialect is not None and not dialect.above:
            found = dialect
            if subject is None or dialect.alone:
                return ForeignGang(dialect, pod if dialect.alone else None)
        if found is not None and subject is not None:
            chain.append(subject)
    if found is None:
        for labelled, name in _labelled(pod):
            if (owner := lister.get(labelled.kind.name, namespace_of(pod), name)) is not None:
                return _part_of(pod, labelled, [owner, *(above for _, above in _owners(owner, lister) if above is not None)])
            found = found or labelled
        return None if found is None else ForeignGang(found, None)
    return _part_of(pod, found, chain)


def _owners(subject: Object, lister: Lister) -> Iterator[tuple[Object, Object | None]]:
    """The controllers above an object, as references and as objects; the last one may be unknown."""
    namespace = namespace_of(subject)
    for _ in range(MOST_OWNERS):
        reference = controller_of(subject)
        if reference is None:
            return
        above = lister.get(kind_of(reference), namespace, reference["name"])
        if above is not None and reference.get("uid") and uid_of(above) not in ("", reference["uid"]):
            above = None  # another object under an old name
        yield reference, above
        if above is None:
            return
        subject = above


def _part_of(pod: Object, dialect: Dialect, chain: list[Object]) -> ForeignGang:
    owner, *above = chain
    whole = ForeignGang(dialect, owner, above)
    labels = labels_of(pod)
    split = next((labels[label] for label in dialect.split if label in labels), "")
    in_turn = dialect.in_turn_by in annotations_of(owner)
    in_turn |= any(value == wanted or not wanted for path, wanted in dialect.in_turn for value in _values(owner, path.split(".")))
    only = whole.role_of(pod) if in_turn else ""
    return ForeignGang(dialect, owner, above, "-".join(filter(None, (split, only))), only)


def _values(subject: Any, path: list[str]) -> list[Any]:
    """All that is at a path, also below lists; nothing that is null."""
    if isinstance(subject, list):
        return [found for each in subject for found in _values(each, path)]
    if not path:
        return [] if subject is None else [subject]
    return _values(subject.get(path[0]), path[1:]) if isinstance(subject, dict) else []


def _roles(stated: Roles, owner: Object, elastic: str) -> Iterator[GangRole]:
    found = field(owner, stated.path)
    if stated.name:
        named = {stated.name: found}
    elif stated.named_by:
        listed = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        named = {str(each.get(stated.named_by) or number): each for number, each in enumerate(listed)}
    else:
        named = found if isinstance(found, dict) else {}
    for name, each in named.items():
        if isinstance(each, dict):
            count = 0 if stated.suspended and each.get(stated.suspended) else _product(each, stated.counts, stated.at_most) - stated.fewer
            less = (elastic and field(owner, elastic)) or _is_led(stated, owner, each)
            least = min(count, _product(each, stated.least)) if stated.least and less else count
            templates = [found for path in stated.template.split("|") if isinstance(found := field(each, path), dict)]
            yield GangRole(name, max(count, 0), max(least, 0), next(iter(templates), {}))


def _is_led(stated: Roles, owner: Object, role: Object) -> bool:
    """Whether only the leaders of the role come at first."""
    of_role = field(role, f"{stated.template.rpartition('.spec.')[0]}.metadata.annotations")
    known = {**annotations_of(owner), **(of_role if isinstance(of_role, dict) else {})}
    return stated.led in known and stated.not_led not in known


def _product(role: Object, counts: tuple[str, ...], at_most: str = "") -> int:
    numbers = [number(field(role, path)) for path in counts]
    if at_most and (bound := field(role, at_most)) is not None:
        numbers[-1] = min(numbers[-1], number(bound))
    return min(prod(numbers), MOST)


def number(stated: Any, otherwise: int = 1) -> int:
    """A number of pods; by default 1 if none is stated, or something that is no number."""
    return min(max(integer(str(stated), otherwise), 0), MOST)


def native_gang(leaf: Object | None, lister: Lister) -> ForeignGang:
    """The gang of a PodGroup: itself, or the tree of groups that must start together; not known while a part of the way up is missing."""
    gang = ForeignGang(BY_NAME[NATIVE_POD_GROUP], leaf)
    top, met = leaf, 0
    while top is not None and (parent := spec_of(top).get("parentCompositePodGroupName")) and met < MOST_OWNERS:
        top, met = lister.get(COMPOSITE, namespace_of(top), parent), met + 1
        if top is not None and field(top, "spec.schedulingPolicy.gang") is not None:
            gang = GangTree(gang.dialect, top, lister)
    return gang if top is not None else ForeignGang(gang.dialect, None)


class GangTree(ForeignGang):
    """A composite group with all PodGroups below it."""

    def __init__(self, dialect: Dialect, root: Object, lister: Lister) -> None:
        super().__init__(dialect, root)
        self.root, self.lister = root, lister

    @property
    def name(self) -> str:
        return _unique(name_of(self.root), uid_of(self.root))

    @cached_property
    def leaves(self) -> list[Object]:
        return [each for each in self.lister.all(NATIVE_POD_GROUP, namespace_of(self.root)) if self._steps_to(each)]

    @cached_property
    def is_deep(self) -> bool:
        """Whether there are composite groups in between."""
        return any(self._steps_to(each) > 1 for each in self.leaves)

    def _steps_to(self, leaf: Object) -> int:
        """How far a PodGroup is below the root; 0 if it is not below it."""
        group: Object | None = leaf
        for steps in range(1, MOST_OWNERS):
            parent = spec_of(group or {}).get("parentCompositePodGroupName")
            if parent == name_of(self.root):
                return steps
            group = self.lister.get(COMPOSITE, namespace_of(self.root), parent) if parent else None
        return 0

    @cached_property
    def minimum(self) -> int:
        return sum(sorted(map(_least_of, self.leaves))[: self._needed])

    @property
    def _needed(self) -> int:
        """How many of its PodGroups must start together."""
        stated = number(field(self.root, "spec.schedulingPolicy.gang.minGroupCount"))
        return len(self.leaves) if self.is_deep else min(stated, len(self.leaves))

    @property
    def sub_groups(self) -> list[Object]:
        """Its PodGroups as Volcano's sub-group policies: their pods get a label with the PodGroup's name."""
        return [
            {
                "name": name_of(leaf),
                "labelSelector": {"matchLabels": {key.TASK_SPEC: label_for(name_of(leaf))}},
                "matchLabelKeys": [key.TASK_SPEC],
                "subGroupSize": _least_of(leaf),
                "minSubGroups": int(self._needed == len(self.leaves)),
                **topology_of(leaf),
            }
            for leaf in self.leaves
        ]

    def role_of(self, pod: Object) -> str:
        return label_for(str(field(pod, self.dialect.field)))


def leaves_below(root: Object, lister: Lister) -> list[Object]:
    """The PodGroups of a composite group."""
    return GangTree(BY_NAME[NATIVE_POD_GROUP], root, lister).leaves


def _least_of(leaf: Object) -> int:
    return number(field(leaf, "spec.schedulingPolicy.gang.minCount"))


def label_for(name: str) -> str:
    """The name as the value of a label, which may not be as long as a name."""
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 6]}-{suffix(name)}"


def topology_of(group: Object) -> Object:
    """Volcano's network topology for the topology constraint of a native group: its key is the name of a tier."""
    keys = _values(group, ["spec", "schedulingConstraints", "topology", "key"])
    return {"networkTopology": {"mode": "hard", "highestTierName": keys[0]}} if keys else {}


def reference_to(owner: Object) -> Object:
    """The owner reference of a PodGroup to its gang's object, which it does not keep from being deleted: that would take a right to it."""
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner), "controller": True}


def group_spec(gang: ForeignGang, pod: Object) -> Object:
    """What the gang's object says of its PodGroup. The pod stands for all where the object has no templates."""
    owner = gang.owner or {}
    stated = {
        "minTaskMember": gang.role_minimum,
        "subGroupPolicy": gang.sub_groups,
        "queue": _queue(gang),
        "priorityClassName": labels_of(owner).get(gang.dialect.priority_label) or field(owner, gang.dialect.priority_class),
    }
    spec = {"minMember": gang.minimum, "minResources": _resources(gang, pod), **topology_of(owner)}
    return spec | {name: value for name, value in stated.items() if value}


def _resources(gang: ForeignGang, pod: Object) -> dict[str, str]:
    """What the gang needs to start: as its object says, else by templates, else by this pod."""
    stated = field(gang.owner or {}, "spec.minResources")
    if isinstance(stated, dict):
        return {name: str(amount) for name, amount in stated.items()}
    try:
        return written(gang.usage(pod))
    except (ValueError, AttributeError, TypeError):
        return written(times(pod_usage(spec_of(pod)), gang.minimum))  # no template that a pod could be made of


def _queue(gang: ForeignGang) -> str:
    for subject in filter(None, (gang.owner, *gang.above)):
        for name in QUEUES:
            if queue := annotations_of(subject).get(name) or labels_of(subject).get(name):
                return queue
    return str(field(gang.owner or {}, gang.dialect.queue) or "") if gang.dialect.queue else ""


def marks(gang: ForeignGang, pod: Object) -> Object:
    """The patch by which a pod says its PodGroup and its role."""
    role = gang.role_of(pod)
    metadata: Object = {"annotations": {key.GROUP_NAME: gang.name, **({key.TASK_SPEC: role} if role else {})}}
    return {"metadata": metadata | ({"labels": {key.TASK_SPEC: role}} if isinstance(gang, GangTree) else {})}
