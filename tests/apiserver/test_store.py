"""The verbs of the store, and what the API server itself does with objects."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from pumice.api import rfc3339
from pumice.api.field_selectors import parse_field_selector
from pumice.api.selectors import parse_selector
from pumice.cluster.apiserver import (
    AdmissionAttributes,
    AdmissionLister,
    AdmissionRefusal,
    AdmissionRule,
    DeleteOptions,
    PatchRequest,
    StatusError,
    WriteOptions,
    export_cluster,
    import_cluster,
)
from pumice.cluster.apiserver.server import AT_ONCE, HISTORY_S, EventExpiry, HistoryExpiry
from pumice.cluster.apiserver.storage.in_memory import FORGOTTEN_AT_ONCE
from tests.apiserver.made import EPOCH_S, Clock, pod, store


def test_a_new_object_gets_an_identity_from_clock_and_uids() -> None:
    made = store().create("pods", pod("a"), "default")["metadata"]
    assert made["uid"] == "00000000-0000-0000-0000-000000000001"
    assert made["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert (made["namespace"], made["resourceVersion"], made["generation"]) == ("default", "2", 1)


def test_the_same_calls_give_the_same_cluster() -> None:
    def history() -> bytes:
        made = store()
        made.create("pods", {**pod("x"), "metadata": {"generateName": "p-"}}, "default")
        made.create("configmaps", {"metadata": {"name": "c"}}, "default")
        return b"".join(export_cluster(made))

    assert history() == history()


def test_versions_grow_across_all_kinds() -> None:
    made = store()
    versions = [
        int(made.create(kind, {"metadata": {"name": "x"}}, "default")["metadata"]["resourceVersion"])
        for kind in ("configmaps", "secrets", "nodes")
    ]
    assert versions == sorted(set(versions))
    assert made.list("configmaps").version == versions[-1]


@pytest.mark.parametrize(
    ("act", "code", "reason"),
    [
        (lambda s: s.get("pods", "zzz", "default"), 404, "NotFound"),
        (lambda s: s.create("pods", pod("a"), "default"), 409, "AlreadyExists"),
        (lambda s: s.create("pods", pod("x"), "nowhere"), 404, "NotFound"),
        (lambda s: s.create("pods", pod("BAD NAME"), "default"), 422, "Invalid"),
        (lambda s: s.create("pods", {"kind": "Node", **pod("x")}, "default"), 400, "BadRequest"),
        (lambda s: s.get("unicorns", "x"), 404, "NotFound"),
        (
            lambda s: s.update("pods", {**pod("a"), "metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}),
            409,
            "Conflict",
        ),
        (lambda s: s.update("pods", {**pod("a"), "metadata": {"name": "a", "namespace": "default", "uid": "other"}}), 409, "Conflict"),
        (lambda s: s.delete("pods", "a", "default", DeleteOptions(uid="other")), 409, "Conflict"),
        (lambda s: s.bind("default", "a", "n", uid="other"), 409, "Conflict"),
    ],
)
def test_refusals_have_the_codes_of_the_api(act: Any, code: int, reason: str) -> None:
    made = store()
    made.create("pods", pod("a"), "default")
    with pytest.raises(StatusError) as refusal:
        act(made)
    assert (refusal.value.code, refusal.value.reason) == (code, reason)


def test_writing_what_is_there_already_changes_nothing() -> None:
    made = store()
    first = made.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}}, "default")
    assert made.update("configmaps", first) is first
    assert made.storage.version == int(first["metadata"]["resourceVersion"])


def test_dry_runs_answer_and_keep_nothing() -> None:
    made = store()
    before = made.storage.version
    assert made.create("pods", pod("a"), "default", WriteOptions(dry_run=True))["spec"]["restartPolicy"] == "Always"
    assert made.find("pods", "default", "a") is None
    assert made.storage.version == before


def test_generations_count_changes_of_the_spec_only() -> None:
    made = store()
    made.create("deployments.apps", deployment(), "default")
    scaled = made.patch("deployments.apps", "d", PatchRequest("merge", {"spec": {"replicas": 3}}), "default")
    labelled = made.patch("deployments.apps", "d", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")
    status = made.patch("deployments.apps", "d", PatchRequest("merge", {"status": {"replicas": 3}}), "default", "status")
    assert [obj["metadata"]["generation"] for obj in (scaled, labelled, status)] == [2, 2, 2]
    assert status["status"]["replicas"] == 3


def test_the_main_resource_does_not_write_status_nor_the_status_the_spec() -> None:
    made = store()
    made.create("deployments.apps", deployment(), "default")
    made.patch("deployments.apps", "d", PatchRequest("merge", {"status": {"replicas": 9}}), "default")
    made.patch("deployments.apps", "d", PatchRequest("merge", {"spec": {"replicas": 9}}), "default", "status")
    found = made.get("deployments.apps", "d", "default")
    assert (found["spec"]["replicas"], found["status"]) == (1, {})


def deployment() -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template}}


# Deletion


def test_a_pod_without_a_node_goes_at_once_one_with_a_node_after_its_grace() -> None:
    clock = Clock()
    made = store(clock)
    made.create("pods", pod("free"), "default")
    made.create("pods", pod("bound", nodeName="n", terminationGracePeriodSeconds=7), "default")
    assert made.delete("pods", "free", "default")[1]
    marked, gone = made.delete("pods", "bound", "default")
    assert not gone
    assert (marked["metadata"]["deletionTimestamp"], marked["metadata"]["deletionGracePeriodSeconds"]) == ("2027-01-15T08:00:07Z", 7)
    assert not made.delete("pods", "bound", "default")[1]
    assert made.delete("pods", "bound", "default", DeleteOptions(grace_s=0))[1]


def test_finalizers_hold_an_object_until_the_last_is_taken_off() -> None:
    made = store()
    made.create("configmaps", {"metadata": {"name": "c", "finalizers": ["a/b"]}}, "default")
    assert not made.delete("configmaps", "c", "default")[1]
    made.patch("configmaps", "c", PatchRequest("merge", {"metadata": {"finalizers": None}}), "default")
    assert made.find("configmaps", "default", "c") is None


# Binding and eviction


def test_binding_sets_node_condition_annotations_and_topology() -> None:
    made = store()
    made.create("nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}})
    made.create("pods", pod("p"), "default")
    bound = made.bind("default", "p", "n", annotations={"a": "b"})
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z"
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    with pytest.raises(StatusError, match='already assigned to node "n"'):
        made.bind("default", "p", "m")


def test_a_gated_pod_cannot_be_bound() -> None:
    made = store()
    made.create("pods", pod("p", schedulingGates=[{"name": "wait"}]), "default")
    with pytest.raises(StatusError, match="schedulingGates"):
        made.bind("default", "p", "n")


def test_a_budget_is_spent_by_evictions() -> None:
    made = store()
    for name in ("a", "b"):
        made.create("pods", pod(name, {"app": "x"}, nodeName="n"), "default")
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        made.patch("pods", name, PatchRequest("merge", running), "default", "status")
    made.create(
        "poddisruptionbudgets.policy",
        {"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
        "default",
    )
    with pytest.raises(StatusError) as early:
        made.evict("default", "a")
    assert early.value.details is not None
    assert early.value.details["retryAfterSeconds"] == 10
    status = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    made.patch("poddisruptionbudgets.policy", "pdb", PatchRequest("merge", {"status": status}), "default", "status")
    made.evict("default", "a")
    with pytest.raises(StatusError) as refused:
        made.evict("default", "b")
    assert refused.value.code == 429
    assert list(made.get("poddisruptionbudgets.policy", "pdb", "default")["status"]["disruptedPods"]) == ["a"]


def test_rules_of_others_may_change_and_refuse() -> None:
    def name_queue(review: AdmissionAttributes, lister: AdmissionLister) -> dict[str, Any]:
        review.obj["spec"].setdefault("queue", "default")
        return review.obj

    def queue_exists(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
        found = lister.find("configmaps", "default", review.obj["spec"]["queue"])
        return None if found else AdmissionRefusal(f"queue {review.obj['spec']['queue']} does not exist")

    made = store(rules=(AdmissionRule(("podgroups.scheduling.volcano.sh",), ("CREATE",), name_queue, queue_exists),))
    for definition in volcano():
        made.create("customresourcedefinitions.apiextensions.k8s.io", definition)
    with pytest.raises(StatusError, match="queue nowhere does not exist"):
        made.create("podgroups.scheduling.volcano.sh", {"metadata": {"name": "g"}, "spec": {"queue": "nowhere"}}, "default")
    made.create("configmaps", {"metadata": {"name": "default"}}, "default")
    assert made.create("podgroups.scheduling.volcano.sh", {"metadata": {"name": "g"}, "spec": {}}, "default")["spec"]["queue"] == "default"


def volcano() -> list[dict[str, Any]]:
    from pumice.cluster.apiserver.bootstrap import volcano_definitions

    return volcano_definitions()


# Lists


def test_a_paged_list_shows_one_moment_whatever_happens_meanwhile() -> None:
    made = store()
    for index in range(10):
        made.create("configmaps", {"metadata": {"name": f"c{index}"}}, "default")
    first = made.list("configmaps", limit=4)
    made.delete("configmaps", "c5", "default")
    made.create("configmaps", {"metadata": {"name": "c4a"}}, "default")
    made.patch("configmaps", "c6", PatchRequest("merge", {"data": {"a": "b"}}), "default")
    rest = made.list("configmaps", version=first.version, after=first.rest)
    assert [obj["metadata"]["name"] for obj in first.items + rest.items] == [f"c{index}" for index in range(10)]
    assert "data" not in rest.items[2]
    assert first.remaining == 6


def test_selectors_choose_by_labels_and_fields() -> None:
    made = store()
    for name, app, node in (("a", "x", "n"), ("b", "y", "n"), ("c", "x", "")):
        made.create("pods", pod(name, {"app": app}, **({"nodeName": node} if node else {})), "default")
    fields = parse_field_selector("spec.nodeName=n,metadata.name!=b", made.kind("pods").fields)
    assert [one["metadata"]["name"] for one in made.list("pods", "default", parse_selector("app in (x)"), fields).items] == ["a"]


def test_an_archive_holds_the_whole_cluster() -> None:
    made = store()
    for definition in volcano():
        made.create("customresourcedefinitions.apiextensions.k8s.io", definition)
    made.create("queues.scheduling.volcano.sh", {"metadata": {"name": "q"}, "spec": {"weight": 3}})
    made.create("pods", pod("p"), "default")
    other = store()
    other.create("pods", pod("old"), "default")
    import_cluster(other, b"".join(export_cluster(made)))
    assert other.find("pods", "default", "old") is None
    assert (
        other.get("queues.scheduling.volcano.sh", "q")["metadata"]["uid"]
        == made.get("queues.scheduling.volcano.sh", "q")["metadata"]["uid"]
    )
    assert other.create("queues.scheduling.volcano.sh", {"metadata": {"name": "r"}, "spec": {}})["spec"]["weight"] == 1


def test_events_are_one_store_in_two_forms() -> None:
    made = store()
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "text",
        "reason": "R",
        "type": "Normal",
    }
    made.create("events.events.k8s.io", event, "default")
    core = made.get("events", "e", "default")
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "text", "p")
    assert made.get("events.events.k8s.io", "e", "default")["note"] == "text"


def test_events_are_kept_for_an_hour_after_they_were_last_written() -> None:
    clock = Clock()
    made = store(clock)

    def tell(name: str) -> None:
        made.create(
            "events", {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}, "default"
        )

    tell("before")
    expiry = EventExpiry(made)
    tell("once")
    tell("again")
    clock.now += 1800
    made.patch("events", "again", PatchRequest("merge", {"count": 2}), "default")
    clock.now += 1800
    expiry.sweep()
    assert [event["metadata"]["name"] for event in made.all("events")] == ["again"]
    clock.now += 1800
    expiry.sweep()
    assert list(made.all("events")) == []


def test_events_that_an_earlier_server_left_are_not_kept_for_another_hour() -> None:
    clock = Clock()
    made = store(clock)
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    for name, seconds in (("again", 1800), ("once", 0), ("ahead", 10**6)):
        told = {"lastTimestamp": rfc3339(clock.now + seconds)}
        made.create("events", {"metadata": {"name": name}, "involvedObject": involved, **told}, "default")
    clock.now += 1800
    expiry = EventExpiry(made)
    for left in (["again", "ahead"], []):
        clock.now += 1800
        expiry.sweep()
        assert [event["metadata"]["name"] for event in made.all("events")] == left


def test_events_that_are_written_faster_than_one_sweep_deletes_are_deleted_by_more_of_them() -> None:
    clock = Clock()
    made = store(clock)
    expiry = EventExpiry(made, ttl_s=60)
    for number in range(AT_ONCE + 1):
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        made.create("events", {"metadata": {"name": f"e{number}"}, "involvedObject": involved}, "default")
    made.delete("events", "e0", "default")
    made.create("events", {"metadata": {"name": "late"}, "involvedObject": involved}, "default")
    clock.now += 60
    assert expiry.sweep()
    assert [event["metadata"]["name"] for event in made.all("events")] == ["late"]
    assert not expiry.sweep()
    assert list(made.all("events")) == []


def test_a_watch_may_begin_in_the_past_but_not_before_the_last_but_one_compaction() -> None:
    made = store()
    history = HistoryExpiry(made.storage, now=0.0)
    quiet = made.create("secrets", {"metadata": {"name": "quiet"}}, "default")

    def written(name: str) -> int:
        return int(made.create("configmaps", {"metadata": {"name": name}}, "default")["metadata"]["resourceVersion"])

    def names(since: int) -> list[str]:
        return [obj["metadata"]["name"] for _, obj in made.watch("configmaps", since=since).objects()]

    old = written("a")
    history.sweep(HISTORY_S - 1)
    history.sweep(HISTORY_S)
    new = written("b")
    assert names(old) == ["b"] and names(old - 1) == ["a", "b"]
    history.sweep(2 * HISTORY_S)
    late = written("c")
    assert names(old) == ["b", "c"] and names(late) == []
    with pytest.raises(StatusError, match="too old resource version"):
        names(old - 1)
    history.sweep(3 * HISTORY_S)
    assert names(new) == ["c"] and [obj["metadata"]["name"] for obj in made.all("configmaps")] == ["a", "b", "c"]
    assert made.watch("secrets", since=int(quiet["metadata"]["resourceVersion"])).objects() == []


def test_a_long_history_is_forgotten_in_parts() -> None:
    made = store()
    history = HistoryExpiry(made.storage, now=0.0)
    for number in range(FORGOTTEN_AT_ONCE):
        made.create("configmaps", {"metadata": {"name": f"c{number}"}}, "default")
    last = made.create("secrets", {"metadata": {"name": "s"}}, "default")

    def kept() -> int:
        return sum(len(kind_storage.events) for kind_storage in made.storage.kind_storages.values())

    history.sweep(HISTORY_S)
    before = kept()
    assert history.sweep(2 * HISTORY_S) and kept() == before - FORGOTTEN_AT_ONCE > 0
    assert not history.sweep(2 * HISTORY_S) and not kept()
    assert made.watch("secrets", since=int(last["metadata"]["resourceVersion"])).objects() == []


def test_the_volumes_of_a_statefulset_may_be_claims_of_its_own() -> None:
    container = {"name": "c", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    body = {"metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": template}}
    with pytest.raises(StatusError, match=r'volumeMounts\[0\].name: Not found: "data"'):
        store().create("statefulsets.apps", body, "default")
    made = store().create("statefulsets.apps", body | {"spec": body["spec"] | {"volumeClaimTemplates": [claim]}}, "default")
    assert made["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"


def test_a_volume_notes_when_its_phase_changed_and_nothing_else() -> None:
    clock = Clock()
    made = store(clock)
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made.create("persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})

    def since(**status: Any) -> str:
        clock.now += 60
        patch = PatchRequest("merge", {"status": status})
        return str(made.patch("persistentvolumes", "v", patch, subresource="status")["status"]["lastPhaseTransitionTime"])

    assert since(message="m") == "2027-01-15T08:00:00Z"
    assert since(phase="Available") == "2027-01-15T08:02:00Z"
    assert since(phase="Available", lastPhaseTransitionTime=None) == "2027-01-15T08:02:00Z"
    assert since(phase="Bound", lastPhaseTransitionTime="2020-01-01T00:00:00Z") == "2020-01-01T00:00:00Z"
    assert since(phase="Released") == "2027-01-15T08:05:00Z"


def test_time_is_the_clocks() -> None:
    clock = Clock()
    made = store(clock)
    clock.now = EPOCH_S + 3600
    assert made.create("configmaps", {"metadata": {"name": "c"}}, "default")["metadata"]["creationTimestamp"] == "2027-01-15T09:00:00Z"


@pytest.mark.parametrize("body", [{}, {"metadata": {}}, {"metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "spec": {"template": {}}}])
def test_objects_that_say_little_are_kept_or_refused_with_a_reason(body: dict[str, Any]) -> None:
    made = store()
    for kind in made.kinds:
        if not kind.reviewed_only:
            with contextlib.suppress(StatusError):
                made.create(kind, body, "default")


@pytest.mark.parametrize(
    ("resource", "body", "field"),
    [
        ("storageclasses.storage.k8s.io", {}, "provisioner"),
        ("rolebindings.rbac.authorization.k8s.io", {}, "roleRef"),
        ("volumeattachments.storage.k8s.io", {"spec": {"attacher": "a", "nodeName": "n"}}, r"spec\.source"),
        ("cronjobs.batch", {"spec": {"schedule": "* * * * *"}}, r"spec\.jobTemplate\.spec\.template\.spec\.containers"),
    ],
)
def test_what_a_kind_must_have_is_asked_for(resource: str, body: dict[str, Any], field: str) -> None:
    with pytest.raises(StatusError, match=rf"{field}: Required value"):
        store().create(resource, {"metadata": {"name": "a"}} | body, "default")


def test_an_autoscaler_has_a_metric_and_states_its_scaling_whole() -> None:
    target = {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "maxReplicas": 2, "behavior": {"scaleUp": {"selectPolicy": "Min"}}}
    made = store()
    found = made.create("horizontalpodautoscalers.autoscaling", {"metadata": {"name": "h"}, "spec": spec}, "default")["spec"]
    assert (found["minReplicas"], found["metrics"][0]["resource"]["target"]["averageUtilization"]) == (1, 80)
    assert [len(found["behavior"][way]["policies"]) for way in ("scaleUp", "scaleDown")] == [2, 1]
    assert [found["behavior"][way]["selectPolicy"] for way in ("scaleUp", "scaleDown")] == ["Min", "Max"]
    old = made.kinds.at("autoscaling", "v1", "horizontalpodautoscalers")
    assert old is not None and made.get(old, "h", "default")["spec"]["targetCPUUtilizationPercentage"] == 80


def test_defaults_of_a_struct_hold_wherever_it_stands() -> None:
    made = store()
    hook = {"preStop": {"httpGet": {"port": 80}}}
    template = {"metadata": {"name": "t"}, "template": {"spec": {"containers": [{"name": "c", "image": "i", "lifecycle": hook}]}}}
    spec = made.create("podtemplates", template, "default")["template"]["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["containers"][0]["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
