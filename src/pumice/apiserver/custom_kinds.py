"""CustomResourceDefinitions turned into kinds, as they come, change and go.

A definition is checked when it is written (`definition_causes`) and takes effect at once: its versions are added to the table of
kinds, and its status says so. When it is deleted its kinds vanish together with all their objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver.custom_columns import custom_columns
from pumice.apiserver.custom_rules import definition_rule_causes, rules_of
from pumice.apiserver.kinds import Kind, Scale
from pumice.apiserver.shapes import Object
from pumice.apiserver.structural import root_shape
from pumice.apiserver.watching import Event

if TYPE_CHECKING:
    from pumice.apiserver.store import Store

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class CustomKinds:
    """Listens to the ledger and keeps the store's table of kinds in step."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def heard(self, storage: str, event: Event) -> None:
        if storage != CRDS:
            return
        spec = event.object["spec"]
        if event.type == "DELETED":
            self._forget(spec)
        elif event.previous is None or event.previous["spec"] != spec:
            self.install(event.object)

    def install(self, definition: Object) -> None:
        spec = definition["spec"]
        self._store.kinds.remove(spec["group"], spec["names"]["plural"])
        for kind in kinds_of(definition):
            self._store.kinds.add(kind)

    def _forget(self, spec: Object) -> None:
        plural, group = spec["names"]["plural"], spec["group"]
        storage = f"{plural}.{group}"
        for key in list(self._store.ledger.shelf(storage).keys):
            self._store.ledger.remove(storage, key)
        self._store.kinds.remove(group, plural)


def kinds_of(definition: Object) -> list[Kind]:
    """The served versions of a definition, the storage version first."""
    spec, names = definition["spec"], definition["spec"]["names"]
    versions = sorted((version for version in spec["versions"] if version.get("served")), key=lambda version: not version.get("storage"))
    return [_kind(spec, names, version) for version in versions]


def _kind(spec: Object, names: Object, version: Object) -> Kind:
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
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
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
    )


def _path(json_path: str) -> tuple[str, ...]:
    return tuple(json_path.lstrip(".").split(".")) if json_path else ()


def complete(definition: Object) -> None:
    """Defaults of a definition, and what its status says, for it is served as soon as it is stored."""
    spec = definition.get("spec") or {}
    names = spec.get("names")
    if not isinstance(names, dict) or not names.get("kind"):
        return
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    at = definition["metadata"].get("creationTimestamp")
    definition["status"] = {
        "acceptedNames": names,
        "storedVersions": [version["name"] for version in spec.get("versions") or () if version.get("storage")],
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": at},
            {
                "type": "Established",
                "status": "True",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
                "lastTransitionTime": at,
            },
        ],
    }


def definition_causes(definition: Object) -> list[tuple[str, str]]:
    """What is wrong with a definition."""
    spec, name = definition.get("spec") or {}, definition["metadata"].get("name")
    names: dict[str, Any] = spec.get("names") or {}
    causes = [(f"spec.{field}", "Required value") for field in ("group", "scope", "versions") if not spec.get(field)]
    causes += [(f"spec.names.{field}", "Required value") for field in ("plural", "kind") if not names.get(field)]
    if causes:
        return causes
    if "." not in spec["group"]:
        causes.append(("spec.group", f'Invalid value: "{spec["group"]}": should be a domain with at least one dot'))
    if name != f"{names['plural']}.{spec['group']}":
        causes.append(("metadata.name", f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'))
    if spec["scope"] not in ("Cluster", "Namespaced"):
        causes.append(("spec.scope", f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"'))
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        causes.append(("spec.versions", "Invalid value: must have exactly one version marked as storage version"))
    for index, version in enumerate(spec["versions"]):
        schema, path = (version.get("schema") or {}).get("openAPIV3Schema"), f"spec.versions[{index}].schema.openAPIV3Schema"
        causes += definition_rule_causes(schema, path) if schema else [(path, "Required value: schemas are required")]
    if (spec.get("conversion") or {}).get("strategy") not in (None, "None"):
        causes.append(("spec.conversion.strategy", 'Unsupported value: only "None" is supported'))
    return causes
