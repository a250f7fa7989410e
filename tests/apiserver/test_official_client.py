"""The official Python client, as its users use it, against a server of ours over TLS."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kubernetes import client, config, dynamic, informer, watch
    from kubernetes.client.exceptions import ApiException
    from kubernetes.leaderelection import electionconfig, leaderelection
    from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
    from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from pumice.cluster.apiserver.bootstrap import volcano_definitions
from tests.apiserver.server_process import Running, in_thread, kubeconfig_of
from tests.apiserver.test_custom_kinds import definition

PATIENCE_S = 15.0
CONTAINER = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}]},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with in_thread() as running:
        config.load_kube_config(str(kubeconfig_of(running, tmp_path_factory.mktemp("client"))))
        yield running


@pytest.fixture(scope="module")
def api(running: Running) -> Iterator[client.ApiClient]:
    with client.ApiClient() as made:
        yield made


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def space(core: client.CoreV1Api, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    made = core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(generate_name="test-")))
    return str(made.metadata.name)


def pod(name: str, app: str = "web", **spec: Any) -> client.V1Pod:
    container = client.V1Container(name="c", image="busybox", resources=client.V1ResourceRequirements(requests={"cpu": "500m"}))
    metadata = client.V1ObjectMeta(name=name, labels={"app": app})
    return client.V1Pod(metadata=metadata, spec=client.V1PodSpec(containers=[container], **spec))


def refused(code: int) -> Any:
    return pytest.raises(ApiException, match=rf"\({code}\)")


def test_objects_are_made_read_changed_and_deleted(core: client.CoreV1Api, space: str) -> None:
    made = core.create_namespaced_pod(space, pod("a"))
    assert made.status.phase == "Pending"
    assert core.read_namespaced_pod("a", space).spec.containers[0].resources.requests == {"cpu": "500m"}
    made.metadata.labels["tier"] = "front"
    changed = core.replace_namespaced_pod("a", space, made)
    with refused(409):
        core.replace_namespaced_pod("a", space, made)
    assert changed.metadata.labels == {"app": "web", "tier": "front"}
    core.delete_namespaced_pod("a", space)
    with refused(404):
        core.read_namespaced_pod("a", space)


def test_lists_take_selectors_and_pages(core: client.CoreV1Api, space: str) -> None:
    for number in range(5):
        core.create_namespaced_pod(space, pod(f"p{number}", "web" if number % 2 else "db"))
    assert len(core.list_namespaced_pod(space, label_selector="app in (web)").items) == 2
    assert len(core.list_namespaced_pod(space, field_selector="metadata.name!=p0,status.phase=Pending").items) == 4
    names: list[str] = []
    page = core.list_namespaced_pod(space, limit=2)
    names += [one.metadata.name for one in page.items]
    core.delete_namespaced_pod("p4", space)
    while page.metadata._continue:
        page = core.list_namespaced_pod(space, limit=2, _continue=page.metadata._continue)
        names += [one.metadata.name for one in page.items]
    assert names == ["p0", "p1", "p2", "p3", "p4"], "pages are of one version"
    assert len(core.list_namespaced_pod(space).items) == 4


def test_a_watch_goes_on_where_a_list_ended_and_ends_when_it_was_asked_to(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_pod(space, pod("before"))
    version = core.list_namespaced_pod(space).metadata.resource_version
    core.create_namespaced_pod(space, pod("after"))
    core.patch_namespaced_pod("after", space, {"metadata": {"labels": {"app": None}}})
    core.delete_namespaced_pod("after", space)
    arguments = {"resource_version": version, "timeout_seconds": 1, "allow_watch_bookmarks": True}
    begun = time.monotonic()
    seen = [(event["type"], event["object"]) for event in watch.Watch().stream(core.list_namespaced_pod, space, **arguments)]
    assert time.monotonic() - begun < 5
    assert [(kind, one.metadata.name) for kind, one in seen] == [("ADDED", "after"), ("MODIFIED", "after"), ("DELETED", "after")]
    assert isinstance(seen[0][1], client.V1Pod)


def test_a_watch_of_a_selection_sees_objects_come_and_go(core: client.CoreV1Api, space: str) -> None:
    version = core.create_namespaced_pod(space, pod("x", "db")).metadata.resource_version
    core.patch_namespaced_pod("x", space, {"metadata": {"labels": {"app": "web"}}})
    core.patch_namespaced_pod("x", space, {"metadata": {"labels": {"app": "db"}}})
    arguments = {"resource_version": version, "timeout_seconds": 1, "label_selector": "app=web"}
    assert [event["type"] for event in watch.Watch().stream(core.list_namespaced_pod, space, **arguments)] == ["ADDED", "DELETED"]


def test_a_watch_can_begin_with_what_there_is_and_marks_its_end(api: client.ApiClient, core: client.CoreV1Api, space: str) -> None:
    for name in ("a", "b"):
        core.create_namespaced_pod(space, pod(name))
    pods = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="Pod")
    delete_options = {"send_initial_events": True, "resource_version_match": "NotOlderThan", "allow_watch_bookmarks": True}
    seen = [event["raw_object"] for event in pods.watch(namespace=space, timeout=1, **delete_options)]
    assert [one["metadata"].get("name") for one in seen] == ["a", "b", None]
    assert seen[-1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_from_a_forgotten_version_is_told_gone(core: client.CoreV1Api, space: str, running: Running) -> None:
    running.call(lambda store: setattr(store.storage.kind_storage("configmaps"), "complete_since", store.storage.version))
    with refused(410):
        list(watch.Watch().stream(core.list_namespaced_config_map, space, resource_version="1", timeout_seconds=1))
    with refused(410):
        core.list_namespaced_config_map(space, resource_version="1", resource_version_match="Exact")


def test_an_informer_keeps_a_cache(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_pod(space, pod("first"))
    shared = informer.SharedInformer(core.list_namespaced_pod, namespace=space)
    seen: list[tuple[str, str]] = []
    for kind in (informer.ADDED, informer.DELETED):
        shared.add_event_handler(kind, lambda one, kind=kind: seen.append((kind, one.metadata.name)))
    shared.start()
    until(lambda: ("ADDED", "first") in seen)
    core.create_namespaced_pod(space, pod("second"))
    until(lambda: ("ADDED", "second") in seen)
    core.delete_namespaced_pod("first", space)
    until(lambda: ("DELETED", "first") in seen)
    assert [one.metadata.name for one in shared.cache.list()] == ["second"]
    shared.stop()


def until(condition: Any) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/merge-patch+json", {"metadata": {"labels": {"app": "b", "x": "y"}}}),
        ("application/strategic-merge-patch+json", {"metadata": {"labels": {"app": "b", "x": "y"}}}),
        (
            "application/json-patch+json",
            [{"op": "replace", "path": "/metadata/labels/app", "value": "b"}, {"op": "add", "path": "/metadata/labels/x", "value": "y"}],
        ),
    ],
)
def test_every_type_of_patch(core: client.CoreV1Api, space: str, content_type: str, body: Any) -> None:
    core.create_namespaced_pod(space, pod("p", "a"))
    changed = core.patch_namespaced_pod("p", space, body, _content_type=content_type)
    assert changed.metadata.labels == {"app": "b", "x": "y"}


def test_server_side_apply_and_its_conflicts(api: client.ApiClient, core: client.CoreV1Api, space: str) -> None:
    dynamics = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager: str, value: str, force: bool = False) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": space}, "data": {"a": value}}
        return dynamics.server_side_apply(body=body, namespace=space, field_manager=manager, force_conflicts=force)

    assert apply("one", "1").data.a == "1"
    with pytest.raises(Exception, match="FieldManagerConflict"):
        apply("two", "2")
    assert apply("two", "2", force=True).data.a == "2"
    owners = [(one.manager, one.operation) for one in core.read_namespaced_config_map("c", space).metadata.managed_fields]
    assert owners == [("two", "Apply")]


def test_dry_run_says_what_would_be_and_keeps_nothing(core: client.CoreV1Api, space: str) -> None:
    assert core.create_namespaced_pod(space, pod("ghost"), dry_run="All").metadata.uid
    with refused(404):
        core.read_namespaced_pod("ghost", space)
    core.create_namespaced_pod(space, pod("real"))
    assert core.patch_namespaced_pod("real", space, {"metadata": {"labels": {"x": "y"}}}, dry_run="All").metadata.labels["x"] == "y"
    core.delete_namespaced_pod("real", space, dry_run="All")
    assert core.read_namespaced_pod("real", space).metadata.labels == {"app": "web"}


def test_field_validation_is_strict_if_asked(api: client.ApiClient, space: str) -> None:
    objects, place = client.CustomObjectsApi(api), ("batch.volcano.sh", "v1alpha1", space, "jobs")
    body = JOB | {"spec": JOB["spec"] | {"colour": "red"}}
    with pytest.raises(ApiException, match=r"unknown field .*spec\.colour"):
        objects.create_namespaced_custom_object(*place, body, field_validation="Strict")
    assert "colour" not in objects.create_namespaced_custom_object(*place, body, field_validation="Ignore")["spec"]


def test_binding_and_eviction_under_a_budget(api: client.ApiClient, core: client.CoreV1Api, space: str, running: Running) -> None:
    core.create_namespaced_pod(space, pod("p"))
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="n1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", space, binding, _preload_content=False)
    assert core.read_namespaced_pod("p", space).spec.node_name == "n1"
    with refused(409):
        core.create_namespaced_pod_binding("p", space, binding)
    with refused(409):
        core.create_namespaced_binding(space, binding)
    core.patch_namespaced_pod_status("p", space, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="b"),
        spec=client.V1PodDisruptionBudgetSpec(min_available=1, selector=client.V1LabelSelector(match_labels={"app": "web"})),
    )
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget(space, budget)
    client.PolicyV1Api(api).patch_namespaced_pod_disruption_budget_status(
        "b", space, {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}}
    )
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=space))
    with refused(429):
        core.create_namespaced_pod_eviction("p", space, eviction)
    client.PolicyV1Api(api).delete_namespaced_pod_disruption_budget("b", space)
    core.create_namespaced_pod_eviction("p", space, eviction)
    assert core.read_namespaced_pod("p", space).metadata.deletion_timestamp is not None
    core.delete_namespaced_pod("p", space, grace_period_seconds=0)


def test_volcano_jobs_through_the_custom_objects_api(api: client.ApiClient, space: str) -> None:
    objects, place = client.CustomObjectsApi(api), ("batch.volcano.sh", "v1alpha1")
    made = objects.create_namespaced_custom_object(*place, space, "jobs", JOB)
    assert made["spec"]["minAvailable"] == 1
    for content_type, patch in (
        ("application/merge-patch+json", {"spec": {"maxRetry": 5}}),
        ("application/json-patch+json", [{"op": "replace", "path": "/spec/maxRetry", "value": 6}]),
    ):
        changed = objects.patch_namespaced_custom_object(*place, space, "jobs", "train", patch, _content_type=content_type)
    assert changed["spec"]["maxRetry"] == 6
    body = made | {"status": {"state": {"phase": "Running"}}}
    body["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"]
    objects.replace_namespaced_custom_object_status(*place, space, "jobs", "train", body)
    assert objects.get_namespaced_custom_object_status(*place, space, "jobs", "train")["status"]["state"] == {"phase": "Running"}
    listed = objects.list_namespaced_custom_object(*place, space, "jobs")
    assert [one["spec"]["maxRetry"] for one in listed["items"]] == [6]
    arguments = {"resource_version": "0", "timeout_seconds": 1}
    seen = [event["type"] for event in watch.Watch().stream(objects.list_namespaced_custom_object, *place, space, "jobs", **arguments)]
    assert seen == ["ADDED"]
    objects.delete_namespaced_custom_object(*place, space, "jobs", "train")
    with refused(404):
        objects.get_namespaced_custom_object(*place, space, "jobs", "train")


def test_a_definition_is_found_by_the_dynamic_client(api: client.ApiClient, space: str) -> None:
    client.ApiextensionsV1Api(api).create_custom_resource_definition(definition())
    boxes = dynamic.DynamicClient(api).resources.get(api_version="example.com/v1", kind="Box")
    assert boxes.create(body={"metadata": {"name": "b"}, "spec": {"size": 3}}, namespace=space).spec.color == "red"
    patched = boxes.patch(
        body={"metadata": {"name": "b"}, "spec": {"size": 4}}, namespace=space, content_type="application/merge-patch+json"
    )
    assert patched.spec.size == 4
    assert [one.metadata.name for one in boxes.get(namespace=space, label_selector="!x").items] == ["b"]
    assert [event["type"] for event in boxes.watch(namespace=space, timeout=1)] == ["ADDED"]
    assert boxes.status.replace(body=patched.to_dict() | {"status": {"phase": "Full"}}, namespace=space).status.phase == "Full"
    boxes.delete(name="b", namespace=space)


def test_volcanos_own_definitions_can_be_replaced(api: client.ApiClient) -> None:
    extensions = client.ApiextensionsV1Api(api)
    for each in volcano_definitions():
        live = extensions.read_custom_resource_definition(each["metadata"]["name"])
        assert any(one.type == "Established" and one.status == "True" for one in live.status.conditions)
        extensions.replace_custom_resource_definition(each["metadata"]["name"], live)


@pytest.mark.parametrize("lock_type", [LeaseLock, ConfigMapLock])
def test_leader_election_gives_the_lock_to_one(space: str, running: Running, lock_type: Any) -> None:
    def elect(identity: str) -> leaderelection.LeaderElection:
        lock = lock_type("lock", space, identity)
        return leaderelection.LeaderElection(electionconfig.Config(lock, 3, 2, 1, lambda: None, None))

    first, second = elect("first"), elect("second")
    assert first.try_acquire_or_renew()
    assert first.try_acquire_or_renew(), "the leader renews"
    assert not second.try_acquire_or_renew()
    time.sleep(3.1)
    assert second.try_acquire_or_renew(), "a lock that was not renewed goes to somebody else"
    assert not first.try_acquire_or_renew()


def test_access_reviews_and_tokens(api: client.ApiClient, core: client.CoreV1Api, space: str) -> None:
    attributes = client.V1ResourceAttributes(verb="get", resource="pods", namespace=space)
    asked = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(asked).status.allowed
    core.create_namespaced_service_account(space, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("robot", space, request).status.token
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    told = client.AuthenticationV1Api(api).create_token_review(review).status
    assert (told.authenticated, told.user.username) == (True, f"system:serviceaccount:{space}:robot")


def test_the_clients_see_every_group_and_the_version(api: client.ApiClient) -> None:
    assert client.VersionApi(api).get_code().major == "1"
    groups = {one.name for one in client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", "policy", "batch.volcano.sh", "scheduling.volcano.sh"} <= groups
    assert any(one.name == "pods/eviction" for one in client.CoreV1Api(api).get_api_resources().resources)


def test_workloads_scale(api: client.ApiClient, space: str) -> None:
    apps = client.AppsV1Api(api)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    body = {"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}}
    apps.create_namespaced_deployment(space, body)
    assert apps.patch_namespaced_deployment_scale("d", space, {"spec": {"replicas": 4}}).spec.replicas == 4
    scale = apps.read_namespaced_deployment_scale("d", space)
    assert (scale.spec.replicas, scale.status.selector) == (4, "a=b")
    scale.spec.replicas = 2
    assert apps.replace_namespaced_deployment_scale("d", space, scale).spec.replicas == 2


def test_events_and_the_collection_of_owned_objects(api: client.ApiClient, core: client.CoreV1Api, space: str) -> None:
    owner = core.create_namespaced_config_map(space, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="owner")))
    reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    core.create_namespaced_config_map(space, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="owned", owner_references=[reference])))
    core.delete_namespaced_config_map("owner", space, propagation_policy="Foreground")
    until(lambda: core.list_namespaced_config_map(space).items == [])
    event = client.EventsV1Event(
        metadata=client.V1ObjectMeta(name="e"),
        regarding=client.V1ObjectReference(kind="ConfigMap", name="owned", namespace=space),
        reason="Gone",
        note="it went",
        type="Normal",
        action="Delete",
        reporting_controller="test",
        reporting_instance="test",
        event_time="2026-01-01T00:00:00.000000Z",
    )
    client.EventsV1Api(api).create_namespaced_event(space, event)
    assert core.list_namespaced_event(space, field_selector="involvedObject.name=owned").items[0].message == "it went"
    core.delete_collection_namespaced_event(space)
    assert core.list_namespaced_event(space).items == []


def test_a_namespace_goes_with_all_that_is_in_it(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_pod(space, pod("inside"))
    core.delete_namespace(space)
    until(lambda: space not in [one.metadata.name for one in core.list_namespace().items])


def test_a_client_is_made_from_the_kubeconfig_alone(running: Running, tmp_path: Path) -> None:
    with config.new_client_from_config(str(kubeconfig_of(running, tmp_path))) as other:
        assert client.CoreV1Api(other).list_node().items == []
