"""Wrong input gets one line: file, line, document, object, field, what was found, what to write."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.errors import InputError
from pumice.api.files import streams
from pumice.api.manifests import Objects, read_all, read_stream
from pumice.cli.manifests_to_send import manifests

POD = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"
POD_OBJECT = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}

WRONG = {
    "a quantity": (
        POD + "spec:\n  containers:\n  - resources: {requests: {memory: 1Gi, cpu: 2 cores}}\n",
        'f:6: document 1, Pod default/a, spec.containers[0].resources.requests.cpu: "2 cores" is not a quantity; '
        'write "2", or with a suffix such as "500m" or "4Gi"',
    ),
    "a negative request": (
        POD + "spec:\n  containers:\n  - resources: {requests: {memory: 1Gi, cpu: -500m}}\n",
        'f:6: document 1, Pod default/a, spec.containers[0].resources.requests.cpu: "-500m" is negative; write 0 or more',
    ),
    "a quantity of another kind": (
        POD + "spec: {overhead: {cpu: [1]}}",
        'f:4: document 1, Pod default/a, spec.overhead.cpu: found a list where a quantity belongs; write for example "2" or "500m"',
    ),
    "a number for a name": (
        "kind: Pod\napiVersion: v1\nmetadata: {name: 12}",
        'f:3: document 1, Pod default/12, metadata.name: found the number 12 where a string belongs; write "12" in quotes',
    ),
    "a boolean that looked like a word": (
        "kind: Pod\napiVersion: v1\nmetadata: {name: b, labels: {app: y}}",
        'f:3: document 1, Pod default/b, metadata.labels.app: found the boolean true where a string belongs; write "y" in quotes',
    ),
    "a number among the labels": (
        POD.replace("name: a", "name: a, labels: {app: x, tier: 3}"),
        'f:3: document 1, Pod default/a, metadata.labels.tier: found the number 3 where a string belongs; write "3" in quotes',
    ),
    "an unknown choice": (
        "kind: Node\napiVersion: v1\nmetadata: {name: m}\nspec: {taints: [{key: a, effect: NoSched}]}",
        'f:4: document 1, Node m, spec.taints[0].effect: "NoSched" is not one of its values; '
        "write NoSchedule, PreferNoSchedule or NoExecute",
    ),
    "a missing field": (
        "kind: PriorityClass\napiVersion: scheduling.k8s.io/v1\nmetadata: {name: x}",
        'f:1: document 1, PriorityClass x: field "value" is missing; write it',
    ),
    "no name": (
        "kind: Pod\napiVersion: v1\nmetadata: {}",
        'f:3: document 1, Pod default/, metadata.name: has no name; write `name: "..."`',
    ),
    "no kind": ("apiVersion: v1", "f:1: document 1: has no kind; write for example `kind: Pod`"),
    "no object": ("- 3", "f:1: document 1: found a list where an object with apiVersion and kind belongs"),
    "a time": (
        POD.replace("name: a", "name: a, creationTimestamp: yesterday"),
        'f:3: document 1, Pod default/a, metadata.creationTimestamp: "yesterday" is not a time; write one such as "2026-01-01T12:00:00Z"',
    ),
    "the same object twice": (
        POD + "---\n" + POD,
        "f:5: document 2, Pod default/a: stands twice (first in f, document 1); remove one or rename it",
    ),
    "a key twice": ("a: 1\na: 2", 'f:2: document 1: key "a" stands twice; keep one'),
    "no finite number": ("a:\n  b: -.inf", "f:2: document 1: not YAML: -.inf is no number that can be used"),
    "a number too large": ("a: 1e999", "f:1: document 1: not YAML: 1e999 is no number that can be used"),
    "not YAML": ("a: [1,", "f:2: document 1: not YAML: did not find expected node content"),
    "a template": (
        "a:\n  b: {{ .Values.b }}",
        "f:2: document 1: not YAML: found unhashable key; if this is a template, render it first, as with `helm template`",
    ),
    "a control character": ("a: 1\nb: \0", "f:2: has the character U+0000, which no YAML may have; remove it"),
    "a mapping of items": ("kind: List\napiVersion: v1\nitems: {a: b}", "f:3: document 1, items: found a mapping where a list belongs"),
    "JSON without a kind": ('{"apiVersion": "v1"}', "f:1: document 1: has no kind; write for example `kind: Pod`"),
    "what a server answered in place of objects": (
        '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "pods is forbidden"}',
        "f:1: document 1: is no object, but an API server's refusal: pods is forbidden",
    ),
    "the second of JSON objects in a row": (
        '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "m"}}\n{"kind": "Pod",\n}',
        "f:2: document 2: has no apiVersion; write for example `apiVersion: v1`",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_line_says_what_is_wrong(name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(InputError) as caught:
        read_stream(text.encode(), "f", Objects())
    assert str(caught.value) == message


HOSTILE = {
    "brackets": b"[" * 100_000,
    "braces": b"{" * 100_000,
    "dashes": b"- " * 50_000 + b"a",
    "indentation": "\n".join(" " * depth + "a:" for depth in range(3000)).encode(),
    "aliases that explode": (
        "a: &a [1]\n" + "\n".join(f"{c}: &{c} [{','.join(['*' + chr(ord(c) - 1)] * 9)}]" for c in "bcdefghijk")
    ).encode(),
    "an alias to itself": b"a: &a [*a]",
    "not UTF-8": b"\xff\xfe\x00",
    "a tag": b"!!python/object:os.system []",
    "truncated JSON": b'{"kind": "List", "items": [{"kind": "Pod"',
    "deep JSON": b'{"kind":"Pod","apiVersion":"v1","metadata":' + b'{"a":' * 50_000,
    "control characters": b"a: \x00",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_an_error_and_no_hang(name: str) -> None:
    with pytest.raises(InputError):
        read_stream(HOSTILE[name], "f", Objects())


@pytest.mark.parametrize(
    "subject", [{"name": "9" * 5000, "labels": 0}, {"name": int("9" * 4000)}, {"name": "a", "labels": {"9" * 5000: 1}}]
)
@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_a_long_name_makes_no_long_line(subject: dict[str, Any], dump: Callable[[Any], str]) -> None:
    with pytest.raises(InputError) as error:
        read_stream(dump(POD_OBJECT | {"metadata": subject}).encode(), "f", Objects())
    assert len(str(error.value)) < 600


def test_json_names_the_item_and_the_field() -> None:
    pods = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": {"overhead": {"cpu": "x"}}}]
    with pytest.raises(InputError) as caught:
        read_stream(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}).encode(), "dump.json", Objects())
    assert str(caught.value) == (
        'dump.json: document 2, Pod default/b, spec.overhead.cpu: "x" is not a quantity; write a number, such as "2", "500m" or "4Gi"'
    )


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "much"}}}


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, dump: Callable[[Any], str]) -> None:
    (tmp_path / "a.yaml").write_text(dump({"kind": "List", "apiVersion": "v1", "items": [NODE, POD_OBJECT, NODE]}))
    (tmp_path / "b.yaml").write_text(dump(POD_OBJECT | {"metadata": {}}))
    with pytest.raises(InputError) as caught:
        read_files(tmp_path)
    faults = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert [fault.partition(".yaml")[0] for fault in faults] == ["a", "a", "b"]
    assert ['"much" is not a quantity' in fault for fault in faults] == [True, True, False]


def test_a_flood_of_faults_is_cut(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE] * 50}))
    with pytest.raises(InputError) as caught:
        read_files(tmp_path)
    faults = str(caught.value).splitlines()
    assert (len(faults), faults[-1]) == (21, "and 30 more")


def test_lists_may_stand_in_lists() -> None:
    inner = {"kind": "List", "apiVersion": "v1", "items": [POD_OBJECT]}
    objects = Objects()
    read_stream(json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE | {"status": {}}, inner]}).encode(), "f", objects)
    assert [kind for kind, _ in objects.items] == ["Node", "Pod"]


def test_what_scheduling_does_not_read_is_skipped() -> None:
    objects = Objects()
    read_stream(b"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}\n---\n" + POD.encode(), "f", objects)
    assert [kind for kind, _ in objects.items] == ["Pod"]


def test_lists_folders_and_json_are_read(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("kind: List\napiVersion: v1\nitems:\n- {kind: Node, apiVersion: v1, metadata: {name: m}}")
    (tmp_path / "pods.json").write_text('{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}')
    (tmp_path / "readme.txt").write_text("no object")
    assert [(kind, item.metadata.name) for kind, item in read_files(tmp_path).items] == [("Node", "m"), ("Pod", "a")]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_objects_may_stand_in_a_row(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "row.json").write_text("\n".join(json.dumps(each, indent=indent) for each in (NODE | {"status": {}}, POD_OBJECT)) + "\n")
    assert [kind for kind, _ in read_files(tmp_path).items] == ["Node", "Pod"]
    assert [each["kind"] for each in manifests([str(tmp_path)])] == ["Node", "Pod"]


def test_a_compressed_file_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(gzip.compress(POD.encode()))
    with pytest.raises(InputError, match="is compressed; unpack it first, with gunzip"):
        read_files(tmp_path)


def test_a_missing_or_empty_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_files(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match=r"no \.yaml"):
        read_files(tmp_path)


def test_words_are_read_as_kubectl_reads_them() -> None:
    objects = Objects()
    text = 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: c, labels: {day: 2026-01-01, time: 12:30}}\ndata: {on: "1"}'
    read_stream(text.encode(), "f", objects)
    assert objects.items[0][1].metadata.labels == {"day": "2026-01-01", "time": "12:30"}
    assert objects.items[0][1].data == {"true": "1"}


def read_files(path: Path) -> Objects:
    return read_all(streams([str(path)], deep=True))
