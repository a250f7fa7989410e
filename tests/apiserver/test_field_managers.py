"""Who owns which field after ordinary writes over HTTP: their makers, by the name that they give or that their program has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.cluster.apiserver.patches.managed_fields import MOST_UPDATERS, OLDEST, SharedFields
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire

POD = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
PODS = "/api/v1/namespaces/default/pods"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with in_thread(plain=True) as running, Wire(running) as made:
        yield made


def owners(obj: dict[str, Any]) -> dict[tuple[str, str, str], Any]:
    entries = obj["metadata"]["managedFields"]
    assert all(entry["fieldsType"] == "FieldsV1" and entry["apiVersion"] == "v1" for entry in entries)
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries}


@pytest.mark.parametrize(
    ("query", "headers", "manager"),
    [
        ("?fieldManager=mine", {"User_Agent": "kubectl/v1.36"}, "mine"),
        ("", {"User_Agent": "kubectl/v1.36 (linux)"}, "kubectl"),
        ("", {}, "unknown"),
    ],
)
def test_what_is_created_belongs_to_its_maker_with_its_defaults(wire: Wire, query: str, headers: Any, manager: str) -> None:
    fields = owners(wire.ask("POST", PODS + query, POD, **headers)[1])[(manager, "Update", "")]
    assert fields["f:metadata"] == {"f:labels": {"f:a": {}}}
    assert "f:restartPolicy" in fields["f:spec"]
    assert "f:image" in fields["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert "f:priority" not in fields["f:spec"], "admission's part is nobody's"
    assert "f:status" not in fields


def test_each_write_takes_what_it_changes_and_status_is_a_part_of_its_own(wire: Wire) -> None:
    wire.ask("POST", f"{PODS}?fieldManager=maker", POD)
    image = {"spec": {"containers": [{"name": "c", "image": "two"}]}}
    wire.ask("PATCH", f"{PODS}/p", image, "application/strategic-merge-patch+json", User_Agent="x/1")
    told = owners(wire.ask("PATCH", f"{PODS}/p/status?fieldManager=kubelet", {"status": {"message": "m"}}, MERGE)[1])
    assert told["x", "Update", ""]["f:spec"]["f:containers"]['k:{"name":"c"}'].keys() - {"."} == {"f:image"}
    assert "f:image" not in told["maker", "Update", ""]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert told["maker", "Update", ""]["f:metadata"] == {"f:labels": {"f:a": {}}}
    assert told["kubelet", "Update", "status"] == {"f:status": {"f:message": {}}}


def test_an_apply_conflicts_with_the_one_who_created(wire: Wire) -> None:
    wire.ask("POST", f"{PODS}?fieldManager=maker", POD)
    other = {"apiVersion": "v1", "kind": "Pod"} | POD | {"spec": {"containers": [{"name": "c", "image": "two"}]}}
    refused = wire.ask("PATCH", f"{PODS}/p?fieldManager=me", other, APPLY)
    assert refused[0] == 409
    assert 'conflict with "maker" using v1: .spec.containers[name="c"].image' in refused[1]["message"]
    forced = wire.ask("PATCH", f"{PODS}/p?fieldManager=me&force=true", other, APPLY)[1]
    assert "f:image" not in owners(forced)["maker", "Update", ""]["f:spec"]["f:containers"]['k:{"name":"c"}']


def test_managers_are_not_kept_without_end(wire: Wire) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    wire.ask("POST", f"{path}?fieldManager=m", {"metadata": {"name": "c"}, "data": {"k": "v"}})
    for number in range(30):
        written = wire.ask("PATCH", f"{path}/c?fieldManager=m{number}", {"data": {f"k{number}": "v"}}, MERGE)[1]
    found = owners(written)
    assert len(found) == MOST_UPDATERS
    assert {f"f:k{number}" for number in range(21)} <= found[OLDEST, "Update", ""]["f:data"].keys()
    assert wire.ask("PATCH", f"{path}/c?fieldManager={'m' * 129}", {}, MERGE)[0] == 422


def test_fields_of_one_form_are_written_once_and_read_as_they_were_written() -> None:
    shared, paths = SharedFields(1), [frozenset({("f:spec", f"f:{name}")}) for name in "abc"]
    first, second = (shared.write(each) for each in paths[:2])
    assert shared.write(paths[0]) is first and shared.read(first) is paths[0]
    assert shared.read(json.loads(json.dumps(second))) == paths[1]  # somebody else's copy
    third = shared.write(paths[2])  # there was no room
    assert [shared.read(each) for each in (first, second, third)] == paths
    assert shared.write(paths[0]) is not first


@pytest.mark.parametrize("without", ["fieldsV1", "fieldsType", "time", "manager"])
def test_a_client_that_sends_back_less_of_the_owners_is_no_fault_of_the_server(wire: Wire, without: str) -> None:
    _, made = wire.ask("POST", PODS, POD)
    for entry in made["metadata"]["managedFields"]:
        del entry[without]
    made["metadata"]["labels"] = {"a": "c"}
    status, updated = wire.ask("PUT", f"{PODS}/p?fieldManager=second", made)
    assert status == 200
    assert "f:a" in json.dumps([entry for entry in updated["metadata"]["managedFields"] if entry["manager"] == "second"])
