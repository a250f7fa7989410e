"""CustomResourceDefinitions turned into kinds, as definitions are created, changed and deleted.

A definition is checked when it is written (`definition_causes`) and takes effect at once if its names are free (`settle_names`): its
versions are added to the table of kinds, and its status says so. It cannot be in the group of a built-in kind. A definition that is being
deleted accepts no new objects, and is removed once its last object is gone.

The names of custom kinds: within a group, each name belongs to one definition, to the one that had it first.
A definition whose names are taken is stored, and its status says so, but it is not served until the names are free. Names that were
accepted once stay accepted, whatever other names an update requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pumice.api import Object, rfc3339
from pumice.api.json_objects import is_true, terminating
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.conversion import Converter
from pumice.cluster.apiserver.scheme.crd_rules import definition_rule_causes, rules_of
from pumice.cluster.apiserver.scheme.kinds import ALL_VERBS, Scale, ServedKind, priority_of
from pumice.cluster.apiserver.scheme.structural_checks import schema_causes, selectable_causes
from pumice.cluster.apiserver.scheme.structural_schema import Findings, root_shape, settle
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.apiserver.tables.table import custom_columns
from pumice.cluster.apiserver.validation.field_rules import Causes, missing, unsupported

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

RESOURCES = {"plural": "PluralConflict", "singular": "SingularConflict", "shortNames": "ShortNamesConflict"}
KINDS = {"kind": "KindConflict", "listKind": "ListKindConflict"}


def settle_names(definition: Object, others: Iterable[Object]) -> None:
    """Write into the definition's status which of its names are accepted, and whether it is served."""
    wanted, status = definition["spec"]["names"], definition.get("status") or {}
    accepted = dict(status.get("acceptedNames") or {})
    conflict: tuple[str, str] | None = None
    taken = [one for other in others if (one := _taken_by(definition, other))]
    for fields, used in ((RESOURCES, _all(taken, RESOURCES)), (KINDS, _all(taken, KINDS))):
        for field, reason in fields.items():
            clash = next((name for name in _names(wanted, field) if name in used and name not in _names(accepted, field)), None)
            if clash is None:
                accepted[field] = wanted.get(field)
            elif conflict is None:
                conflict = reason, f'"{clash}" is already in use'
    accepted["categories"] = wanted.get("categories")
    established = conflict is None or is_established(definition)
    at = definition["metadata"].get("creationTimestamp")
    definition["status"] = {
        "acceptedNames": {field: names for field, names in accepted.items() if names},
        "storedVersions": _stored_versions(definition, status),
        "conditions": [
            _condition("NamesAccepted", conflict is None, *(conflict or ("NoConflicts", "no conflicts found")), at),
            _condition("Established", True, "InitialNamesAccepted", "the initial names have been accepted", at)
            if established
            else _condition("Established", False, "NotAccepted", "not all names are accepted", at),
            *(condition for condition in status.get("conditions") or () if condition.get("type") == "Terminating"),
        ],
    }


def is_established(definition: Object) -> bool:
    return is_true(definition, "Established")


def terminating_status(definition: Object, now: str) -> Object:
    """The status of a definition whose objects are being deleted."""
    status = definition.get("status") or {}
    others = [condition for condition in status.get("conditions") or () if condition.get("type") != "Terminating"]
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return status | {"conditions": [*others, _condition("Terminating", True, "InstanceDeletionPending", text, now)]}


def _taken_by(definition: Object, other: Object) -> Object | None:
    """The accepted names of another definition, if it is in the same group; else None."""
    if other["metadata"]["name"] == definition["metadata"].get("name") or other["spec"]["group"] != definition["spec"]["group"]:
        return None
    names: Object | None = (other.get("status") or {}).get("acceptedNames")
    return names


def _all(taken: list[Object], fields: Iterable[str]) -> set[str]:
    return {name for names in taken for field in fields for name in _names(names, field)}


def _names(names: Object, field: str) -> list[str]:
    found: Any = names.get(field) or ()
    return [found] if isinstance(found, str) else list(found)


def _stored_versions(definition: Object, status: Object) -> list[str]:
    now = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")]
    return list(dict.fromkeys([*(status.get("storedVersions") or ()), *now]))


