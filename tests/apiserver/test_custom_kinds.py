"""CustomResourceDefinitions: served at once, defaulted, pruned, validated, and gone with all their objects."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api.json_objects import clone
from pumice.cluster.apiserver import PatchRequest, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.bootstrap import volcano_definitions
from pumice.cluster.apiserver.tables.table import follow, parse_path, table
from tests.apiserver.made import store

CRDS = "customresourcedefinitions.apiextensions.k8s.io"

TEXT = {"type": "string"}
PARTS = {
    "type": "array",
    "items": {"type": "object", "required": ["id"], "properties": {"id": TEXT, "n": {"type": "integer", "default": 1}}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["id"],
}


def definition(**version: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                    "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "code": {"type": "string", "pattern": "^(a+)+$"},
                    "amount": {"x-kubernetes-int-or-string": True},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "parts": PARTS,
                    "one": {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                },
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    } | version
    names = {"kind": "Box", "plural": "boxes", "shortNames": ["bx"]}
    return {
        "metadata": {"name": "boxes.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [served]},
    }


@pytest.fixture
def made() -> Store:
    made = store()
    made.create(CRDS, definition())
    return made


def box(made: Store, options: WriteOptions | None = None, **spec: Any) -> dict[str, Any]:
    return made.create("boxes.example.com", {"metadata": {"name": "b"}, "spec": spec}, "default", options or WriteOptions())


def test_defaults_are_filled_in_at_every_depth(made: Store) -> None:
    assert box(made, size=1, parts=[{"id": "x"}])["spec"] == {"size": 1, "color": "red", "parts": [{"id": "x", "n": 1}]}


def test_an_object_without_any_field_gets_defaults_too() -> None:
    schema = {"type": "object", "properties": {"color": TEXT | {"default": "red"}}}
    with_default = store()
    with_default.create(CRDS, definition(schema={"openAPIV3Schema": schema}))
    assert with_default.create("boxes.example.com", {"metadata": {"name": "b"}}, "default")["color"] == "red"


def test_unknown_fields_are_pruned_or_refused(made: Store) -> None:
    options = WriteOptions()
    assert "shape" not in box(made, options, size=1, shape="round", free={"any": "thing"})["spec"]
    assert options.warnings == ['unknown field "spec.shape"']
    with pytest.raises(StatusError, match=r'strict decoding error: unknown field "spec\.shape"'):
        box(made, WriteOptions(validation="Strict"), size=1, shape="round")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({}, "spec.size: Required value"),
        ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
        ({"size": 10}, "spec.size in body should be less than or equal to 9"),
        ({"size": "1"}, "spec.size in body must be of type integer"),
        ({"size": 1, "color": "green"}, 'Unsupported value: "green": supported values: "red", "blue"'),
        ({"size": 1, "name": "A1"}, "should match"),
        ({"size": 1, "name": "a\n"}, "should match"),
        ({"size": 1, "code": "a" * 1000 + "!"}, "should match"),
        ({"size": 1, "name": "abcdef"}, "Too long"),
        ({"size": 1, "amount": 1.5}, "must be of type integer,string"),
        ({"size": 1, "parts": [{"id": "x"}, {"id": "x"}]}, "Duplicate value"),
        ({"size": 1, "one": {"a": "1", "b": "2"}}, "one and only one"),
    ],
)
def test_what_the_schema_forbids_is_refused(made: Store, spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StatusError, match=sentence) as refusal:
        box(made, **spec)
    assert refusal.value.code == 422


def test_a_number_without_a_fraction_is_an_integer_also_where_a_text_may_stand(made: Store) -> None:
    assert box(made, size=1.0, amount=10.0)["spec"] | {"color": ""} == {"size": 1, "amount": 10, "color": ""}


def test_status_is_a_subresource_only_if_the_definition_says_so() -> None:
    for subresources, expected in (({"status": {}}, None), ({}, {"phase": "Full"})):
        made = store()
        made.create(CRDS, definition(subresources=subresources))
        box(made, size=1)
        changed = made.patch("boxes.example.com", "b", PatchRequest("merge", {"status": {"phase": "Full"}}), "default")
        assert changed.get("status") == expected
        assert changed["metadata"]["generation"] == (1 if expected is None else 2)


def test_apply_merges_lists_by_the_keys_of_the_schema(made: Store) -> None:
    def apply(manager: str, *parts: dict[str, Any]) -> Any:
        body = {"apiVersion": "example.com/v1", "kind": "Box", "spec": {"size": 1, "parts": list(parts)}}
        return made.patch("boxes.example.com", "b", PatchRequest("apply", body), "default", options=WriteOptions(manager=manager))["spec"][
            "parts"
        ]

    apply("one", {"id": "x", "n": 1})
    assert apply("two", {"id": "y", "n": 2}) == [{"id": "x", "n": 1}, {"id": "y", "n": 2}]


def test_custom_kinds_take_no_strategic_merge(made: Store) -> None:
    box(made, size=1)
    with pytest.raises(StatusError) as refusal:
        made.patch("boxes.example.com", "b", PatchRequest("strategic", {}), "default")
    assert refusal.value.code == 415


def test_a_changed_definition_holds_from_then_on(made: Store) -> None:
    changed = definition()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = 100
    made.patch(CRDS, "boxes.example.com", PatchRequest("merge", changed))
    assert box(made, size=50)["spec"]["size"] == 50


def test_every_served_version_shows_the_same_objects() -> None:
    made = store()
    crd = definition()
    old = {**crd["spec"]["versions"][0], "name": "v1alpha1", "storage": False}
    crd["spec"]["versions"].append(old)
    made.create(CRDS, crd)
    box(made, size=1)
    kind = made.kinds.at("example.com", "v1alpha1", "boxes")
    assert kind is not None
    assert made.get(kind, "b", "default")["apiVersion"] == "example.com/v1alpha1"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"metadata": {"name": "wrong"}}, "must be spec.names.plural"),
        ({"spec": {"scope": "Galaxy"}}, "spec.scope"),
        ({"spec": {"versions": []}}, "spec.versions: Required value"),
    ],
)
def test_definitions_that_make_no_sense_are_refused(change: dict[str, Any], sentence: str) -> None:
    crd = definition()
    for part, fields in change.items():
        crd[part] = crd[part] | fields
    with pytest.raises(StatusError, match=sentence):
        store().create(CRDS, crd)


def test_printer_columns_come_from_json_paths() -> None:
    made = store()
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ids", "type": "string", "jsonPath": ".spec.parts[*].id", "priority": 1},
    ]
    made.create(CRDS, definition(additionalPrinterColumns=columns))
    shown = table(made.kind("boxes.example.com"), [box(made, size=3, parts=[{"id": "x"}, {"id": "y"}])], made.now(), {})
    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Size", "Ids"]
    assert shown["rows"][0]["cells"] == ["b", 3, "x,y"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".list[0].n", ["x"]),
        (".list[-1].n", ["y"]),
        (".list[*].n", ["x", "y"]),
        (".list[?(@.n=='y')].v", [2]),
        ('.list[?(@.n=="none")].v', []),
        (".labels.a\\.b/c", ["d"]),
        (".missing.x", []),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    value = {"a": {"b": 1}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "labels": {"a.b/c": "d"}}
    assert follow(parse_path(path), value) == found


# Volcano's kinds


@pytest.fixture
def volcano() -> Store:
    made = store()
    for crd in volcano_definitions():
        made.create(CRDS, crd)
    return made


def test_volcanos_kinds_are_served_under_their_names(volcano: Store) -> None:
    expected = {
        "queues.scheduling.volcano.sh": (False, True, ("q", "queue-v1beta1")),
        "podgroups.scheduling.volcano.sh": (True, False, ("pg", "podgroup-v1beta1")),
        "jobs.batch.volcano.sh": (True, True, ("vcjob", "vj")),
        "commands.bus.volcano.sh": (True, False, ()),
        "hypernodes.topology.volcano.sh": (False, True, ("hn",)),
        "numatopologies.nodeinfo.volcano.sh": (False, False, ("numatopo",)),
        "jobflows.flow.volcano.sh": (True, True, ("jf",)),
        "jobtemplates.flow.volcano.sh": (True, True, ("jt",)),
        "cronjobs.batch.volcano.sh": (True, True, ("vccronjob", "vccj")),
        "nodeshards.shard.volcano.sh": (False, True, ()),
    }
    found = {
        kind.resource: (kind.namespaced, kind.has_status, kind.short_names) for kind in volcano.kinds if kind.group.endswith("volcano.sh")
    }
    assert found == expected


def test_a_pod_groups_plain_update_writes_spec_and_status(volcano: Store) -> None:
    made = volcano.create("podgroups.scheduling.volcano.sh", {"metadata": {"name": "g"}, "spec": {"minMember": 2}}, "default")
    assert made["spec"] == {"minMember": 2, "queue": "default"}
    changed = volcano.update("podgroups.scheduling.volcano.sh", made | {"status": {"phase": "Inqueue"}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"phase": "Inqueue"}, 2)


def test_pod_templates_within_jobs_keep_every_field(volcano: Store) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": 1}}}]},
    }
    job = {
        "metadata": {"name": "j"},
        "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": template}], "plugins": {"svc": [], "env": []}},
    }
    assert (
        volcano.create("jobs.batch.volcano.sh", job, "default", WriteOptions(validation="Strict"))["spec"]["tasks"][0]["template"]
        == template
    )


@pytest.mark.parametrize(
    ("resource", "spec", "sentence"),
    [
        ("queues.scheduling.volcano.sh", {"weight": 0}, "greater than or equal to 1"),
        ("queues.scheduling.volcano.sh", {"capability": {"cpu": "two"}}, "should match"),
        ("queues.scheduling.volcano.sh", {"dequeueStrategy": "lifo"}, "Unsupported value"),
        ("hypernodes.topology.volcano.sh", {"tier": 1, "members": []}, "at least 1 items"),
        ("hypernodes.topology.volcano.sh", {"members": [{"type": "Node", "selector": {}}]}, "one and only one"),
    ],
)
def test_volcanos_limits_hold(volcano: Store, resource: str, spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StatusError, match=sentence):
        volcano.create(resource, {"metadata": {"name": "x"}, "spec": spec})


def test_objects_that_are_older_than_a_default_have_it_when_they_are_read() -> None:
    made = store()
    declared = made.create(CRDS, definition())
    before = made.create("boxes.example.com", {"metadata": {"name": "b"}, "spec": {"size": 1}}, "default")
    changed = definition()
    spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["later"] = {"type": "string", "default": "x"}
    changed["metadata"]["resourceVersion"] = declared["metadata"]["resourceVersion"]
    made.update(CRDS, changed)
    after = made.get("boxes.example.com", "b", "default")
    assert after["spec"] == before["spec"] | {"later": "x"} and after["metadata"] == before["metadata"]


def stricter(made: Store) -> None:
    """From now on sizes are at most 3, and names have two letters."""
    current = clone(made.get(CRDS, "boxes.example.com"))
    properties = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["size"]["maximum"] = 3
    properties["parts"]["items"]["properties"]["id"] = {"type": "string", "maxLength": 2}
    made.update(CRDS, current)


def test_a_stricter_definition_does_not_block_updates_of_other_parts(made: Store) -> None:
    box(made, size=9, parts=[{"id": "long"}])
    stricter(made)
    changed = clone(made.get("boxes.example.com", "b", "default"))
    changed["spec"] |= {"color": "blue", "parts": [{"id": "b"}, {"id": "long", "n": 1}]}
    assert made.update("boxes.example.com", changed)["spec"]["color"] == "blue"
    for wrong in ({"size": 8}, {"parts": [{"id": "other"}]}, {"parts": [{"id": "long", "n": 1}, {"id": "longer"}]}):
        refused = clone(made.get("boxes.example.com", "b", "default"))
        refused["spec"] |= wrong
        with pytest.raises(StatusError, match=r"should be|Too long"):
            made.update("boxes.example.com", refused)


def test_what_is_equal_but_of_another_type_is_refused(made: Store) -> None:
    box(made, size=1)
    changed = clone(made.get("boxes.example.com", "b", "default"))
    changed["spec"]["size"] = True
    with pytest.raises(StatusError, match="must be of type integer"):
        made.update("boxes.example.com", changed)
