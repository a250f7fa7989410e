"""Gangs of other projects in files: their pods get the PodGroups that Pumice's PodGroup controller would make of them on a cluster.

An owner that no server has looked after, and none of whose pods are in the files, stands for its pods: they are made of its templates. The
labels that its operator would set tell their roles; nothing else of its operator's work is imitated.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api import InputError, Object, key_of, kinds, name_of, namespace_of, uid_of
from pumice.api.annotations import GROUP_NAME
from pumice.api.gang_dialects import BY_NAME, OWNERS, Dialect
from pumice.api.json_objects import copied, field, merged, owners_of
from pumice.api.kinds import kind_of
from pumice.api.manifests import Objects, WorkloadManifest
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.structs import convert, document
from pumice.api.volcano import PodGroup
from pumice.controllers.in_memory import Memory
from pumice.controllers.volcano.foreign_gangs import ForeignGang, gang_of, marks, number
from pumice.controllers.volcano.podgroup import PodGroups
from pumice.controllers.writes import Create

MOST_PODS = 150_000  #: of one owner: as many as Kubernetes supports in a whole cluster
Items = list[tuple[str, Wire]]


def pods_of_owners(objects: Objects) -> Items:
    """The pods of the owners that have none yet. Raises InputError."""
    wanted = [each for each in objects.gangs if kind_of(each.obj) in {kind.name for kind in OWNERS} and not each.is_served]
    if not wanted:
        return []
    known = _known(objects, objects.items)
    there = {id(gang.owner) for pod in known.all(kinds.POD) if (gang := gang_of(pod, known)) is not None}
    found = [(each, known.get(kind_of(each.obj), *key_of(each.obj))) for each in wanted]
    return [("Pod", pod) for each, owner in found if owner is not None and id(owner) not in there for pod in _pods(owner, each)]


def _pods(owner: Object, manifest: WorkloadManifest) -> Iterator[Pod]:
    dialect = BY_NAME[kind_of(owner)]
    roles = ForeignGang(dialect, owner).roles
    copies = number(field(owner, dialect.copies)) if dialect.copies else 1
    if (count := copies * sum(role.count for role in roles)) > MOST_PODS:
        raise _wrong(manifest, f"asks for {count} pods; write at most {MOST_PODS}, as many as Kubernetes supports in a cluster")
    for copy in range(copies):
        each = ((role, index) for role in roles for index in range(role.count))
        for rank, (role, index) in enumerate(each):
            name = "-".join((name_of(owner), *([str(copy)] if dialect.copies else []), role.name, str(index)))
            labels = _labels(dialect, owner, role.name, copy, rank)
            try:
                yield _pod(role.template, owner, name, labels)
            except (msgspec.ValidationError, ValueError, TypeError) as error:
                raise _wrong(manifest, f"its role {role.name} has no template that a pod could be made of: {error}") from None


def _labels(dialect: Dialect, owner: Object, role: str, copy: int, rank: int) -> dict[str, str]:
    """The labels by which an operator tells the pods of an owner apart."""
    stated = {
        dialect.owner_label: name_of(owner),
        dialect.role_label: str(rank) if dialect.by_rank else role,
        **dict.fromkeys(dialect.split[:1], str(copy)),
    }
    return {label: value for label, value in stated.items() if label}


def _pod(template: Object, owner: Object, name: str, labels: dict[str, str]) -> Pod:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner), "controller": True}
    own = {"name": name, "namespace": namespace_of(owner), "labels": labels, "ownerReferences": [reference]}
    return convert({"metadata": merged(template.get("metadata") or {}, own), "spec": template.get("spec") or {}}, Pod)


def _wrong(manifest: WorkloadManifest, message: str) -> InputError:
    return InputError(message, where=manifest.where, subject=f"{manifest.obj['kind']} {manifest.obj['metadata']['name']}")


def grouped(objects: Objects, items: Items, schedulers: Collection[str]) -> Items:
    """The items, with a PodGroup for each gang of another dialect whose pods are for these schedulers and name no PodGroup. Raises
    InputError."""
    lacking = [item for _, item in items if isinstance(item, Pod) and _lacks_group(item, schedulers)]
    if not objects.gangs or not lacking:
        return items
    groups: Items = [(kind, item) for kind, item in items if isinstance(item, PodGroup)]
    known, maker = _known(objects, [*groups, *(("Pod", pod) for pod in lacking)]), PodGroups(schedulers)
    made: dict[tuple[str, str], Wire] = {}
    done: Items = []
    for kind, item in items:
        if isinstance(item, Pod) and _lacks_group(item, schedulers):
            pod = known.get(kinds.POD, item.metadata.namespace or "default", item.metadata.name)
            gang = gang_of(pod, known) if pod is not None else None
            if pod is not None and gang is not None and gang.owner is not None:
                place = namespace_of(pod), gang.name
                if place not in made and known.get(kinds.POD_GROUP, *place) is None:
                    made[place] = _group(maker.build(pod, known, gang), gang.owner)
                item = _marked(item, marks(gang, pod)["metadata"])
        done.append((kind, item))
    return [*(("PodGroup", group) for group in made.values()), *done]


def _lacks_group(pod: Pod, schedulers: Collection[str]) -> bool:
    return pod.spec.scheduler_name in schedulers and not (pod.metadata.annotations or {}).get(GROUP_NAME)


def _group(group: Object, owner: Object) -> PodGroup:
    created = owner["metadata"].get("creationTimestamp")
    return convert({**group, "metadata": {**group["metadata"], "creationTimestamp": created}}, PodGroup)


def _marked(pod: Pod, marks: dict[str, dict[str, str]]) -> Pod:
    meta = pod.metadata
    labels = {**(meta.labels or {}), **marks.get("labels", {})} or None
    return replace(pod, metadata=replace(meta, annotations={**(meta.annotations or {}), **marks["annotations"]}, labels=labels))


def _known(objects: Objects, items: Iterable[tuple[str, Wire]]) -> Memory:
    """What tells the gangs of pods. Objects of files often have no uid: they get the one that those below them name."""
    owners = [_checked(each) for each in objects.gangs] + [each.obj for each in objects.workloads]
    others = [
        merged({"metadata": {"namespace": "default"}}, document(kind, item)) for kind, item in items if isinstance(item, Pod | PodGroup)
    ]
    subjects = [*owners, *others]
    uids = {(kind_of(above), namespace_of(each), above["name"]): above.get("uid") for each in subjects for above in owners_of(each)}
    known = Memory()
    for each in subjects:
        subject = copied(each)
        subject["metadata"]["uid"] = uid_of(each) or uids.get((kind_of(each), *key_of(each))) or each["kind"].lower()
        known.apply(Create(subject))
    return known


def _checked(manifest: WorkloadManifest) -> Object:
    """The object, whose metadata can be read. Raises InputError."""
    try:
        convert(manifest.obj["metadata"], Metadata)
    except msgspec.ValidationError as error:
        raise _wrong(manifest, f"its metadata cannot be read: {error}") from None
    spec: Any = manifest.obj.get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise _wrong(manifest, "its spec is no object")
    return manifest.obj
