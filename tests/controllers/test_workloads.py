"""ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs, with a kubelet played by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.api import kinds, rfc3339, uid_of
from pumice.api.json_objects import Object, annotations_of, condition, name_of, status_of, terminating
from pumice.controllers.kubernetes.owned_pods import ready
from pumice.controllers.kubernetes.rolling_update import Size, grown, limits, shrunk
from pumice.controllers.registry import kubernetes_controllers
from tests.controllers.playing import alive, node, play, start, template, workload
from tests.controllers.stage import Stage
from tests.samples import times


def test_a_replicaset_keeps_its_number_of_pods() -> None:
    stage = play(workload("ReplicaSet", replicas=3))
    assert len(alive(stage)) == 3
    start(stage)
    assert status_of(stage.get(kinds.REPLICA_SET, "web"))["availableReplicas"] == 3
    stage.pods("Failed", name_of(alive(stage)[0]))
    assert len(alive(stage)) == 3
    start(stage)
    stage.change(kinds.REPLICA_SET, "web", {"spec": {"replicas": 1}})
    assert len(alive(stage)) == 1
    stage.kubelet_ends()
    assert status_of(stage.get(kinds.REPLICA_SET, "web"))["replicas"] == 1
    stage.assert_settled()


def test_pods_that_serve_nobody_are_ended_first() -> None:
    stage = play(workload("ReplicaSet", replicas=3))
    names = sorted(name_of(pod) for pod in alive(stage))
    stage.bind(names[1])
    stage.pods("Running", names[1])
    stage.change(kinds.REPLICA_SET, "web", {"spec": {"replicas": 1}})
    assert [name_of(pod) for pod in alive(stage)] == [names[1]]


def test_a_pod_counts_as_available_once_it_was_ready_long_enough() -> None:
    stage = play(workload("ReplicaSet", replicas=1, minReadySeconds=30))
    start(stage)
    since = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}]}}
    stage.now = 1_800_000_010.0
    stage.change(kinds.POD, name_of(alive(stage)[0]), since)
    assert not status_of(stage.get(kinds.REPLICA_SET, "web")).get("availableReplicas")
    stage.wait(30)
    assert status_of(stage.get(kinds.REPLICA_SET, "web"))["availableReplicas"] == 1


def test_a_deployment_rolls_out_a_new_template_and_forgets_none_of_its_pods() -> None:
    stage = play(workload("Deployment", replicas=4))
    start(stage)
    least, most = 4, 0
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("b")}})
    for _ in range(12):
        serving = sum(ready(pod) for pod in alive(stage))
        least, most = min(least, serving), max(most, len(alive(stage)))
        start(stage)
        stage.kubelet_ends()
    assert (least, most) == (3, 5)
    assert {pod["spec"]["containers"][0]["image"] for pod in alive(stage)} == {"b"}
    status = status_of(stage.get(kinds.DEPLOYMENT, "web"))
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (4, 4, 4)
    assert [entry["reason"] for entry in status["conditions"]] == ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]
    assert annotations_of(stage.get(kinds.DEPLOYMENT, "web"))["deployment.kubernetes.io/revision"] == "2"
    assert status["observedGeneration"] == stage.get(kinds.DEPLOYMENT, "web")["metadata"]["generation"]
    stage.assert_settled()


def test_a_rollback_uses_the_old_replicaset_again() -> None:
    stage = play(workload("Deployment", replicas=1))
    start(stage)
    first = stage.names(kinds.REPLICA_SET)
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("b")}})
    start(stage)
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("a")}})
    start(stage)
    assert len(stage.names(kinds.REPLICA_SET)) == 2
    assert annotations_of(stage.get(kinds.REPLICA_SET, first[0]))["deployment.kubernetes.io/revision"] == "3"
    for image in "ba":
        stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template(image)}})
        start(stage)
    notes = annotations_of(stage.get(kinds.REPLICA_SET, first[0]))
    assert (notes["deployment.kubernetes.io/revision"], notes["deployment.kubernetes.io/revision-history"]) == ("5", "1,3")


def test_old_replicasets_beyond_the_history_are_deleted() -> None:
    stage = play(workload("Deployment", replicas=1, revisionHistoryLimit=1))
    for image in "abcd":
        stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template(image)}})
        for _ in range(3):
            start(stage)
            stage.kubelet_ends()
    assert len(stage.names(kinds.REPLICA_SET)) == 2


def test_an_annotation_reaches_the_replicaset_and_a_deleted_deployment_leaves_nothing() -> None:
    stage = play(workload("Deployment", replicas=1))
    stage.change(kinds.DEPLOYMENT, "web", {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "2"}}})
    newest = next(iter(stage.lister.all(kinds.REPLICA_SET)))
    assert annotations_of(newest)["scheduling.volcano.sh/group-min-member"] == "2"
    stage.delete(kinds.DEPLOYMENT, "web")
    assert stage.names(kinds.REPLICA_SET) == stage.names(kinds.POD) == []


def test_recreate_ends_the_old_pods_before_it_makes_new_ones() -> None:
    stage = play(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    start(stage)
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("b")}})
    assert alive(stage) == []
    stage.kubelet_ends()
    assert [pod["spec"]["containers"][0]["image"] for pod in alive(stage)] == ["b", "b"]


def test_a_rollout_that_does_not_come_on_says_so() -> None:
    stage = play(workload("Deployment", replicas=1, progressDeadlineSeconds=60))
    stage.wait(61)
    progress = condition(stage.get(kinds.DEPLOYMENT, "web"), "Progressing")
    assert progress is not None
    assert (progress["status"], progress["reason"]) == ("False", "ProgressDeadlineExceeded")
    start(stage)
    progress = condition(stage.get(kinds.DEPLOYMENT, "web"), "Progressing")
    assert progress is not None and progress["reason"] == "NewReplicaSetAvailable"


def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    stage = play(workload("Deployment", replicas=2))
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"paused": True, "template": template("b"), "replicas": 5}})
    assert [pod["spec"]["containers"][0]["image"] for pod in alive(stage)] == ["a"] * 5
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"paused": False}})
    assert "b" in {pod["spec"]["containers"][0]["image"] for pod in alive(stage)}


sizes = st.builds(lambda replicas, share: Size(replicas, min(replicas, share)), st.integers(0, 12), st.integers(0, 12))
amounts = st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda percent: f"{percent}%"))


@given(st.integers(0, 12), sizes, st.lists(sizes, max_size=4), amounts, amounts)
def test_a_step_of_a_rollout_keeps_to_its_limits(replicas: int, new: Size, old: list[Size], surge: Any, unavailable: Any) -> None:
    within = limits(replicas, {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
    target, left = grown(new, old, within), shrunk(new, old, within)
    serving = new.available + sum(size.available for size in old)
    still = new.available + sum(min(size.available, kept) for size, kept in zip(old, left, strict=True))
    assert all(0 <= kept <= size.replicas for size, kept in zip(old, left, strict=True))
    assert still >= min(serving, within.min_available)
    if target > new.replicas:
        assert target + sum(size.replicas for size in old) <= replicas + within.max_surge
    assert target <= max(replicas, 0)


@settings(max_examples=times(7), deadline=None)
@given(st.integers(1, 6), amounts, amounts, st.lists(st.booleans(), min_size=30, max_size=30))
def test_a_rollout_never_has_too_few_pods_and_comes_to_an_end(replicas: int, surge: Any, unavailable: Any, luck: list[bool]) -> None:
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    stage = play(workload("Deployment", replicas=replicas, strategy=rolling))
    start(stage)
    within = limits(replicas, rolling)
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("b")}})
    for lucky in [*luck, *[True] * 2 * replicas]:
        assert sum(ready(pod) for pod in alive(stage)) >= within.min_available
        assert len(alive(stage)) <= replicas + within.max_surge
        if lucky:
            start(stage)
        stage.kubelet_ends()
    assert [pod["spec"]["containers"][0]["image"] for pod in alive(stage)] == ["b"] * replicas


def test_a_statefulset_starts_its_pods_in_order_and_ends_them_in_reverse() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    stage = play(workload("StatefulSet", replicas=2, serviceName="web", volumeClaimTemplates=[claim]))
    assert stage.names(kinds.POD) == ["web-0"]
    start(stage)
    assert stage.names(kinds.POD) == ["web-0", "web-1"]
    assert stage.names(kinds.CLAIM) == ["data-web-0", "data-web-1"]
    assert stage.get(kinds.POD, "web-1")["spec"]["hostname"] == "web-1"
    start(stage)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"replicas": 0}})
    assert [terminating(pod) for pod in stage.lister.all(kinds.POD)] == [False, True]
    stage.kubelet_ends()
    stage.kubelet_ends()
    assert stage.names(kinds.POD) == []
    assert stage.names(kinds.CLAIM) == ["data-web-0", "data-web-1"]
    stage.assert_settled()


def test_a_parallel_statefulset_starts_all_at_once() -> None:
    assert len(play(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel")).names(kinds.POD)) == 3


def test_a_statefulset_updates_from_the_end_down_to_its_partition() -> None:
    stage = play(workload("StatefulSet", replicas=3, updateStrategy={"rollingUpdate": {"partition": 1}}))
    for _ in range(3):
        start(stage)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"template": template("b")}})
    order = []
    for _ in range(4):
        order += [name_of(pod) for pod in stage.lister.all(kinds.POD) if terminating(pod)]
        stage.kubelet_ends()
        start(stage)
    assert order == ["web-2", "web-1"]
    images = [stage.get(kinds.POD, f"web-{ordinal}")["spec"]["containers"][0]["image"] for ordinal in range(3)]
    assert images == ["a", "b", "b"]
    stage.lose("web-0")
    assert stage.get(kinds.POD, "web-0")["spec"]["containers"][0]["image"] == "a"
    status = status_of(stage.get(kinds.STATEFUL_SET, "web"))
    assert status["updatedReplicas"] == 2 and status["currentRevision"] != status["updateRevision"]
    start(stage)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    stage.kubelet_ends()
    start(stage)
    status = status_of(stage.get(kinds.STATEFUL_SET, "web"))
    assert status["currentRevision"] == status["updateRevision"]
    stage.assert_settled()


def test_a_statefulset_counts_its_partition_from_its_first_ordinal() -> None:
    stage = play(workload("StatefulSet", replicas=3, ordinals={"start": 5}, updateStrategy={"rollingUpdate": {"partition": 2}}))
    for _ in range(3):
        start(stage)
    assert stage.names(kinds.POD) == ["web-5", "web-6", "web-7"]
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"template": template("b")}})
    for _ in range(3):
        stage.kubelet_ends()
        start(stage)
    stage.lose("web-6")
    assert [pod["spec"]["containers"][0]["image"] for pod in stage.lister.all(kinds.POD)] == ["a", "a", "b"]


def test_a_statefulset_goes_on_once_a_pod_was_ready_long_enough() -> None:
    stage = play(workload("StatefulSet", replicas=2, minReadySeconds=10))

    def get_ready() -> None:
        since = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(stage.now)}]
        for pod in alive(stage):
            if not ready(pod):
                stage.change(kinds.POD, name_of(pod), {"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "conditions": since}})

    get_ready()
    assert stage.names(kinds.POD) == ["web-0"]
    stage.wait(10)
    get_ready()
    assert stage.names(kinds.POD) == ["web-0", "web-1"]
    stage.wait(10)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"template": template("b")}})
    stage.kubelet_ends()
    get_ready()
    assert len(alive(stage)) == 2
    stage.wait(10)
    assert [name_of(pod) for pod in alive(stage)] == ["web-1"]


def test_a_statefulset_replaces_as_many_pods_at_a_time_as_may_be_unavailable() -> None:
    rolling = {"rollingUpdate": {"maxUnavailable": "50%", "partition": 1}}
    stage = play(workload("StatefulSet", replicas=5, podManagementPolicy="Parallel", updateStrategy=rolling))
    start(stage)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"template": template("b")}})
    assert [name_of(pod) for pod in alive(stage)] == ["web-0", "web-1"]
    stage.kubelet_ends()
    assert len(alive(stage)) == 5, "the new ones are not available yet"
    start(stage)
    assert [name_of(pod) for pod in alive(stage)] == ["web-0", "web-2", "web-3", "web-4"]


def test_claims_have_the_labels_of_their_template() -> None:
    meta = {"name": "data", "labels": {"app": "not", "kind": "fast"}, "annotations": {"note": "x"}}
    stage = play(workload("StatefulSet", replicas=1, volumeClaimTemplates=[{"metadata": meta, "spec": {}}]))
    made = stage.get(kinds.CLAIM, "data-web-0")["metadata"]
    assert (made["labels"], made["annotations"]) == ({"app": "web", "kind": "fast"}, {"note": "x"})


@pytest.mark.parametrize("deleted", ["Retain", "Delete"])
@pytest.mark.parametrize("scaled", ["Retain", "Delete"])
def test_claims_stay_or_go_as_the_policy_says(scaled: str, deleted: str) -> None:
    policy = {"whenScaled": scaled, "whenDeleted": deleted}
    claim = {"metadata": {"name": "data"}, "spec": {}}
    stage = play(workload("StatefulSet", replicas=3, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy))
    for _ in range(3):
        start(stage)
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"replicas": 2}})
    stage.kubelet_ends()
    assert ("data-web-2" in stage.names(kinds.CLAIM)) == (scaled == "Retain")
    stage.assert_settled()
    stage.lose("web-1")
    assert "data-web-1" in stage.names(kinds.CLAIM), "its successor has it"
    stage.delete(kinds.STATEFUL_SET, "web")
    stage.kubelet_ends()
    left = ["data-web-0", "data-web-1", "data-web-2"] if scaled == "Retain" else ["data-web-0", "data-web-1"]
    assert stage.names(kinds.CLAIM) == ([] if deleted == "Delete" else left)


def test_a_pod_waits_for_its_last_claim_to_go_and_gets_a_new_one() -> None:
    stage = Stage(controllers=kubernetes_controllers())
    stage.add(workload("StatefulSet", replicas=1, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}]))
    stage.change(kinds.CLAIM, "data-web-0", {"metadata": {"finalizers": ["example.com/held"]}})
    first = uid_of(stage.get(kinds.CLAIM, "data-web-0"))
    stage.delete(kinds.CLAIM, "data-web-0")
    stage.delete(kinds.POD, "web-0")
    assert stage.names(kinds.POD) == []
    stage.change(kinds.CLAIM, "data-web-0", {"metadata": {"finalizers": None}})
    assert stage.names(kinds.POD) == ["web-0"]
    assert uid_of(stage.get(kinds.CLAIM, "data-web-0")) != first
    stage.assert_settled()


def test_claims_of_a_policy_that_is_withdrawn_stay() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {}}
    policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
    stage = play(workload("StatefulSet", volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy))
    stage.change(kinds.STATEFUL_SET, "web", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}})
    stage.delete(kinds.STATEFUL_SET, "web")
    assert stage.names(kinds.CLAIM) == ["data-web-0"]


def test_a_daemonset_has_a_pod_on_every_node_that_fits() -> None:
    tainted = node("n3", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    stage = play(node("n2", {"disk": "ssd"}), tainted, workload("DaemonSet"))
    assert sorted(_tied_to(stage)) == ["n1", "n2"]
    stage.add(node("n4"))
    assert sorted(_tied_to(stage)) == ["n1", "n2", "n4"]
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template(nodeSelector={"disk": "ssd"})}})
    assert _tied_to(stage) == ["n2"]
    status = status_of(stage.get(kinds.DAEMON_SET, "web"))
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (1, 1)


def _tied_to(stage: Stage) -> list[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] for pod in alive(stage)]
    return [each[0]["matchFields"][0]["values"][0] for each in terms]


def test_a_daemonset_updates_one_node_at_a_time() -> None:
    stage = play(node("n2"), workload("DaemonSet"))
    for pod in alive(stage):
        stage.change(kinds.POD, name_of(pod), {"spec": {"nodeName": _tied_to_one(pod)}})
    stage.pods("Running")
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template("b")}})
    assert len(alive(stage)) == 1
    stage.kubelet_ends()
    for _ in range(2):
        for pod in alive(stage):
            stage.change(kinds.POD, name_of(pod), {"spec": {"nodeName": _tied_to_one(pod)}})
        stage.pods("Running", *[name_of(pod) for pod in alive(stage)])
        stage.kubelet_ends()
    assert [pod["spec"]["containers"][0]["image"] for pod in alive(stage)] == ["b", "b"]


def test_a_taint_that_keeps_new_pods_away_leaves_a_daemon_where_it_is() -> None:
    stage = play(node("n2"), workload("DaemonSet"))

    def counts() -> tuple[int, int]:
        status = status_of(stage.get(kinds.DAEMON_SET, "web"))
        return status["desiredNumberScheduled"], status["numberMisscheduled"]

    stage.change(kinds.NODE, "n2", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
    assert sorted(_tied_to(stage)) == ["n1", "n2"] and counts() == (1, 1)
    stage.change(kinds.NODE, "n2", {"spec": {"taints": [{"key": "gpu", "effect": "NoExecute"}]}})
    assert _tied_to(stage) == ["n1"] and counts() == (1, 0)


def test_a_daemon_on_its_hosts_network_comes_before_the_network_does() -> None:
    cut_off = node("n2")
    cut_off["status"]["conditions"].append({"type": "NetworkUnavailable", "status": "True"})
    stage = play(cut_off)
    stage.add(workload("DaemonSet"))
    assert _tied_to(stage) == ["n1"]
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template(hostNetwork=True)}})
    assert "n2" in _tied_to(stage)


def _started(stage: Stage) -> None:
    """The daemons that are not ready yet are, from now on."""
    since = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(stage.now)}]
    for pod in alive(stage):
        if not ready(pod):
            running = {"spec": {"nodeName": _tied_to_one(pod)}, "status": {"phase": "Running", "conditions": since}}
            stage.change(kinds.POD, name_of(pod), running)


def _daemons(stage: Stage) -> list[tuple[str, str]]:
    return sorted((_tied_to_one(pod), pod["spec"]["containers"][0]["image"]) for pod in alive(stage))


def test_a_daemonset_that_surges_ends_an_old_pod_once_its_successor_is_available() -> None:
    strategy = {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    stage = play(node("n2"), node("n3"), workload("DaemonSet", minReadySeconds=10, **strategy))
    _started(stage)
    stage.wait(10)
    stage.change(kinds.POD, name_of(alive(stage)[2]), {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    broken = _tied_to_one(alive(stage)[2])
    fine = sorted({"n1", "n2", "n3"} - {broken})
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template("b")}})
    assert _daemons(stage) == sorted([(fine[0], "a"), (fine[0], "b"), (fine[1], "a"), (broken, "b")])
    _started(stage)
    stage.kubelet_ends()
    assert [each for each in _daemons(stage) if each[0] == fine[0]] == [(fine[0], "a"), (fine[0], "b")]
    stage.wait(10)
    stage.kubelet_ends()
    assert _daemons(stage) == sorted([(fine[0], "b"), (fine[1], "a"), (fine[1], "b"), (broken, "b")])
    _started(stage)
    stage.wait(10)
    stage.kubelet_ends()
    assert _daemons(stage) == [("n1", "b"), ("n2", "b"), ("n3", "b")]
    stage.assert_settled()


def test_a_daemonset_waits_until_new_pods_were_ready_long_enough() -> None:
    stage = play(node("n2"), workload("DaemonSet", minReadySeconds=10))
    _started(stage)
    stage.wait(10)
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template("b")}})
    stage.kubelet_ends()
    _started(stage)
    assert sorted(image for _, image in _daemons(stage)) == ["a", "b"]
    stage.wait(10)
    assert [image for _, image in _daemons(stage)] == ["b"]


def test_daemons_are_updated_when_they_are_deleted_if_so_stated() -> None:
    stage = play(workload("DaemonSet", updateStrategy={"type": "OnDelete"}))
    stage.change(kinds.DAEMON_SET, "web", {"spec": {"template": template("b")}})
    assert _daemons(stage) == [("n1", "a")]
    stage.lose(name_of(alive(stage)[0]))
    assert _daemons(stage) == [("n1", "b")]


CAUSE = "kubernetes.io/change-cause"


def _tied_to_one(pod: Object) -> str:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return str(pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", kinds.STATEFUL_SET), ("DaemonSet", kinds.DAEMON_SET)])
def test_templates_are_remembered_and_the_one_in_use_is_the_newest(kind: str, name: str) -> None:
    limit = {"revisionHistoryLimit": 1}
    stage = play(workload(kind, **limit))
    start(stage)

    def history() -> list[tuple[int, str]]:
        kept = [stage.get(kinds.CONTROLLER_REVISION, each) for each in stage.names(kinds.CONTROLLER_REVISION)]
        assert all(each["data"]["spec"]["template"]["$patch"] == "replace" for each in kept), "it is a patch that kubectl sends back"
        assert all(json.dumps(each["data"]) == json.dumps(each["data"], sort_keys=True) for each in kept), "its bytes are compared"
        return sorted((each["revision"], each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]) for each in kept)

    def use(image: str) -> None:
        stage.change(name, "web", {"spec": {"template": template(image)}})
        for _ in range(3):
            stage.kubelet_ends()
            start(stage)

    assert history() == [(1, "a")]
    use("b")
    assert history() == [(1, "a"), (2, "b")]
    use("a")
    assert history() == [(2, "b"), (3, "a")]
    use("c")
    assert history() == [(3, "a"), (4, "c")], "as many old ones as wanted"
    stage.change(name, "web", {"metadata": {"annotations": {CAUSE: "why"}}, "spec": {"template": template("d")}})
    kept = [stage.get(kinds.CONTROLLER_REVISION, each) for each in stage.names(kinds.CONTROLLER_REVISION)]
    assert sorted((each["revision"], annotations_of(each).get(CAUSE)) for each in kept)[-1] == (5, "why")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (workload("Deployment", replicas=2), ["ScalingReplicaSet", "SuccessfulCreate", "SuccessfulCreate"]),
        (workload("Deployment", replicas=0), []),
        (workload("StatefulSet", replicas=1), ["SuccessfulCreate"]),
        (workload("DaemonSet"), ["SuccessfulCreate"]),
        (workload("Job"), ["SuccessfulCreate"]),
        (workload("Job", suspend=True), ["Suspended"]),
    ],
)
def test_what_is_done_for_a_workload_is_told_in_events(made: Object, told: list[str]) -> None:
    stage = play(made)
    assert [event.reason for event in stage.lister.emitted] == told


def test_the_events_have_kubernetes_words() -> None:
    stage = play(workload("Deployment", replicas=1, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}))
    start(stage)
    first = stage.names(kinds.REPLICA_SET)[0]
    stage.change(kinds.DEPLOYMENT, "web", {"spec": {"template": template("b")}})
    start(stage)
    second = next(name for name in stage.names(kinds.REPLICA_SET) if name != first)
    texts = [event.message for event in stage.lister.emitted if event.reason == "ScalingReplicaSet"]
    assert texts == [f"Scaled {how}" for how in (f"up replica set {first} from 0 to 1", f"up replica set {second} from 0 to 1")] + [
        f"Scaled down replica set {first} from 1 to 0"
    ]
    stage = play(workload("Job", suspend=True))
    stage.change(kinds.BATCH_JOB, "web", {"spec": {"suspend": False}})
    stage.pods("Succeeded")
    assert [event.message.partition(":")[0] for event in stage.lister.emitted] == [
        "Job suspended",
        "Job resumed",
        "Created pod",
        "Job completed",
    ]