def _condition(type: str, holds: bool, reason: str, message: str, at: Any) -> Object:
    return {"type": type, "status": str(holds), "reason": reason, "message": message, "lastTransitionTime": at}


CRDS = "customresourcedefinitions.apiextensions.k8s.io"


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"  #: the finalizer that a deleted definition has until its objects are gone
DELETED_AT_ONCE = 100
BUILT_IN_GROUPS = frozenset(kind.group for kind in builtin_kinds())


class CustomKinds:
    """Listens to the storage and keeps the custom kinds in the store's table of kinds up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_write(self, storage: str, event: WatchEvent) -> None:
        if storage != CRDS:
            if event.type == "DELETED" and (definition := self._store.find(CRDS, "", storage)) and terminating(definition):
                self._store.collector.note(self._clean_up, storage)
            return
        definition = event.object
        if event.type == "DELETED":
            self._remove(definition)
            self._store.collector.note(self._clean_up, definition["metadata"]["name"])
            self._store.collector.note(self._reconsider, definition["spec"]["group"])
        elif event.previous is None or _of_effect(event.previous) != _of_effect(definition):
            self.install(definition)

    def install(self, definition: Object) -> None:
        self._remove(definition)
        if is_established(definition) and definition["spec"]["group"] not in BUILT_IN_GROUPS:
            for kind in kinds_of(definition, self._store):
                self._store.kinds.add(kind)
                if kind.convert is None and kind.schema is not None:
                    self._default_stored(kind, kind.schema)
        if terminating(definition):
            self._store.collector.note(self._clean_up, definition["metadata"]["name"])

    def _default_stored(self, kind: ServedKind, schema: Object) -> None:
        """Give objects that were stored before the schema had its defaults these defaults, as if they were set whenever an object is read:
        their versions stay."""
        kind_storage = self._store.storage.kind_storage(kind.storage)
        for key, obj in list(kind_storage.objects.items()):
            if obj["apiVersion"] == kind.api_version:
                body = {field: value for field, value in obj.items() if field not in ("apiVersion", "kind", "metadata")}
                settled = settle(schema, body, "", Findings(checks=False))
                if settled != body:
                    kind_storage.objects[key] = {**settled, **{field: obj[field] for field in ("apiVersion", "kind", "metadata")}}

    def _remove(self, definition: Object) -> None:
        if definition["spec"]["group"] not in BUILT_IN_GROUPS:
            self._store.kinds.remove(definition["spec"]["group"], definition["spec"]["names"]["plural"])

    def _clean_up(self, storage: str) -> None:
        """Delete some objects of a definition that is being or was deleted. After the last one, take the finalizer off the definition."""
        definition = self._store.find(CRDS, "", storage)
        if definition is not None and not terminating(definition):
            return
        kind_storage = self._store.storage.kind_storage(storage)
        living = (key for key in list(kind_storage.keys) if definition is None or not terminating(kind_storage.objects[key]))
        for key in islice(living, DELETED_AT_ONCE):
            obj = kind_storage.objects[key]
            if definition is not None and obj["metadata"].get("finalizers"):
                self._store.put_trusted(
                    storage, key, obj | {"metadata": obj["metadata"] | {"deletionTimestamp": rfc3339(self._store.now())}}
                )
            else:
                self._store.remove_trusted(storage, key)
        if next(living, None) is not None:
            self._store.collector.note(self._clean_up, storage)
        elif definition is not None and not kind_storage.keys and CLEANUP in (definition["metadata"].get("finalizers") or ()):
            self._store.collector.unfinalize((CRDS, ("", storage)), definition, CLEANUP)

    def _reconsider(self, group: str) -> None:
        """Settle the names of the group's other definitions again, as names have become free that they may wait for."""
        for definition in list(self._store.all(CRDS)):
            if definition["spec"]["group"] == group and not is_true(definition, "NamesAccepted"):
                changed = definition | {"metadata": dict(definition["metadata"])}
                settle_names(changed, self._store.all(CRDS))
                if changed["status"] != definition["status"]:
                    self._store.put_trusted(CRDS, ("", definition["metadata"]["name"]), changed)


def _of_effect(definition: Object) -> tuple[Any, ...]:
    return definition["spec"], definition.get("status"), terminating(definition)


