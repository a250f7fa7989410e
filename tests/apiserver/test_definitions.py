"""Definitions of custom kinds: whose names they may have, and how they end."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pumice.api.json_objects import copied
from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.crd import CLEANUP, DELETED_AT_ONCE
from tests.apiserver.made import store
from tests.apiserver.server_process import in_thread
from tests.apiserver.test_custom_kinds import CRDS, box, definition
from tests.apiserver.wire import Wire

BOXES = "boxes.example.com"


def named(group: str, annotations: dict[str, str] | None = None, **names: Any) -> dict[str, Any]:
    crd = definition()
    crd["spec"] |= {"group": group, "names": {"kind": "Box", "plural": "boxes"} | names}
    crd["metadata"] = {"name": f"{crd['spec']['names']['plural']}.{group}", "annotations": annotations or {}}
    return crd


def conditions(crd: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in crd["status"]["conditions"]}


@pytest.mark.parametrize("group", sorted({kind.group for kind in builtin_kinds()} - {""}))
def test_groups_of_built_in_kinds_are_closed(group: str) -> None:
    made = store()
    approved = {"api-approved.kubernetes.io": "https://example.com/approval"}
    with pytest.raises(StatusError, match=r"spec\.group: Invalid value"):
        made.create(CRDS, named(group, approved, kind="ClusterRoleBinding", plural="clusterrolebindings"))


def test_a_definition_in_an_old_journal_takes_no_built_in_kind_away() -> None:
    made = store()
    made.create(CRDS, definition())
    hijacker = made.get(CRDS, BOXES) | {"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}}
    names = {"kind": "ClusterRoleBinding", "plural": "clusterrolebindings"}
    hijacker["spec"] = hijacker["spec"] | {"group": "rbac.authorization.k8s.io", "names": names}
    hijacker["status"] = hijacker["status"] | {"acceptedNames": names}
    before = made.kind("clusterrolebindings.rbac.authorization.k8s.io")
    made.restore(CRDS, ("", "clusterrolebindings.rbac.authorization.k8s.io"), hijacker)
    assert made.kind("clusterrolebindings.rbac.authorization.k8s.io") is before
    made.storage.remove(CRDS, ("", "clusterrolebindings.rbac.authorization.k8s.io"))
    assert made.kind("clusterrolebindings.rbac.authorization.k8s.io") is before


@pytest.mark.parametrize(
    ("approval", "sentence"), [("", "Required value"), ("because", "Invalid value"), ("https://x", ""), ("unapproved, test", "")]
)
def test_protected_groups_want_an_approval(approval: str, sentence: str) -> None:
    crd = named("snapshot.storage.k8s.io", {"api-approved.kubernetes.io": approval})
    if sentence:
        with pytest.raises(StatusError, match=rf"metadata.annotations\[api-approved.kubernetes.io\]: {sentence}"):
            store().create(CRDS, crd)
    else:
        store().create(CRDS, crd)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"plural": "bx", "kind": "Other"}, "PluralConflict"),
        ({"plural": "others", "kind": "Other", "singular": "boxes"}, "SingularConflict"),
        ({"plural": "others", "kind": "Other", "shortNames": ["o", "box"]}, "ShortNamesConflict"),
        ({"plural": "others", "kind": "Box"}, "SingularConflict"),
        ({"plural": "others", "kind": "Box", "singular": "other"}, "KindConflict"),
        ({"plural": "others", "kind": "Other", "listKind": "BoxList"}, "ListKindConflict"),
    ],
)
def test_names_that_another_definition_of_the_group_has_are_not_accepted(names: dict[str, Any], reason: str) -> None:
    made = store()
    made.create(CRDS, definition())
    second = made.create(CRDS, named("example.com", **names))
    assert conditions(second) == {"NamesAccepted": ("False", reason), "Established": ("False", "NotAccepted")}
    resource = second["metadata"]["name"]
    assert not made.kinds.known(resource)
    assert made.kind(BOXES).kind == "Box"
    made.create(CRDS, named("other.example.com", **names))
    assert made.kinds.known(f"{names['plural']}.other.example.com"), "another group is another matter"
    made.delete(CRDS, BOXES)
    made.collector.run()
    assert conditions(made.get(CRDS, resource)) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert made.kinds.known(resource)


def test_an_established_definition_keeps_its_names_when_others_are_taken() -> None:
    made = store()
    made.create(CRDS, definition())
    made.create(CRDS, named("example.com", kind="Other", plural="others"))
    changed = made.patch(CRDS, "others.example.com", PatchRequest("merge", {"spec": {"names": {"shortNames": ["bx"]}}}))
    assert conditions(changed) == {"NamesAccepted": ("False", "ShortNamesConflict"), "Established": ("True", "InitialNamesAccepted")}
    assert made.kind("others.example.com").short_names == ()
    for names in ({"kind": "Another"}, {"plural": "another"}):
        with pytest.raises(StatusError, match=r"immutable|must be spec\.names\.plural"):
            made.patch(CRDS, "others.example.com", PatchRequest("merge", {"spec": {"names": names}}))
    with pytest.raises(StatusError, match=r"spec\.scope: Invalid value"):
        made.patch(CRDS, "others.example.com", PatchRequest("merge", {"spec": {"scope": "Cluster"}}))


def boxes(made: Store, count: int) -> None:
    for number in range(count):
        made.create(BOXES, {"metadata": {"name": f"b{number}"}, "spec": {"size": 1}}, "default")


def test_a_deleted_definition_takes_its_objects_along() -> None:
    made = store()
    made.create(CRDS, definition())
    boxes(made, 2 * DELETED_AT_ONCE + 1)
    watch = made.watch(BOXES)
    going, gone = made.delete(CRDS, BOXES)
    assert (going["metadata"]["finalizers"], gone, conditions(going)["Terminating"]) == (
        [CLEANUP],
        False,
        ("True", "InstanceDeletionPending"),
    )
    with pytest.raises(StatusError) as refused:
        boxes(made, 1)
    assert refused.value.code == 405
    made.collector.step(1)
    assert len(watch.take()) == DELETED_AT_ONCE, "a little at a time"
    made.collector.run()
    assert {seen_as for seen_as, _ in watch.take()} == {"DELETED"}
    assert not made.kinds.known(BOXES)
    assert made.find(CRDS, "", BOXES) is None
    assert not made.storage.kind_storage(BOXES).keys


def test_a_definition_waits_for_objects_that_are_held() -> None:
    made = store()
    made.create(CRDS, definition())
    box(made, size=1)
    made.patch(BOXES, "b", PatchRequest("merge", {"metadata": {"finalizers": ["example.com/held"]}}), "default")
    made.delete(CRDS, BOXES)
    made.collector.run()
    assert made.get(BOXES, "b", "default")["metadata"]["deletionTimestamp"]
    made.patch(BOXES, "b", PatchRequest("merge", {"metadata": {"finalizers": None}}), "default")
    made.collector.run()
    assert made.find(CRDS, "", BOXES) is None


def test_a_definition_is_deleted_under_a_journal(tmp_path: Path) -> None:
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert wire.ask("POST", path, definition())[0] == 201
        for name in ("a", "b"):
            assert (
                wire.ask("POST", "/apis/example.com/v1/namespaces/default/boxes", {"metadata": {"name": name}, "spec": {"size": 1}})[0]
                == 201
            )
        assert wire.ask("DELETE", f"{path}/{BOXES}")[0] == 200
        while wire.ask("GET", f"{path}/{BOXES}")[0] == 200:
            pass
        assert wire.ask("GET", "/apis/example.com/v1/namespaces/default/boxes")[0] == 404


def test_a_deletion_that_was_under_way_goes_on_after_a_restart(tmp_path: Path) -> None:
    with in_thread(plain=True, data=tmp_path) as running:

        def left_halfway(made: Store) -> None:
            made.create(CRDS, definition())
            boxes(made, 2)
            made.collector.wake = None
            made.delete(CRDS, BOXES)

        running.call(left_halfway)
    with in_thread(plain=True, data=tmp_path) as running:
        while running.call(lambda made: made.find(CRDS, "", BOXES)) is not None:
            pass


def test_writes_made_while_hearing_of_a_write_come_after_it() -> None:
    recorded: list[int] = []

    class Kept:
        def record(self, storage: str, event: Any) -> None:
            recorded.append(event.resource_version)

    made = store(journal=Kept())
    answered: list[str] = []

    def answering(storage: str, event: Any) -> None:
        if not answered:
            answered.append(storage)
            made.create("secrets", {"metadata": {"name": "s"}}, "default")

    made.storage.listen(answering, "configmaps")
    made.create("configmaps", {"metadata": {"name": "c"}}, "default")
    assert recorded == sorted(recorded) and answered


def upgrades() -> list[list[dict[str, Any]]]:
    """The versions of a kind, from release to release: v2 is added, stored, the only one; v1 comes back; a field more; and again."""
    v1 = definition()["spec"]["versions"][0] | {"storage": False}
    v2 = {**v1, "name": "v2"}
    more = copied(v2)
    more["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["weight"] = {"type": "integer", "default": 1}
    stored = {"storage": True}
    return [[v1, v2 | stored], [v1 | {"served": False}, v2 | stored], [v1, more | stored], [v1 | stored, more]] * 3


def test_a_kind_is_upgraded_while_others_write() -> None:
    """Nothing that was acknowledged is lost, and a watch has it once."""
    path = "/apis/example.com/{}/namespaces/default/boxes"
    acknowledged: list[str] = []
    ended = threading.Event()

    with in_thread(plain=True) as running, Wire(running) as wire, Wire(running) as watching:
        running.call(lambda store: store.create(CRDS, definition()))
        running.call(lambda store: store.patch(CRDS, "boxes.example.com", PatchRequest("merge", with_versions(upgrades()[0]))))
        watching.watch(f"{path.format('v2')}?watch=true")

        def write(writer: int) -> None:
            with Wire(running) as own:
                for number in itertools.count():
                    if ended.is_set():
                        return
                    for version in ("v1", "v2"):
                        name = f"{writer}-{version}-{number}"
                        body = {"apiVersion": f"example.com/{version}", "kind": "Box", "metadata": {"name": name}, "spec": {"size": 1}}
                        code, answer = own.ask("POST", path.format(version), body)
                        assert code == 201 or (code, version) == (404, "v1"), answer
                        if code == 201:
                            acknowledged.append(name)

        with ThreadPoolExecutor(2) as writers:
            writing = [writers.submit(write, writer) for writer in range(2)]
            for versions in upgrades():
                before = len(acknowledged)
                running.call(
                    lambda store, versions=versions: store.patch(CRDS, "boxes.example.com", PatchRequest("merge", with_versions(versions)))
                )
                while len(acknowledged) < before + 4 and not any(each.done() for each in writing):
                    time.sleep(0.001)
            ended.set()
            for each in writing:
                each.result()
        stored = running.call(lambda store: [item["metadata"]["name"] for item in store.all(BOXES, "default")])
        assert wire.ask("GET", f"{path.format('v2')}/{acknowledged[0]}")[1]["apiVersion"] == "example.com/v2"
        seen = watching.events(len(acknowledged))
    assert sorted(stored) == sorted(acknowledged)
    assert sorted(event["object"]["metadata"]["name"] for event in seen) == sorted(acknowledged)


def with_versions(versions: list[dict[str, Any]]) -> dict[str, Any]:
    crd = definition()
    crd["spec"]["versions"] = versions
    return crd


@pytest.mark.parametrize("items", [[{"type": "string"}], 5, "x", True])
def test_items_that_are_no_schema_are_refused(items: Any) -> None:
    crd = named("example.com")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["list"] = {"type": "array", "items": items}
    with pytest.raises(StatusError) as refused:
        store().create(CRDS, crd)
    assert 400 <= refused.value.code < 500 and "items" in str(refused.value)
