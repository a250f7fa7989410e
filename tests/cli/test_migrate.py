"""`pumice migrate`: there and back again, and a line for each thing that cannot be said on the other side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from pumice.api.errors import InputError
from pumice.api.resource_quota import pod_usage, times, written
from pumice.api.structs import KINDS, convert
from pumice.cli.main import cli
from pumice.cluster.migration import migrated
from tests import samples

Object = dict[str, Any]
ROLE = "volcano.sh/task-spec"


def group(name: str = "train", **spec: Any) -> Object:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 2} | spec}


def pod(name: str, named: str = "train", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "command": ["run"]}]
    notes = {"scheduling.k8s.io/group-name": named, **{key: value for key, value in (labels or {}).items() if key == ROLE}}
    meta = {"name": name, "namespace": "default", "annotations": notes, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"schedulerName": "volcano", "containers": containers, **spec}}


def native(name: str = "train", **spec: Any) -> Object:
    stated = {"workloadRef": {"workloadName": "w", "templateName": "t"}, "schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": stated}


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(f"{each['apiVersion']} {each['kind']}", each["metadata"]["name"]): each for each in objects}


def silent(objects: list[Object], to: str, scheduler: str | None = None) -> list[Object]:
    return migrated(objects, to, scheduler, lambda line: None)


def told(objects: list[Object], to: str) -> list[str]:
    lines: list[str] = []
    migrated(objects, to, None, lines.append)
    return lines


@st.composite
def gangs(draw: st.DrawFn) -> list[Object]:
    """A PodGroup of Volcano with its pods, of which all can be said natively."""
    name, ranked = draw(st.sampled_from(["train", "serve"])), draw(st.booleans())
    parts = draw(st.lists(st.integers(1, 3), min_size=0, max_size=3))
    needed = draw(st.integers(1, len(parts))) if parts else 0
    sizes = sorted(parts)
    minimum = sum(sizes[:needed]) if parts else draw(st.integers(1, 4))
    needed = next((count for count in range(1, len(sizes)) if sum(sizes[:count]) == minimum), len(sizes))
    classes = {"priorityClassName": "high"} if ranked else {}
    members = [pod(f"{name}-{number}", name, {"app": "x"}, **classes) for number in range(0 if parts else draw(st.integers(1, 3)))]
    topologies = st.sampled_from([{}, {"networkTopology": {"mode": "hard", "highestTierName": "example.com/rack"}}])
    policies = []
    for number, size in enumerate(parts):
        part = f"part-{number}"
        told = {"labelSelector": {"matchLabels": {ROLE: part}}, "matchLabelKeys": [ROLE]}
        policies.append({"name": part, **told, "subGroupSize": size, "minSubGroups": int(needed == len(parts)), **draw(topologies)})
        members.append(pod(f"{name}-{part}", name, {ROLE: part}, **classes))
    spec = {"minMember": minimum, **({"subGroupPolicy": policies} if policies else {}), **classes, **draw(topologies)}
    if draw(st.booleans()):
        spec["queue"] = "research"
    spec["minResources"] = written(times(pod_usage(members[0]["spec"]), minimum))
    made = group(name, **spec)
    if draw(st.booleans()):
        made["metadata"]["labels"] = {"team": "a"}
    return [made, *members]


@settings(max_examples=samples.times(15), deadline=None)
@given(gangs())
def test_there_and_back_again(objects: list[Object]) -> None:
    there = silent(objects, "native")
    assert not {each["apiVersion"] for each in there} & {"scheduling.volcano.sh/v1beta1"}
    for each in there:
        struct = KINDS.get((each["apiVersion"].rpartition("/")[0], each["kind"]))
        assert struct is None or convert(each, struct)
    back = silent(there, "volcano")
    policies = [each["spec"].get("subGroupPolicy", []) for each in (*objects, *back) if each["kind"] == "PodGroup"]
    for each in policies:
        each.sort(key=lambda policy: policy["name"])
    assert by_name(back) == by_name(objects)
    assert by_name(silent(back, "native")) == by_name(there)


def test_what_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "input.yaml"
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    path.write_text(yaml.dump_all([group(queue="research", minMember=3), pod("a"), other, node]))
    command = ["migrate", "-f", str(path), "--to", "native", "--scheduler-name", "default-scheduler"]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    workload, made, member, *others = yaml.safe_load_all(result.stdout)
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert workload["spec"] == {"podGroupTemplates": [{"name": "pods", **policy}]} and workload["kind"] == "Workload"
    assert made["spec"] == {"workloadRef": {"workloadName": "train", "templateName": "pods"}, **policy}
    assert made["metadata"]["labels"] == {"scheduling.volcano.sh/queue-name": "research"}
    assert member["spec"]["schedulingGroup"] == {"podGroupName": "train"} and member["spec"]["schedulerName"] == "default-scheduler"
    assert "annotations" not in member["metadata"] and others == [other, node]
    assert result.stderr == "PodGroup default/train: queue research is kept as a label, which Pumice reads and kube-scheduler does not\n"


def test_the_names_of_a_workload_come_back() -> None:
    member = pod("a", spec={})
    del member["metadata"]["annotations"]
    member["spec"]["schedulingGroup"] = {"podGroupName": "train"}
    back = silent(silent([native(), member], "volcano"), "native")
    assert by_name(back)["scheduling.k8s.io/v1beta1 PodGroup", "train"]["spec"] == native()["spec"]
    assert by_name(back)["scheduling.k8s.io/v1beta1 Workload", "w"]["spec"]["podGroupTemplates"][0]["name"] == "t"


def test_two_groups_of_one_template_have_one_workload() -> None:
    there = silent(silent([native("a"), native("b")], "volcano"), "native")
    (workload,) = (each for each in there if each["kind"] == "Workload")
    assert [each["name"] for each in workload["spec"]["podGroupTemplates"]] == ["t"]


def test_templates_of_workloads_are_translated_and_groups_of_coscheduling_are_read() -> None:
    template = {"metadata": {"labels": {"app": "x", "scheduling.x-k8s.io/pod-group": "g"}}, "spec": {"containers": [{"name": "c"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": {"template": template}}},
    }
    groups = [{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 4}}]
    made, *workloads = silent([*groups, job, cron], "volcano", "volcano")
    assert made["apiVersion"].startswith("scheduling.volcano.sh") and made["spec"]["minMember"] == 4
    for found in (workloads[0]["spec"]["template"], workloads[1]["spec"]["jobTemplate"]["spec"]["template"]):
        assert found["metadata"] == {"labels": {"app": "x"}, "annotations": {"scheduling.k8s.io/group-name": "g"}}
        assert found["spec"]["schedulerName"] == "volcano"


SOFT = {"mode": "soft"}
PARTS = [{"name": "a", "matchLabelKeys": ["part"], "subGroupSize": 2}]


@pytest.mark.parametrize(
    ("objects", "to", "line"),
    [
        ([group(minTaskMember={"w": 1})], "native", "minTaskMember is not translated: a native PodGroup has one minimum"),
        ([group(subGroupPolicy=PARTS)], "native", "subGroupPolicy is not translated"),
        ([group(networkTopology=SOFT)], "native", "networkTopology is not translated"),
        ([group(networkTopology={"mode": "hard", "highestTierAllowed": 1})], "native", "networkTopology is not translated"),
        ([group(minResources={"cpu": "9"}), pod("a")], "native", "minResources is not translated"),
        ([group(priorityClassName="high"), pod("a")], "native", "Pod default/a: kube-scheduler refuses a member"),
        ([pod("a")], "native", "Pod default/a: left as it is: PodGroup train is not given"),
        ([{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}], "native", "Job default/j: left as it is"),
        ([native(disruptionMode={"all": {}})], "volcano", "disruptionMode is not translated"),
        ([native(preemptionPolicy="Never")], "volcano", "preemptionPolicy is not translated"),
        ([native(priority=7)], "volcano", "priority is not translated"),
        ([native(resourceClaims=[{"name": "c"}])], "volcano", "resourceClaims is not translated"),
        ([{**pod("a"), "metadata": {"name": "a"}} | {"spec": {"schedulingGroup": {"podGroupName": "x"}}}], "volcano", "is not given"),
    ],
)
def test_what_cannot_be_translated_is_told_in_one_line(objects: list[Object], to: str, line: str) -> None:
    (found,) = told(objects, to)
    assert line in found and "\n" not in found


@pytest.mark.parametrize("to", ["native", "volcano"])
def test_a_pod_that_a_server_names_is_called_by_what_its_name_begins_with(to: str) -> None:
    made = pod("")
    made["metadata"] = {"generateName": "worker-", "annotations": made["metadata"]["annotations"]}
    if to == "volcano":
        made["metadata"].pop("annotations")
        made["spec"]["schedulingGroup"] = {"podGroupName": "train"}
    assert told([made], to)[0].startswith("Pod default/worker-: left as it is: ")
    *_, moved = silent([group() if to == "native" else native(), made], to)
    assert moved["metadata"]["generateName"] == "worker-" and "name" not in moved["metadata"]
    assert ("schedulingGroup" in moved["spec"]) is (to == "native")


def test_what_says_nothing_is_not_told() -> None:
    assert told([native(disruptionMode={"single": {}}, priority=7, priorityClassName="high")], "volcano") == []


@pytest.mark.parametrize(
    "odd", [{"metadata": {}}, {"metadata": {"generateName": "a"}}, {"spec": {"minMember": "x"}}, {"metadata": {"name": "a", "labels": [1]}}]
)
def test_an_object_that_cannot_be_read_is_an_error(odd: Object) -> None:
    with pytest.raises(InputError, match="PodGroup"):
        silent([group() | odd], "native")
