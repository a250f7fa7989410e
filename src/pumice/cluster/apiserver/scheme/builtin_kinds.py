"""The kinds that every cluster has, which `builtin_kinds.txt` lists, and conversions of versions that are not stored."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import asdict

from pumice.api import Object, kinds
from pumice.cluster.apiserver.scheme.builtin_shapes import object_shape
from pumice.cluster.apiserver.scheme.kinds import ALL_VERBS, Scale, ServedKind
from pumice.cluster.apiserver.scheme.second_versions import from_autoscaler_v2, from_core_event, to_autoscaler_v2, to_core_event
from pumice.cluster.apiserver.tables.columns import columns_of

_REPLICAS = Scale(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))

_KINDS = {(kind.api_version, kind.kind): kind for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)}


def _rows() -> list[tuple[kinds.Kind, dict[str, list[str]]]]:
    """Each kind with its options; one without a value has an empty list."""
    rows: list[tuple[kinds.Kind, dict[str, list[str]]]] = []
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        first, second, *words = line.split()
        if line.startswith(" "):
            rows[-1][1].setdefault(first, []).extend([second, *words])
        elif first != "#":
            stated = (word.partition("=") for word in words)
            rows.append((_KINDS[first, second], {name: value.split(",") if value else [] for name, _, value in stated}))
    return rows


_ROWS = _rows()


def _to_beta(obj: Object) -> Object:
    return obj | {"apiVersion": kinds.WORKLOADS.api_version}


#: versions that differ from the stored form, with their conversions to it and from it
_FORMS = {
    kinds.NEW_EVENTS: (to_core_event, from_core_event),
    kinds.OLD_AUTOSCALERS: (to_autoscaler_v2, from_autoscaler_v2),
    kinds.ALPHA_WORKLOADS: (_to_beta, None),
    kinds.ALPHA_POD_GROUPS: (_to_beta, None),
}
#: kinds that differ from their stored version in nothing else, so that their writes are those of it
_STORED_AS = {kinds.ALPHA_WORKLOADS: kinds.WORKLOADS, kinds.ALPHA_POD_GROUPS: kinds.NATIVE_POD_GROUPS}

_DEPRECATED = {kinds.ENDPOINTS: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}


def builtin_kinds(gates: frozenset[str] = frozenset()) -> Iterator[ServedKind]:
    """The kinds that a server with these feature gates has."""
    made: dict[kinds.Kind, ServedKind] = {}
    for kind, options in _ROWS:
        if not gates.issuperset(options.get("gate", ())):
            continue
        to_stored, from_stored = _FORMS.get(kind, (None, None))
        made[kind] = ServedKind(
            **asdict(kind),
            singular="".join(options.get("singular", ())),
            short_names=tuple(options.get("short", ())),
            categories=tuple(options.get("in", ())),
            subresources=tuple(options.get("sub", ())),
            has_status="no_status" not in options,
            scale=_REPLICAS if "scale" in options else None,
            verbs=tuple(options.get("verbs", ALL_VERBS)),
            shape=object_shape(f"{(kind.group.split('.')[0] or 'core')}.{kind.version}.{kind.kind}"),
            columns=columns_of(kind.resource),
            fields=tuple(options.get("fields", ())),
            storage="".join(options.get("storage", ())),
            to_stored=to_stored,
            from_stored=from_stored,
            stored_as=made[_STORED_AS[kind]] if kind in _STORED_AS else None,
            gates=gates,
            deprecation=_DEPRECATED.get(kind, ""),
            versioned_update="gate" in options or "versioned" in options,
            reviewed_only=kind in kinds.NEVER_STORED,
            created_by_update="put_creates" in options,
            shown_when_deleted="shown_deleted" in options,
        )
        yield made[kind]
