"""Gangs that other projects' objects mean get PodGroups of Volcano."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key, kinds
from pumice.api.gang_dialects import COSCHEDULING_POD_GROUPS, DIALECTS, JOB_SETS, RAY_CLUSTERS
from pumice.api.json_objects import Object, annotations_of, condition, labels_of
from pumice.controllers.volcano.podgroup import PATIENCE_S, PodGroups
from tests.controllers.stage import Stage, plain_pod, table

CASES = table("gangs.yaml")
NATIVE = kinds.NATIVE_POD_GROUP


def stored(subject: Object) -> Object:
    meta = subject["metadata"]
    return subject | {"metadata": {"namespace": "default", "uid": f"uid-{meta['name']}", **meta}}


def member(name: str, objects: list[Object], owner: str = "", labels: dict[str, str] | None = None, **more: Any) -> Object:
    kind, _, named = owner.partition("/")
    found = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, named)]
    pod = plain_pod(name, stored(found[0]) if found else None, more.get("annotations"), **more.get("spec", {}))
    if owner and not found:
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": kind, "name": named, "uid": f"uid-{named}", "controller": True}]
    pod["metadata"]["labels"] = labels or {}
    return pod


def native(name: str = "train", **spec: Any) -> Object:
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return stored({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": policy | spec})


def in_group(name: str, group: str = "train") -> Object:
    return plain_pod(name, schedulingGroup={"podGroupName": group})


def play(*objects: Object, **settings: Any) -> Stage:
    return Stage(*objects, controllers=[PodGroups(**settings)])


def named_by(stage: Stage, pod: str) -> str | None:
    return annotations_of(stage.get(kinds.POD, pod)).get(key.GROUP_NAME)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_dialect(case: dict[str, Any]) -> None:
    pods = [member(name, case["objects"], **each) for name, each in case["members"].items()]
    stage = play(*map(stored, case["objects"]), *pods)
    groups = {}
    for group in stage.lister.all(kinds.POD_GROUP):
        amounts = group["spec"].pop("minResources", {})
        groups[group["metadata"]["name"]] = group["spec"] | ({"cpu": amounts["cpu"]} if "cpu" in amounts else {})
        if "annotations" in case:
            assert annotations_of(group) == case["annotations"]
    assert groups == case["groups"]
    for name, (group_name, *role) in case["pods"].items():
        assert named_by(stage, name) == group_name
        said = annotations_of(stage.get(kinds.POD, name)).get(key.TASK_SPEC)
        assert said == (role[0] if role else None)
        if "subGroupPolicy" in case["groups"][group_name]:
            assert labels_of(stage.get(kinds.POD, name))[key.TASK_SPEC] == said, "sub-groups are told by a label"


def test_every_row_of_the_table_has_a_case() -> None:
    shown = {(each["apiVersion"].partition("/")[0], each["kind"]) for case in CASES for each in case["objects"]}
    assert {(dialect.kind.group, dialect.kind.kind) for dialect in DIALECTS} <= shown


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_was_made_stays_as_it_is(case: dict[str, Any]) -> None:
    pods = [member(name, case["objects"], **each) for name, each in case["members"].items()]
    play(*map(stored, case["objects"]), *pods).assert_settled()


def test_without_the_switch_all_is_as_in_volcano() -> None:
    stage = play(native(), in_group("a"), gangs_of_others=False)
    assert stage.names(kinds.POD_GROUP) == ["podgroup-uid-a"] and NATIVE not in PodGroups(gangs_of_others=False).watches


@pytest.mark.parametrize(
    "late",
    [
        native(),
        stored(
            {"apiVersion": COSCHEDULING_POD_GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2}}
        ),
    ],
)
def test_a_pod_waits_for_the_group_that_it_names(late: Object) -> None:
    pod = in_group("a")
    pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
    if late["apiVersion"] == COSCHEDULING_POD_GROUPS.api_version:
        del pod["spec"]["schedulingGroup"]
    stage = play(pod)
    stage.wait(10 * PATIENCE_S)
    assert stage.names(kinds.POD_GROUP) == []
    stage.add(late)
    assert named_by(stage, "a") == "train"


def test_a_tree_is_waited_for_up_to_its_root() -> None:
    stage = play(native(parentCompositePodGroupName="top"), in_group("a"))
    assert stage.names(kinds.POD_GROUP) == []
    root = {"apiVersion": kinds.COMPOSITE_POD_GROUPS.api_version, "kind": "CompositePodGroup", "metadata": {"name": "top"}}
    stage.add(stored(root | {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}}))
    assert named_by(stage, "a") == "top-uid-top"


def test_a_tree_with_groups_in_between_needs_all_of_its_pods() -> None:
    def composite(name: str, **spec: Any) -> Object:
        return stored(
            {"apiVersion": kinds.COMPOSITE_POD_GROUPS.api_version, "kind": "CompositePodGroup", "metadata": {"name": name}, "spec": spec}
        )

    gang = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    trees = [composite("top", **gang), composite("mid", parentCompositePodGroupName="top", **gang)]
    leaves = [native("a", parentCompositePodGroupName="mid"), native("b", parentCompositePodGroupName="top")]
    stage = play(*trees, *leaves, in_group("p", "a"))
    assert stage.get(kinds.POD_GROUP, "top-uid-top")["spec"]["minMember"] == 4


def test_an_owner_that_is_not_known_is_waited_for_and_then_done_without() -> None:
    owner = stored(
        {"apiVersion": RAY_CLUSTERS.api_version, "kind": "RayCluster", "metadata": {"name": "ray"}, "spec": {"headGroupSpec": {}}}
    )
    stage = play(plain_pod("a", owner))
    stage.wait(PATIENCE_S - 1)
    assert named_by(stage, "a") is None
    stage.add(owner)
    stage.wait(1)
    assert named_by(stage, "a") == "ray-uid-ray"
    late = play(plain_pod("a", owner))
    late.wait(PATIENCE_S)
    assert named_by(late, "a") == "podgroup-uid-ray"


def test_a_label_alone_is_waited_for_just_as_long() -> None:
    pod = plain_pod("a")
    pod["metadata"]["labels"] = {"training.kubeflow.org/job-name": "gone"}
    stage = play(pod)
    assert named_by(stage, "a") is None
    stage.wait(PATIENCE_S)
    assert named_by(stage, "a") == "podgroup-uid-a"


def test_a_minimum_that_changes_is_followed() -> None:
    stage = play(native(), in_group("a"), in_group("b"))
    stage.change(NATIVE, "train", {"spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}})
    group = stage.get(kinds.POD_GROUP, "train")
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (5, "5")
    stage.change(NATIVE, "train", {"metadata": {"labels": {key.QUEUE_NAME: "gold"}}})
    assert stage.get(kinds.POD_GROUP, "train")["spec"]["queue"] == "gold"


def test_an_owner_that_grows_is_followed() -> None:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}
    jobs = [{"name": "w", "replicas": 2, "template": template}]
    owner = stored({"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "metadata": {"name": "js"}, "spec": {"replicatedJobs": jobs}})
    stage = play(owner, plain_pod("a", owner))
    stage.change(JOB_SETS.name, "js", {"spec": {"replicatedJobs": [{**jobs[0], "replicas": 3}]}})
    assert stage.get(kinds.POD_GROUP, "js-uid-js")["spec"]["minMember"] == 3
    stage.assert_settled()


def test_a_group_of_volcano_with_the_same_name_is_left_as_its_author_made_it() -> None:
    mine = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 9}}
    stage = play(stored(mine), native(), in_group("a"))
    stage.change(NATIVE, "train", {"spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}})
    assert named_by(stage, "a") == "train" and stage.get(kinds.POD_GROUP, "train")["spec"] == {"minMember": 9}


def test_a_group_that_is_lost_is_made_again() -> None:
    stage = play(native(), in_group("a"), in_group("b"))
    stage.delete(kinds.POD_GROUP, "train")
    assert stage.names(kinds.POD_GROUP) == ["train"]


def test_a_native_group_says_what_became_of_it() -> None:
    stage = play(native(), in_group("a"), in_group("b"))
    assert condition(stage.get(NATIVE, "train"), "PodGroupInitiallyScheduled") is None
    waits = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/2 tasks in gang unschedulable"}
    stage.change(kinds.POD_GROUP, "train", {"status": {"phase": "Inqueue", "conditions": [waits]}})
    told = condition(stage.get(NATIVE, "train"), "PodGroupInitiallyScheduled")
    assert told is not None
    assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", "2/2 tasks in gang unschedulable")
    stage.change(kinds.POD_GROUP, "train", {"status": {"phase": "Running"}})
    told = condition(stage.get(NATIVE, "train"), "PodGroupInitiallyScheduled")
    assert told is not None and (told["status"], told["reason"]) == ("True", "Scheduled")
    stage.change(kinds.POD_GROUP, "train", {"status": {"phase": "Inqueue"}})
    assert condition(stage.get(NATIVE, "train"), "PodGroupInitiallyScheduled") == told, "it was scheduled once"
    stage.assert_settled()


def test_each_native_group_of_a_tree_says_it() -> None:
    root = {"apiVersion": kinds.COMPOSITE_POD_GROUPS.api_version, "kind": "CompositePodGroup", "metadata": {"name": "top"}}
    tree = stored(root | {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}})
    leaves = [native(name, parentCompositePodGroupName="top") for name in ("a", "b")]
    stage = play(tree, *leaves, in_group("p", "a"), in_group("q", "b"))
    stage.change(kinds.POD_GROUP, "top-uid-top", {"status": {"phase": "Running"}})
    assert all(condition(stage.get(NATIVE, name), "PodGroupInitiallyScheduled") for name in ("a", "b"))


def test_a_long_name_of_a_sub_group_is_cut_to_a_label() -> None:
    root = {"apiVersion": kinds.COMPOSITE_POD_GROUPS.api_version, "kind": "CompositePodGroup", "metadata": {"name": "top"}}
    tree = stored(root | {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}})
    long = "x" * 100
    stage = play(tree, native(long, parentCompositePodGroupName="top"), in_group("p", long))
    (policy,) = stage.get(kinds.POD_GROUP, "top-uid-top")["spec"]["subGroupPolicy"]
    label = labels_of(stage.get(kinds.POD, "p"))[key.TASK_SPEC]
    assert len(label) == 63 and policy["labelSelector"]["matchLabels"] == {key.TASK_SPEC: label}


@pytest.mark.parametrize("spec", [{}, {"replicatedJobs": "x"}, {"replicatedJobs": [7, {"name": None, "replicas": "many", "template": 3}]}])
def test_an_owner_that_makes_no_sense_stops_nothing(spec: Object) -> None:
    owner = stored({"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "metadata": {"name": "js"}, "spec": spec})
    assert named_by(play(owner, plain_pod("a", owner)), "a") == "js-uid-js"


def test_a_long_name_of_an_owner_is_cut_to_a_name() -> None:
    owner = stored({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "dag", "uid": "u"}})
    pod = plain_pod("x" * 240 + "." * 3 + "y" * 10, owner)
    pod["metadata"]["uid"] = "u" * 10
    (name,) = play(owner, pod).names(kinds.POD_GROUP)
    assert name == "x" * 240 + "-" + "u" * 10


def test_another_owner_under_an_old_name_is_not_the_pods() -> None:
    owner = stored(
        {"apiVersion": RAY_CLUSTERS.api_version, "kind": "RayCluster", "metadata": {"name": "ray"}, "spec": {"headGroupSpec": {}}}
    )
    pod = plain_pod("a", owner)
    pod["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    stage = play(owner, pod)
    stage.wait(PATIENCE_S)
    assert named_by(stage, "a") == "podgroup-uid-before"
