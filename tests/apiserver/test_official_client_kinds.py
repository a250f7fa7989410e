"""Every kind that the official Python client and this server both know, created, listed, read and patched by that client's own classes.

The client refuses answers with fields, types or missing fields that its models do not have, so it judges the form of every answer.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kubernetes import client, config

from pumice.cluster.apiserver.scheme import builtin_shapes
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.clock import VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.stage import read_stages
from tests.apiserver.made import request_of
from tests.apiserver.server_process import Running, in_thread, kubeconfig_of

CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}, "limits": {"cpu": 1.5}}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
ENDING = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"a": "b"}}
ROLE = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
BOUND = {"subjects": [{"kind": "User", "name": "ann"}]}
BUDGET = {"driver": "x.io", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["none"], "operations": ["CREATE"]}
BODIES: dict[str, dict[str, Any]] = {
    "Pod": {"spec": TEMPLATE["spec"]},
    "Node": {"status": {"capacity": {"cpu": 8, "memory": "64Gi", "ephemeral-storage": 1e9}}},
    "Event": {"involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"}, "reason": "R", "message": "m", "type": "Normal"},
    "Service": {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    "PersistentVolume": {"spec": {"capacity": {"storage": 10**9}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
    "PersistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    "ResourceQuota": {"spec": {"hard": {"pods": 100, "requests.cpu": "1000m"}}},
    "LimitRange": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": 100}}]}},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    "PodTemplate": {"template": TEMPLATE},
    "Deployment": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "ReplicaSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "StatefulSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "ControllerRevision": {"revision": 1, "data": {"a": 1}},
    "Job": {"spec": {"template": ENDING}},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}}},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "PriorityClass": {"value": 7},
    "StorageClass": {"provisioner": "x.io/y"},
    "CSINode": {"spec": {"drivers": []}},
    "CSIDriver": {"spec": {}},
    "CSIStorageCapacity": {"storageClassName": "x", "capacity": 10**10},
    "VolumeAttachment": {"spec": {"attacher": "x.io", "nodeName": "n", "source": {"persistentVolumeName": "x"}}},
    "Lease": {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    "Role": ROLE,
    "ClusterRole": ROLE,
    "RoleBinding": BOUND | {"roleRef": {"kind": "Role", "name": "x"}},
    "ClusterRoleBinding": BOUND | {"roleRef": {"kind": "ClusterRole", "name": "x"}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}, "maxReplicas": 2}},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": []},
    "ResourceClaim": {"spec": REQUESTS},
    "ResourceClaimTemplate": {"spec": {"spec": REQUESTS}},
    "ResourceSlice": {"spec": BUDGET | {"devices": [{"name": "d", "capacity": {"memory": {"value": 1024**3}}}]}},
    "DeviceClass": {"spec": {}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "x", "effect": "NoSchedule"}}},
    "CustomResourceDefinition": {
        "spec": {
            "group": "x.io",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }
    },
    "ValidatingAdmissionPolicy": {"spec": {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}},
    "MutatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
        }
    },
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "none", "validationActions": ["Deny"]}},
    "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "none"}},
    "CertificateSigningRequest": {
        "spec": {"request": request_of(ec.generate_private_key(ec.SECP256R1()), "x"), "signerName": "x.io/y", "usages": ["client auth"]}
    },
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "x"}}},
    "PriorityLevelConfiguration": {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    "APIService": {"spec": {"group": "x.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}},
    "RuntimeClass": {"handler": "x"},
    "IPAddress": {"spec": {"parentRef": {"resource": "services", "name": "x"}}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.0.0.0/24"]}},
    "VolumeAttributesClass": {"driverName": "x.io", "parameters": {"a": "b"}},
    "StorageVersion": {"spec": {}, "status": {}},
}  #: what is said of an object of a kind beside its name; of other kinds nothing
NAMES = {"CustomResourceDefinition": "things.x.io"}
#: kinds that the client has no class for, or that nobody creates
KINDS = [kind for kind in builtin_kinds() if "list" in kind.verbs and kind.group != "metrics.k8s.io"]


def snake(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()


def class_of(kind: ServedKind) -> Any:
    group = kind.group.removesuffix(".k8s.io") or "core"
    name = "".join(part.capitalize() for part in group.split("."))
    name = {"RbacAuthorization": "RbacAuthorization", "Apiextensions": "Apiextensions"}.get(name, name)
    return getattr(client, f"{name}{kind.version.capitalize()}Api")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread() as started:
        yield started


@pytest.fixture(scope="module")
def api(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.ApiClient]:
    config.load_kube_config(str(kubeconfig_of(running, tmp_path_factory.mktemp("client"))))
    with client.ApiClient() as made:
        yield made


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_the_client_speaks_of_every_kind(running: Running, api: client.ApiClient, kind: ServedKind) -> None:
    calls, word = class_of(kind)(api), snake(kind.kind)
    name, scope = (
        NAMES.get(kind.kind, f"{kind.kind.lower()}-{kind.group or 'core'}-{kind.version}"),
        ("namespaced_", ["default"]) if kind.namespaced else ("", []),
    )
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}} | BODIES.get(kind.kind, {})
    if (kind.group, kind.kind) == ("events.k8s.io", "Event"):
        body = {"metadata": {"name": name}, "regarding": body["involvedObject"], "eventTime": "2026-01-01T00:00:00.000000Z"}
        body |= {"reason": "R", "type": "Normal", "action": "A", "reportingController": "x.io/c", "reportingInstance": "i"}

    def call(verb: str, *arguments: Any) -> Any:
        return getattr(calls, f"{verb}_{scope[0]}{word}")(*arguments)

    running.call(lambda store: store.create(kind, body, "default" if kind.namespaced else ""))
    made = call("read", name, *scope[1])
    assert made.metadata.name == name
    everywhere = getattr(calls, f"list_{word}_for_all_namespaces")() if kind.namespaced else call("list")
    assert name in [one.metadata.name for one in everywhere.items]
    assert name in [one.metadata.name for one in call("list", *scope[1]).items]
    patched = call("patch", name, *scope[1], {"metadata": {"labels": {"patched": "yes"}}})
    assert patched.metadata.labels["patched"] == "yes"
    assert call("read", name, *scope[1]).metadata.uid == made.metadata.uid
    call("replace", name, *scope[1], call("read", name, *scope[1]))
    again = call("read", name, *scope[1])
    again.metadata.resource_version = again.metadata.uid = None
    if kind.kind in ("Job", "CustomResourceDefinition"):  # the first has its uid in its selector
        return
    call("patch", name, *scope[1], {"metadata": {"finalizers": None}})  # volumes and claims have one, which a controller takes off
    call("delete", name, *scope[1])
    assert call("create", *scope[1], again).metadata.uid != made.metadata.uid
    if kind.has_status:
        getattr(calls, f"read_{scope[0]}{word}_status")(name, *scope[1])


def test_the_client_reads_what_a_running_cluster_holds(tmp_path_factory: pytest.TempPathFactory) -> None:
    def live(store: Any) -> None:
        plane.add([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "9"}}}])
        plane.quiet()
        body = {"metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}}
        store.create("deployments.apps", body, "default")
        plane.quiet()
        for pod in list(store.all("pods")):
            store.bind("default", pod["metadata"]["name"], "n")
        clock.move_to(clock.now() + 60)
        plane.quiet()

    with in_thread() as running:
        clock = VirtualClock(running.server.store.now())
        plane = ControlPlane(clock, running.server, read_stages())
        running.call(live)
        config.load_kube_config(str(kubeconfig_of(running, tmp_path_factory.mktemp("client"))))
        with client.ApiClient() as api:
            core = client.CoreV1Api(api)
            pods = core.list_pod_for_all_namespaces().items
            assert "n" in {pod.spec.node_name for pod in pods}
            assert pods[0].spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
            assert pods[0].spec.containers[0].resources.limits == {"cpu": "1500m"}
            node = core.list_node().items[0]
            assert node.status.node_info.kubelet_version.startswith("v1.")
            for found in (core.list_config_map_for_all_namespaces(), core.list_event_for_all_namespaces(), core.list_namespace()):
                assert found.items
            assert client.AppsV1Api(api).list_deployment_for_all_namespaces().items
            assert client.CoordinationV1Api(api).list_lease_for_all_namespaces().items


NEWER = {"NodeAllocatableResourceClaimStatus", "Device"}  #: structs that look otherwise in the version that the client was made from
PLAIN = {"string": "str", "int32": "int", "int64": "int", "bool": "bool", "number": "float", "bytes": "bytes", "Quantity": "str"}


def test_the_tables_of_types_say_what_the_client_says() -> None:
    builtin_shapes.shape_of("core.v1.Pod")
    different = []
    for name, struct in list(builtin_shapes._structs.items()):
        module, version, kind = name.split(".")
        prefix = version.capitalize()
        model = next(
            (getattr(client, each) for each in (f"{module.capitalize()}{prefix}{kind}", prefix + kind) if hasattr(client, each)), None
        )
        if model is None or kind in NEWER:
            continue
        attributes = {wire: attribute for attribute, wire in model.attribute_map.items()}
        for field, shape in struct.fields.items():
            stated = model.openapi_types.get(attributes.get(field, ""))
            listed, mapped = (str(stated).startswith(word) for word in ("List[", "Dict["))
            same = stated is not None and (shape.kind == "list") is listed and (shape.kind == "map") is mapped
            if shape.kind in ("string", "int32", "int64", "bool", "Quantity"):
                same = same and stated == PLAIN[shape.kind]
            if not same and field not in ("apiVersion", "kind") and not (shape.kind == "bytes" and mapped):
                different.append((name, field, shape.kind, stated))
    assert different == []
