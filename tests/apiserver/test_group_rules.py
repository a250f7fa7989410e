"""Kubernetes' own groups: what validation says of them, to the word of 1.37.2; and what servers with other gates make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from pumice.api.json_objects import clone
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, StatusError, Store
from pumice.cluster.apiserver.bootstrap import bootstrap
from pumice.cluster.apiserver.discovery import Discovery
from pumice.cluster.apiserver.metadata import metadata_causes
from pumice.cluster.apiserver.openapi.v3 import document
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.conversion import stored
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.strategies import causes_of, default
from pumice.cluster.apiserver.tables.table import table
from pumice.cluster.apiserver.validation import handwritten_rules
from pumice.http.messages import Request
from tests.apiserver.made import EPOCH_S, pod, store

FOLDER = Path(__file__).parents[1] / "cases/native-gangs/api"
CASES = [case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text())]
GROUPS, WORKLOADS, TREES = (f"{plural}.scheduling.k8s.io" for plural in ("podgroups", "workloads", "compositepodgroups"))
GENERIC = frozenset({"GenericWorkload"})
TREE_GATES = GENERIC | {"TopologyAwareWorkloadScheduling", "CompositePodGroup"}
ALL = TREE_GATES | {"PodGroupPreemptionPolicy", "DRAWorkloadResourceClaims", "WorkloadWithJob"}
CLASSES = "priorityclasses.scheduling.k8s.io"


def kind_of(obj: dict[str, Any], gates: set[str]) -> ServedKind:
    """The kind of an object, for a server with these gates, also if that would not serve it."""
    found = next(kind for kind in builtin_kinds(TREE_GATES) if (kind.api_version, kind.kind) == (obj["apiVersion"], obj["kind"]))
    return replace(found.stored_as or found, gates=frozenset(gates))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_validation_says_what_kubernetes_says(case: dict[str, Any]) -> None:
    kind = kind_of(case["object"], {"GenericWorkload", *(gate for gate, on in case.get("gates", {}).items() if on)})
    states: list[Any] = []
    for state in (case["object"], case.get("old")):
        states.append(stored(kind, clone(state)) if state else None)
        if state:
            default(kind, states[-1])
    found = metadata_causes(kind, states[0]["metadata"], None) + handwritten_rules.causes(kind.shape, *states)
    found += causes_of(kind, *states, "")
    assert sorted(f"{field}: {text}" for field, text in found) == sorted(" ".join(text.split()) for text in case["errors"])


def group(name: str = "g", least: int = 2, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": least}}} | spec}


def workload(*templates: dict[str, Any], composite: bool = False, name: str = "w") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"compositePodGroupTemplates" if composite else "podGroupTemplates": list(templates)}}


def template(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": 1}}} | fields


def composite(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": {"basic": {}}} | fields


def refusal(made: Store, resource: str, obj: dict[str, Any], how: str = "create") -> str:
    with pytest.raises(StatusError) as refused:
        made.create(resource, obj, "default") if how == "create" else made.update(resource, obj)
    return refused.value.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("form", "spec", "text"),
    [
        ("long label", {"workloadRef": {"workloadName": "w", "templateName": "t" * 64}}, "must be no more than 63 bytes"),
        ("label", {"workloadRef": {"workloadName": "w", "templateName": "T"}}, "(e.g. 'my-name',  or '123-abc', regex used"),
        ("long subdomain", {"priorityClassName": "a" * 254}, "must be no more than 253 bytes"),
        ("key", {"schedulingConstraints": {"topology": [{"key": "a/b/c"}]}}, "a valid label key must consist of"),
        ("prefix", {"schedulingConstraints": {"topology": [{"key": "/b"}]}}, "prefix part must be non-empty"),
        ("bad prefix", {"schedulingConstraints": {"topology": [{"key": "A/b"}]}}, "prefix part a lowercase RFC 1123 subdomain"),
        ("no name", {"schedulingConstraints": {"topology": [{"key": "a/"}]}}, "name part must be non-empty"),
        ("bad name", {"schedulingConstraints": {"topology": [{"key": "a/_"}]}}, "name part must consist of alphanumeric characters"),
        ("priority", {"priority": 1_000_000_001}, "must be less than or equal to 1000000000"),
        ("needs the Workload", {"parentCompositePodGroupName": "c"}, "must be set when parentCompositePodGroupName is set"),
        ("many claims", {"resourceClaims": [{"name": f"c{n}", "resourceClaimName": "r"} for n in range(5)]}, "must have at most 4 items"),
        ("no size", {"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: Required value"),
    ],
)
def test_what_a_pod_group_may_not_state(form: str, spec: dict[str, Any], text: str) -> None:
    assert text in "; ".join(
        f"{field}: {why}" for field, why in causes_of(replace(kind_named("PodGroup"), gates=ALL), valid(spec), None, "")
    )


def kind_named(name: str) -> ServedKind:
    return next(kind for kind in builtin_kinds(ALL) if kind.kind == name and kind.group == "scheduling.k8s.io")


def valid(spec: dict[str, Any]) -> dict[str, Any]:
    return group(**spec)


def test_the_controller_of_a_workload_has_a_name_for_a_path() -> None:
    made = store(gates=ALL)
    told = workload(template("a"))
    for name, text in (("..", "may not be '..'"), ("a/b%", "may not contain '/'"), ("", "Required value")):
        told["spec"]["controllerRef"] = {"kind": "Job", "name": name}
        assert text in refusal(made, WORKLOADS, told)


def test_templates_are_checked_as_a_tree() -> None:
    made = store(gates=ALL)
    childless = composite("c", compositePodGroupTemplates=[composite("d")])
    assert "at least one child" in refusal(made, WORKLOADS, workload(childless, composite=True))
    differ = composite("c", priorityClassName="x", podGroupTemplates=[template("a")])
    assert "all priority and priorityClassName values must be identical" in refusal(made, WORKLOADS, workload(differ, composite=True))
    twice = composite("c", podGroupTemplates=[template("c")])
    text = 'compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: "c"'
    assert text in refusal(made, WORKLOADS, workload(twice, composite=True))
    made.create(WORKLOADS, workload(composite("c", podGroupTemplates=[template("a")]), composite=True), "default")


def test_an_update_may_change_the_minimum_and_nothing_else() -> None:
    made = store(gates=ALL)
    was = made.create(GROUPS, group(), "default")
    changed = clone(was)
    changed["spec"]["schedulingPolicy"]["gang"]["minCount"] = 3
    found = made.update(GROUPS, changed)
    assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}} and "generation" not in found["metadata"]
    assert refusal(made, GROUPS, group(least=4), "update").endswith(
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    )
    for field, value in (
        ("disruptionMode", {"all": {}}),
        ("priorityClassName", "x"),
        ("resourceClaims", [{"name": "a", "resourceClaimName": "b"}]),
    ):
        changed = clone(made.get(GROUPS, "g", "default"))
        changed["spec"][field] = value
        assert f"spec.{field}: Invalid value: null: field is immutable" in refusal(made, GROUPS, changed, "update")
    made.create(WORKLOADS, workload(template("a")), "default")
    changed = clone(made.get(WORKLOADS, "w", "default"))
    changed["spec"]["podGroupTemplates"].append(template("b"))
    assert "spec.podGroupTemplates[1]: Forbidden: item may not be added" in refusal(made, WORKLOADS, changed, "update")
    changed["spec"]["podGroupTemplates"] = [template("a", priority=1)]
    assert "spec.podGroupTemplates[0].priority: Invalid value: null: field is immutable" in refusal(made, WORKLOADS, changed, "update")


GOOD = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "lastTransitionTime": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"type": ""}, "status.conditions[0].type: Required value: is required"),
        ({"type": "not a type"}, 'status.conditions[0].type: Invalid value: "not a type": '),
        ({"status": ""}, "status.conditions[0].status: Required value"),
        ({"status": "Yes"}, 'status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"'),
        ({"observedGeneration": -1}, "observedGeneration: Invalid value: -1: must be greater than or equal to zero"),
        ({"lastTransitionTime": None}, "status.conditions[0].lastTransitionTime: Required value"),
        ({"reason": ""}, "status.conditions[0].reason: Required value"),
        ({"reason": "two words"}, 'status.conditions[0].reason: Invalid value: "two words": a condition reason must start with alphabetic'),
        ({"reason": "R" * 1025}, "status.conditions[0].reason: Too long: may not be more than 1024 bytes"),
        ({"message": "m" * 32769}, "status.conditions[0].message: Too long: may not be more than 32768 bytes"),
    ],
)
def test_conditions_are_checked_when_a_status_is_written(changed: dict[str, Any], cause: str) -> None:
    made = store(gates=ALL)
    made.create(GROUPS, group(), "default")
    with pytest.raises(StatusError) as refused:
        made.patch(GROUPS, "g", PatchRequest("merge", {"status": {"conditions": [GOOD | changed]}}), "default", "status")
    assert cause in str(refused.value)


def test_a_status_has_one_condition_of_a_type() -> None:
    kind = kind_of({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}, set(ALL))
    twice = group() | {"status": {"conditions": [GOOD, GOOD]}}
    assert ("status.conditions[1]", 'Duplicate value: "PodGroupInitiallyScheduled"') in causes_of(kind, twice, None, "status")


def test_a_status_is_written_apart() -> None:
    made = store(gates=ALL)
    assert made.create(GROUPS, group() | {"status": {"conditions": [{"type": "x"}]}}, "default")["status"] == {}
    claims = {"resourceClaimStatuses": [{"name": "none", "resourceClaimName": "c"}]}
    with pytest.raises(StatusError, match=r"must match the name of an entry in `spec.resourceClaims`"):
        made.patch(GROUPS, "g", PatchRequest("merge", {"status": claims}), "default", "status")
    condition = GOOD | {"message": ""}
    body = {"status": {"conditions": [condition]}, "spec": {"priority": 5}}
    written = made.patch(GROUPS, "g", PatchRequest("strategic", body), "default", "status")
    assert written["status"]["conditions"] == [condition] and written["spec"]["priority"] == 0
    assert made.patch(GROUPS, "g", PatchRequest("merge", {"status": {}}), "default")["status"] == written["status"]


def test_both_versions_show_one_object() -> None:
    made = store(gates=ALL)
    alpha = made.kinds.at("scheduling.k8s.io", "v1alpha3", "podgroups")
    beta = made.kinds.at("scheduling.k8s.io", "v1beta1", "podgroups")
    assert alpha is not None and beta is not None
    created = made.create(alpha, {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "PodGroup", **group()}, "default")
    assert created["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    read = made.get(beta, "g", "default")
    assert read["apiVersion"] == "scheduling.k8s.io/v1beta1" and read["spec"] == created["spec"]
    assert read["spec"]["disruptionMode"] == {"single": {}} and read["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    changed = made.patch(alpha, "g", PatchRequest("merge", {"spec": {"schedulingPolicy": {"gang": {"minCount": 7}}}}), "default")
    assert changed["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert made.get(beta, "g", "default")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 7}}
    assert made.list(alpha).items[0]["apiVersion"] == "scheduling.k8s.io/v1alpha3"


def test_without_the_gate_there_are_no_groups_and_pods_name_none() -> None:
    made = store()
    assert not any(made.kinds.known(resource) for resource in (GROUPS, WORKLOADS, TREES))
    assert "schedulingGroup" not in made.create("pods", pod("p", schedulingGroup={"podGroupName": "g"}), "default")["spec"]
    jobs = {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod("x", restartPolicy="Never")["spec"]}, "scheduling": {}}}
    jobs["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    spec = made.create("jobs.batch", jobs, "default")["spec"]
    assert "scheduling" not in spec and "schedulingGroup" not in spec["template"]["spec"]


def test_a_field_that_is_stored_stays_when_its_gate_goes() -> None:
    """The server was started again without the gate."""
    made, later = store(gates=GENERIC), store()
    old = made.create("pods", pod("p", schedulingGroup={"podGroupName": "g"}), "default")
    later.restore("pods", ("default", "p"), old)
    written = later.patch("pods", "p", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")
    assert written["spec"]["schedulingGroup"] == {"podGroupName": "g"}


def test_groups_that_are_served_no_more_hold_up_no_namespace() -> None:
    made, later = store(gates=GENERIC), store()
    later.create("namespaces", {"metadata": {"name": "x"}})
    made.create("namespaces", {"metadata": {"name": "x"}})
    later.restore(GROUPS, ("x", "g"), made.create(GROUPS, group(), "x"))
    later.create("configmaps", {"metadata": {"name": "c"}}, "x")
    later.delete("namespaces", "x")
    later.collector.run()
    assert later.find("namespaces", "", "x") is None and later.find("configmaps", "x", "c") is None


def test_fields_of_gates_that_are_off_are_left_out_of_groups() -> None:
    made = store(gates=GENERIC)
    assert not made.kinds.known(TREES)
    asked = {"parentCompositePodGroupName": "c", "schedulingConstraints": {"topology": [{"key": "a"}]}, "preemptionPolicy": "Never"}
    spec = made.create(GROUPS, group(resourceClaims=[{"name": "c", "resourceClaimName": "r"}], **asked), "default")["spec"]
    assert set(spec) == {"schedulingPolicy", "disruptionMode", "priority"}
    told = made.create(WORKLOADS, workload(template("a", preemptionPolicy="Never", schedulingConstraints={})), "default")
    assert set(told["spec"]["podGroupTemplates"][0]) == {"name", "schedulingPolicy"}


def test_a_group_has_the_priority_of_its_class() -> None:
    made = store(gates=GENERIC)
    made.create(CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    assert made.create(GROUPS, group("a"), "default")["spec"]["priority"] == 0
    spec = made.create(GROUPS, group("b", priorityClassName="high"), "default")["spec"]
    assert spec["priority"] == 1000 and "preemptionPolicy" not in spec
    assert refusal(made, GROUPS, group("c", priorityClassName="none")).endswith("no PriorityClass with name none was found")
    text = "priority set in the pod group (7) must match the priority computed (1000) based on the priority class set in the spec"
    assert refusal(made, GROUPS, group("c", priorityClassName="high", priority=7)).endswith(text)
    made.create(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    spec = made.create(GROUPS, group("d"), "default")["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")


def test_a_tree_has_the_policy_of_its_class_too() -> None:
    made = store(gates=ALL)
    made.create(CLASSES, {"metadata": {"name": "meek"}, "value": 10, "preemptionPolicy": "Never"})
    tree = {"workloadRef": {"workloadName": "w", "templateName": "t"}, "schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    asked = tree | {"priorityClassName": "meek", "preemptionPolicy": "Never"}
    made_tree = made.create(TREES, {"metadata": {"name": "c"}, "spec": asked}, "default")
    assert made_tree["spec"]["preemptionPolicy"] == "Never" and "finalizers" not in made_tree["metadata"]
    text = (
        "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in composite pod group spec; "
        "priority admission controller computed Never from the given PriorityClass name"
    )
    for policy in ({}, {"preemptionPolicy": "PreemptLowerPriority"}):  # the default is there before the class is looked at
        asked = {"metadata": {"name": "d"}, "spec": tree | {"priorityClassName": "meek"} | policy}
        assert refusal(made, TREES, asked).endswith(text)


def test_a_name_is_refused_in_the_words_of_kubernetes() -> None:
    made = store(gates=GENERIC)
    pattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    used = f"regex used for validation is '{pattern}(\\.{pattern})*')"
    assert refusal(made, GROUPS, group("G_")).endswith(f"must start and end with an alphanumeric character (e.g. 'example.com', {used}")
    assert refusal(made, GROUPS, group("g" * 254)).endswith("must be no more than 253 characters")


def test_a_deleted_group_stays_until_its_finalizer_goes() -> None:
    made = store(gates=GENERIC)
    made.create(GROUPS, group(), "default")
    assert made.delete(GROUPS, "g", "default", DeleteOptions())[1] is False
    assert made.get(GROUPS, "g", "default")["metadata"]["deletionTimestamp"]


def test_what_cannot_change_is_told_first_and_once() -> None:
    made = store(gates=ALL)
    child = clone(made.create(GROUPS, group(), "default"))
    child["spec"]["parentCompositePodGroupName"] = "p"  # without a reference to its Workload
    assert refusal(made, GROUPS, child, "update").endswith("spec.parentCompositePodGroupName: Invalid value: null: field is immutable")
    reference = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    tree = clone(made.create(TREES, {"metadata": {"name": "c"}, "spec": {"schedulingPolicy": {"basic": {}}} | reference}, "default"))
    tree["spec"].pop("workloadRef")
    text = refusal(made, TREES, tree, "update")
    assert text.endswith("[spec.workloadRef: Invalid value: null: field is immutable, spec.workloadRef: Required value]")


def test_a_priority_is_held_against_its_class_before_the_object_is_read_closely() -> None:
    made = store(gates=ALL)
    assert "must match the priority computed (0)" in refusal(made, GROUPS, group(priority=2_000_000_000))


def test_a_pod_names_a_group_by_a_name_of_one() -> None:
    made = store(gates=GENERIC)
    text = refusal(made, "pods", pod("p", schedulingGroup={}))
    assert text.endswith("spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`")
    assert refusal(made, "pods", pod("p", schedulingGroup={"podGroupName": "g" * 254})).endswith("must be no more than 253 characters")
    made.create("pods", pod("q", schedulingGroup={"podGroupName": "g"}), "default")
    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        made.patch("pods", "q", PatchRequest("merge", {"spec": {"schedulingGroup": {"podGroupName": "h"}}}), "default")


RESPONDERS = frozenset({"EvictionRequestAPI"})
KEPT = "priorities 0-999 are reserved for responders with *.k8s.io suffix"


@pytest.mark.parametrize(
    ("responders", "found"),
    [
        ([{"name": "acme.io/a", "priority": 1000}, {"name": "acme.io/b", "priority": 100000}], []),
        (
            [{"name": "a.io/a", "priority": 999}],
            [f"[0].priority: Invalid value: 999: {KEPT}"],
        ),
        (
            [{"name": "a.io/a", "priority": 0}],
            [f"[0].priority: Invalid value: 0: {KEPT}"],
        ),
        ([{"name": "a.io/a", "priority": -1}], ["[0].priority: Invalid value: -1: must be greater than or equal to 0"]),
        ([{"name": "a.io/a", "priority": 100001}], ["[0].priority: Invalid value: 100001: must be less than or equal to 100000"]),
        ([{"priority": 1000}], ["[0].name: Required value"]),
        ([{"name": "a.io/a"}], ["[0].priority: Required value"]),
        ([{"name": "a", "priority": 1000}], ["""[0].name: Invalid value: "a": must include a prefix (e.g. 'example.com/key')"""]),
        ([{"name": "/a", "priority": 1000}], ['[0].name: Invalid value: "/a": prefix part must be non-empty']),
        *(
            (
                [{"name": name, "priority": 1000}],
                [f'[0].name: Invalid value: "{name}": domain names *.k8s.io, *.kubernetes.io are reserved'],
            )
            for name in ("x.k8s.io/a", "k8s.io/a", "kubernetes.io/a")
        ),
        ([{"name": "xk8s.io/a", "priority": 1000}], []),
        ([{"name": "a.io/a", "priority": 1000}] * 2, ['[1]: Duplicate value: {"name":"a.io/a","priority":1000}']),
        ([{"name": f"a.io/{number}"} for number in range(11)], [": Too many: 11: must have at most 10 items"]),
    ],
)
def test_who_responds_to_an_eviction_is_checked(responders: list[dict[str, Any]], found: list[str]) -> None:
    made = store(gates=RESPONDERS)
    if not found:
        assert made.create("pods", pod("p", evictionResponders=responders), "default")["spec"]["evictionResponders"] == responders
        with pytest.raises(StatusError, match="pod updates may not change fields other than"):
            made.patch("pods", "p", PatchRequest("merge", {"spec": {"evictionResponders": None}}), "default")
    else:
        text = refusal(made, "pods", pod("p", evictionResponders=responders))
        assert text == ", ".join(f"spec.evictionResponders{one}" for one in found)


def test_members_of_groups_have_no_responders_and_nobody_without_the_gate() -> None:
    told = {"evictionResponders": [{"name": "a.io/a", "priority": 1000}], "schedulingGroup": {"podGroupName": "g"}}
    text = refusal(store(gates=GENERIC | RESPONDERS), "pods", pod("p", **told))
    assert text.endswith("spec.schedulingGroup: Forbidden: may not be set when evictionResponders is set")
    without = store(gates=GENERIC)
    assert "evictionResponders" not in without.create("pods", pod("p", **told), "default")["spec"]
    on, later = store(gates=RESPONDERS), store()
    later.restore("pods", ("default", "p"), on.create("pods", pod("p", evictionResponders=told["evictionResponders"]), "default"))
    written = later.patch("pods", "p", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")
    assert written["spec"]["evictionResponders"] == told["evictionResponders"]


def job(**scheduling: Any) -> dict[str, Any]:
    spec = {"template": {"spec": pod("x", restartPolicy="Never")["spec"]}, "parallelism": 3, "scheduling": scheduling}
    return {"metadata": {"name": "j"}, "spec": spec}


def test_what_a_job_says_of_scheduling() -> None:
    made = store(gates=ALL)
    place = "spec.scheduling.schedulingPolicy.gang.minCount"
    assert f"{place}: Invalid value: 4: must not be greater than parallelism (3)" in refusal(
        made, "jobs.batch", job(schedulingPolicy={"gang": {"minCount": 4}})
    )
    assert "must specify one of: `basic`, `gang`" in refusal(made, "jobs.batch", job(schedulingPolicy={}))
    text = 'spec.scheduling.disruptionMode: Invalid value: "": the disruptionMode `all` is not supported with the Basic scheduling policy'
    for basic in ({}, {"schedulingPolicy": {"basic": {}}}):
        assert refusal(made, "jobs.batch", job(disruptionMode={"all": {}}, **basic)).endswith(text)
    was = made.create("jobs.batch", job(schedulingPolicy={"gang": {}}), "default")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, ""),
        ({"schedulingPolicy": {"basic": {}}}, "the basic/gang policy variant is immutable after creation"),
        ({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}, "spec.scheduling.disruptionMode: Invalid value: null"),
    ]
    for scheduling, text in changes:
        changed = clone(was)
        changed["spec"]["scheduling"] = scheduling
        changed["metadata"].pop("resourceVersion")
        if text:
            assert text in refusal(made, "jobs.batch", changed, "update")
        else:
            made.update("jobs.batch", changed)
    changed["spec"].pop("scheduling")
    assert "spec.scheduling: Invalid value: null: field cannot be cleared once set" in refusal(made, "jobs.batch", changed, "update")


def cells(made: Store, resource: str, *objects: dict[str, Any]) -> tuple[str, list[list[Any]]]:
    shown = table(made.kind(resource), objects, EPOCH_S, {})
    return " ".join(column["name"].upper() for column in shown["columnDefinitions"]), [row["cells"] for row in shown["rows"]]


def test_columns() -> None:
    made = store(gates=ALL)
    reference = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    waits, runs = made.create(GROUPS, group(), "default"), made.create(GROUPS, group("h", **reference), "default")
    runs = runs | {"status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}]}}
    refused = runs | {"status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "False"}]}}
    goes = runs | {
        "status": {"conditions": [*runs["status"]["conditions"], {"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}]}
    }
    heading, rows = cells(made, GROUPS, waits, runs, refused, goes)
    assert heading == "NAME POLICY WORKLOAD STATUS AGE"
    assert rows[0] == ["g", "Gang", "<none>", "Pending", "0s"]
    assert [row[3] for row in rows[1:]] == ["Scheduled", "Unschedulable", "PreemptionByScheduler"] and rows[1][2] == "w"
    tree = {"metadata": {"name": "c"}, "spec": reference | {"schedulingPolicy": {"basic": {}}}}
    assert cells(made, TREES, made.create(TREES, tree, "default")) == ("NAME POLICY WORKLOAD AGE", [["c", "Basic", "w", "0s"]])
    assert cells(made, WORKLOADS, made.create(WORKLOADS, workload(template("a")), "default")) == ("NAME AGE", [["w", "0s"]])


def test_roles_follow_what_is_served() -> None:
    """A cluster that is started again with the gates gets the rules that it lacks."""

    def granted(made: Store, role: str) -> set[tuple[str, str]]:
        rules = made.get("clusterroles.rbac.authorization.k8s.io", role)["rules"]
        chosen = [rule for rule in rules if "scheduling.k8s.io" in rule.get("apiGroups", ())]
        return {(verb, resource) for rule in chosen for verb in rule["verbs"] for resource in rule["resources"]}

    made = store()
    bootstrap(made)
    assert granted(made, "view") == granted(made, "system:kube-scheduler") == set()
    later = store(gates=GENERIC)
    for role in made.all("clusterroles.rbac.authorization.k8s.io"):
        later.create("clusterroles.rbac.authorization.k8s.io", role)
    bootstrap(later)
    assert {("list", "podgroups/status"), ("get", "workloads")} <= granted(later, "view")
    assert {("create", "podgroups"), ("delete", "workloads")} <= granted(later, "edit") <= granted(later, "admin")
    assert granted(later, "system:kube-scheduler") == {
        *((verb, "podgroups") for verb in ("get", "list", "watch")),
        *((verb, "podgroups/status") for verb in ("patch", "update")),
    }


def test_discovery_and_openapi_have_both_versions() -> None:
    made = store(gates=ALL)
    answer = Discovery(made.kinds, {}).respond(Request("GET", "/apis/scheduling.k8s.io/v1alpha3", {}, {}, b""))
    assert answer is not None
    assert {one["name"] for one in json.loads(bytes(answer.body))["resources"]} == {
        "workloads", "podgroups", "podgroups/status", "compositepodgroups", "compositepodgroups/status"
    }  # fmt: skip
    told = document([kind for kind in made.kinds if (kind.group, kind.version) == ("scheduling.k8s.io", "v1beta1")])
    claims = told["components"]["schemas"]["scheduling.v1beta1.PodGroupSpec"]["properties"]["resourceClaims"]
    assert claims["x-kubernetes-list-map-keys"] == ["name"]


COUNTERS = {"counterSet": "c", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["x"]}
DEVICE = {"name": "d", "attributes": {"a": {"string": "x"}}, "consumesCounters": [COUNTERS]}
SLICE = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [DEVICE]}
REQUEST = {"deviceClassName": "gpu", "derivedAttributes": [{"name": "e.com/a", "expression": "1"}]}
CLAIMED = {"requests": [{"name": "r", "exactly": REQUEST}], "constraints": [{"matchAttribute": "e.com/a"}]}


@pytest.mark.parametrize(
    ("gate", "resource", "spec", "path"),
    [
        ("DRADerivedAttributes", "resourceclaims", {"devices": CLAIMED}, "derivedAttributes"),
        ("DRADeviceCompatibilityGroups", "resourceslices", SLICE, "compatibilityGroups"),
        ("DRAOptionalNodeOperations", "resourceslices", SLICE | {"skipNodeOperations": ["*"]}, "skipNodeOperations"),
        ("DRAPartitionableDevicesType", "resourceslices", SLICE | {"partitionTypeAttribute": "d/a"}, "partitionTypeAttribute"),
        (
            "InPlacePodVerticalScalingSchedulerPreemption",
            "nodes",
            {"podPreemptionPolicy": {"disableResizePreemption": ["a"]}},
            "podPreemptionPolicy",
        ),
    ],
)
def test_a_field_of_devices_or_nodes_is_kept_while_its_gate_is_on(gate: str, resource: str, spec: dict[str, Any], path: str) -> None:
    named = resource if resource == "nodes" else f"{resource}.resource.k8s.io"
    for gates, kept in (({gate}, True), (set[str](), False)):
        namespace = "default" if resource == "resourceclaims" else ""
        made = store(gates=gates).create(named, {"metadata": {"name": "x"}, "spec": spec}, namespace)
        assert (path in str(made)) is kept


def test_an_attribute_that_is_a_list_is_none_while_its_gate_is_off() -> None:
    spec = SLICE | {"devices": [{"name": "d", "attributes": {"a": {"ints": [1]}}}]}
    kept = store(gates={"DRAListTypeAttributes"}).create("resourceslices.resource.k8s.io", {"metadata": {"name": "x"}, "spec": spec})
    assert kept["spec"]["devices"] == spec["devices"]
    with pytest.raises(StatusError, match="must specify one of: `int`"):
        store().create("resourceslices.resource.k8s.io", {"metadata": {"name": "x"}, "spec": spec})