def with_settled_names(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The definition with its names settled in its status, unless it is invalid. This is an admission rule."""
    if not definition_causes(review.obj, None):
        settle_names(review.obj, lister.all(CRDS))
    return review.obj


def kinds_of(definition: Object, store: Store) -> list[ServedKind]:
    """The kinds of a definition, one for each served version, the storage version first."""
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    verbs = tuple(verb for verb in ALL_VERBS if verb != "create") if terminating(definition) else ALL_VERBS
    versions = sorted((version for version in spec["versions"] if version.get("served")), key=lambda version: not version.get("storage"))
    found = [_kind(spec, names, version, verbs) for version in versions]
    if (spec.get("conversion") or {}).get("strategy") != "Webhook" or len(spec["versions"]) == 1:
        return found
    stored = _kind(spec, names, next(version for version in spec["versions"] if version.get("storage")), verbs)
    stored = replace(stored, convert=Converter(store, definition))
    return [stored if kind.version == stored.version else replace(kind, convert=stored.convert, stored_as=stored) for kind in found]


def _kind(spec: Object, names: Object, version: Object, verbs: tuple[str, ...]) -> ServedKind:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    body_schema = {
        **schema,
        "properties": {
            key: value for key, value in (schema.get("properties") or {}).items() if key not in ("apiVersion", "kind", "metadata")
        },
    }
    body_schema["required"] = [key for key in schema.get("required") or () if key not in ("apiVersion", "kind", "metadata")]
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    return ServedKind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=verbs,
        has_status="status" in subresources,
        scale=Scale(*(_path(scale.get(field, "")) for field in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")))
        if scale
        else None,
        shape=root_shape(schema),
        schema=body_schema,
        rules=rules_of(schema),
        columns=custom_columns(version.get("additionalPrinterColumns")),
        fields=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        custom=True,
        versioned_update=True,
        deprecation=_deprecation(spec, version) if version.get("deprecated") else "",
    )


def _deprecation(spec: Object, version: Object) -> str:
    """The warning about a deprecated version: the definition's own, or one that names the best version instead."""
    kind, name = spec["names"]["kind"], version["name"]
    better = [one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated")]
    best = max(better, key=priority_of, default="")
    instead = f"; use {spec['group']}/{best} {kind}" if better and priority_of(best) > priority_of(name) else ""
    return str(version.get("deprecationWarning") or f"{spec['group']}/{name} {kind} is deprecated{instead}")


def _path(json_path: str) -> tuple[str, ...]:
    return tuple(json_path.lstrip(".").split(".")) if json_path else ()


def complete(definition: Object) -> None:
    """Set the defaults of a definition."""
    spec = definition.get("spec") or {}
    names = spec.get("names")
    if isinstance(names, dict) and names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")
        spec.setdefault("conversion", {"strategy": "None"})


def definition_causes(definition: Object, old: Object | None) -> Causes:
    """What is wrong with a definition: pairs of a field's path and a sentence. Other rules are in the tables of types."""
    spec, name = definition.get("spec") or {}, definition["metadata"].get("name")
    names: dict[str, Any] = spec.get("names") or {}
    causes = missing("spec", spec, "group", "scope", "versions") + missing("spec.names", names, "plural", "kind")
    if causes:
        return causes
    if "." not in spec["group"]:
        causes.append(("spec.group", f'Invalid value: "{spec["group"]}": should be a domain with at least one dot'))
    elif spec["group"] in BUILT_IN_GROUPS:
        causes.append(("spec.group", f'Invalid value: "{spec["group"]}": is a group of built-in kinds; write another'))
    if name != f"{names['plural']}.{spec['group']}":
        causes.append(("metadata.name", f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'))
    causes += unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        causes.append(("spec.versions", "Invalid value: must have exactly one version marked as storage version"))
    for index, version in enumerate(spec["versions"]):
        schema, path = (version.get("schema") or {}).get("openAPIV3Schema"), f"spec.versions[{index}].schema.openAPIV3Schema"
        if schema is None:
            causes.append((path, "Required value: schemas are required"))
        else:
            causes += definition_rule_causes(schema, path) + schema_causes(schema, path)
        causes += list(selectable_causes(version, f"spec.versions[{index}]"))
    return causes
