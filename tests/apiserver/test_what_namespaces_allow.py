"""What classes, LimitRanges, quotas and service accounts make of a pod and of others, and what they refuse."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from pumice.cluster.apiserver.admission.service_account_admission import impersonal
from tests.apiserver.made import pod, store

CLASSES = "priorityclasses.scheduling.k8s.io"


def asking(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}


def outcome(made: Store, resource: str, obj: dict[str, Any]) -> str:
    """What the store said against it; empty if nothing."""
    try:
        made.create(resource, obj, "default")
    except StatusError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"priorityClassName": "high", "priority": 7}, ""),
        ({"priorityClassName": "high", "priority": 8}, r"the integer value of priority (8) must not be provided in pod spec"),
        ({"priority": 5}, "priority admission controller computed 0 from the given PriorityClass name"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, "the string value of PreemptionPolicy"),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, ""),
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
    ],
)
def test_a_priority_that_is_not_that_of_the_class_is_refused(spec: dict[str, Any], told: str) -> None:
    made = store()
    made.create(CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    message = outcome(made, "pods", pod("p", **spec))
    assert told in message
    assert bool(message) is bool(told)


def test_one_class_is_the_default_and_a_write_without_priority_keeps_it() -> None:
    made = store()
    made.create(CLASSES, {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
    assert "Only one default can exist" in outcome(made, CLASSES, {"metadata": {"name": "b"}, "value": 4, "globalDefault": True})
    made.patch(CLASSES, "usual", PatchRequest("merge", {"description": "still the default"}))
    there = made.create("pods", pod("p"), "default")
    assert (there["spec"]["priority"], there["spec"]["priorityClassName"]) == (3, "usual")
    without = {key: value for key, value in there["spec"].items() if key not in ("priority", "preemptionPolicy")}
    assert made.update("pods", there | {"spec": without})["spec"] == there["spec"]
    assert made.get("pods", "p", "default")["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "told"),
    [
        ({"min": {"cpu": "100m"}}, {"cpu": "50m"}, {"cpu": "1"}, "minimum cpu usage per Container is 100m, but request is 50m"),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, ""),
        ({"max": {"memory": "1Gi"}}, {}, {}, ""),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "3"}, "max limit to request ratio per Container is 2"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2"}, ""),
        ({"type": "Pod", "max": {"cpu": "3"}}, {"cpu": "2"}, {"cpu": "2"}, "maximum cpu usage per Pod is 3, but limit is 4"),
        ({"type": "Pod", "min": {"cpu": "5"}}, {"cpu": "2"}, {"cpu": "2"}, "minimum cpu usage per Pod is 5, but request is 4"),
        ({"type": "Pod", "max": {"cpu": "3"}}, {}, {}, "maximum cpu usage per Pod is 3.  No limit is specified"),
    ],
)
def test_limit_ranges_bound_what_pods_ask_for(limit: dict[str, Any], requests: Any, limits: Any, told: str) -> None:
    made = store()
    made.create("limitranges", {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container"} | limit]}}, "default")
    containers = [asking(requests, limits), asking(requests, limits) | {"name": "d"}]
    message = outcome(made, "pods", pod("p", containers=containers))
    assert told in message
    assert bool(message) is bool(told)


def test_limit_ranges_bound_claims_and_must_make_sense() -> None:
    made = store()
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    made.create("limitranges", {"metadata": {"name": "r"}, "spec": {"limits": [limit]}}, "default")

    def claim(size: str) -> dict[str, Any]:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"metadata": {"name": f"c{size.lower()}"}, "spec": spec}

    assert "minimum storage usage per PersistentVolumeClaim is 1Gi" in outcome(made, "persistentvolumeclaims", claim("1Mi"))
    assert "maximum storage usage per PersistentVolumeClaim is 10Gi" in outcome(made, "persistentvolumeclaims", claim("11Gi"))
    assert outcome(made, "persistentvolumeclaims", claim("5Gi")) == ""
    for wrong in ({"min": {"cpu": "2"}, "max": {"cpu": "1"}}, {"default": {"cpu": "2"}, "max": {"cpu": "1"}}):
        ranges = {"metadata": {"name": "wrong"}, "spec": {"limits": [{"type": "Container"} | wrong]}}
        assert "Invalid value" in outcome(made, "limitranges", ranges)


def test_quotas_count_load_balancers_and_node_ports_of_services_as_they_are_and_become() -> None:
    made = store()
    hard = {"services": "9", "services.loadbalancers": "1", "services.nodeports": "3"}
    made.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")

    def service(name: str, kind: str, ports: int, **spec: Any) -> dict[str, Any]:
        listed = [{"name": f"p{number}", "port": 80 + number} for number in range(ports)]
        return {"metadata": {"name": name}, "spec": {"type": kind, "ports": listed, "selector": {"a": "b"}} | spec}

    assert outcome(made, "services", service("lb", "LoadBalancer", 1)) == ""
    assert "exceeded quota: q, requested: services.loadbalancers=1" in outcome(made, "services", service("lb2", "LoadBalancer", 1))
    assert outcome(made, "services", service("np", "NodePort", 2)) == ""
    assert "services.nodeports=1, used: services.nodeports=3" in outcome(made, "services", service("np2", "NodePort", 1))
    assert outcome(made, "services", service("plain", "ClusterIP", 1)) == ""
    with pytest.raises(StatusError, match=r"exceeded quota: q, requested: services\.nodeports=1"):
        made.patch("services", "plain", PatchRequest("merge", {"spec": {"type": "NodePort"}}), "default")
    made.patch("services", "np", PatchRequest("merge", {"spec": {"type": "ClusterIP"}}), "default")
    made.patch("services", "plain", PatchRequest("merge", {"spec": {"type": "NodePort"}}), "default")


def test_a_resize_is_charged_for_what_it_adds() -> None:
    made = store()
    made.create("pods", pod("p", containers=[asking({"cpu": "1"}, {"cpu": "8"})]), "default")
    made.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2"}}}, "default")
    for cpu, accepted in (("2", True), ("3", False), ("1", True)):
        patch = PatchRequest("strategic", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
        try:
            made.patch("pods", "p", patch, "default", "resize")
        except StatusError as error:
            assert ("exceeded quota" in error.message, accepted) == (True, False)
        else:
            assert accepted


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
@pytest.mark.parametrize(
    ("key", "accepted"), [("a.b-C_1", True), ("", False), ("a b", False), (".", False), ("..a", False), ("a" * 254, False)]
)
def test_keys_of_data_are_names_of_files(resource: str, key: str, accepted: bool) -> None:
    assert (outcome(store(), resource, {"metadata": {"name": "x"}, "data": {key: "YQ=="}}) == "") is accepted


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"data": {"a": "not base64"}}, "not base64"),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}, "tls.key"),
        ({"type": "kubernetes.io/basic-auth", "data": {"other": "YQ=="}}, "data[username]"),
        ({"type": "kubernetes.io/basic-auth", "data": {"password": "YQ=="}}, ""),
        ({"type": "kubernetes.io/service-account-token"}, "service-account.name"),
        ({"data": {"a": base64.b64encode(bytes(2**20 + 1)).decode()}}, "Too long"),
    ],
)
def test_secrets_hold_what_their_type_promises(body: dict[str, Any], told: str) -> None:
    message = outcome(store(), "secrets", {"metadata": {"name": "x"}} | body)
    assert told in message
    assert bool(message) is bool(told)


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
def test_what_is_immutable_stays_as_it_is(resource: str) -> None:
    made = store()
    made.create(resource, {"metadata": {"name": "x"}, "data": {"a": "YQ=="}, "immutable": True}, "default")
    for change in ({"data": {"a": "Yg=="}}, {"data": None}, {"immutable": False}, {"immutable": None}):
        with pytest.raises(StatusError, match="field is immutable when `immutable` is set"):
            made.patch(resource, "x", PatchRequest("merge", change), "default")
    made.patch(resource, "x", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")


@pytest.mark.parametrize(
    ("account", "spec", "mounted"),
    [
        ({}, {}, True),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
        ({}, {"automountServiceAccountToken": False}, False),
    ],
)
def test_a_pod_finds_the_token_of_its_account(account: dict[str, Any], spec: dict[str, Any], mounted: bool) -> None:
    made = store()
    made.create("serviceaccounts", {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "pull"}]} | account, "default")
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    found = made.create("pods", pod("p", serviceAccountName="robot", containers=containers, **spec), "default")["spec"]
    volumes = [volume for volume in found.get("volumes", ()) if volume["name"].startswith("kube-api-access-")]
    assert bool(volumes) is mounted
    for container in found["containers"]:
        mounts = [(mount["name"], mount["mountPath"], mount["readOnly"]) for mount in container.get("volumeMounts", ())]
        assert mounts == ([(volumes[0]["name"], "/var/run/secrets/kubernetes.io/serviceaccount", True)] if mounted else [])
    assert found["imagePullSecrets"] == [{"name": "pull"}]


def test_a_mount_of_its_own_is_left_alone_and_an_account_that_is_missing_is_told() -> None:
    made = store()
    made.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
    own = {"name": "mine", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    containers = [{"name": "c", "image": "i", "volumeMounts": [own]}]
    found = made.create("pods", pod("p", containers=containers, volumes=[{"name": "mine", "emptyDir": {}}]), "default")["spec"]
    assert [volume["name"] for volume in found["volumes"]] == ["mine"]
    told = outcome(made, "pods", pod("q", serviceAccountName="nobody"))
    assert 'error looking up service account default/nobody: serviceaccount "nobody" not found' in told
    made.update("pods", made.get("pods", "p", "default"))


def test_pods_of_one_template_are_checked_as_one_though_the_volume_of_the_token_has_a_name_for_each() -> None:
    made = store()
    made.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
    one, other = (made.create("pods", pod(name), "default") for name in ("one", "other"))
    assert one["spec"] != other["spec"] and impersonal(one) == impersonal(other)
    name = one["spec"]["volumes"][0]["name"]
    assert impersonal(made.create("pods", pod("third", volumes=[{"name": name, "emptyDir": {}}]), "default")) != impersonal(one)
    twice = pod("twice", volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}])
    assert "Duplicate value" in outcome(made, "pods", twice)
