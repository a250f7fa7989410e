"""What `kubectl get` shows of each kind: the columns that its users know."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.apiserver.tables.table import table
from tests.apiserver.made import store

SPEC = {"containers": [{"name": "c", "image": "busybox"}]}
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


@pytest.mark.parametrize(
    ("resource", "columns"),
    [
        ("pods", "NAME READY STATUS RESTARTS AGE"),
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
        ("deployments.apps", "NAME READY UP-TO-DATE AVAILABLE AGE"),
        ("replicasets.apps", "NAME DESIRED CURRENT READY AGE"),
        ("statefulsets.apps", "NAME READY AGE"),
        ("daemonsets.apps", "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE"),
        ("jobs.batch", "NAME STATUS COMPLETIONS DURATION AGE"),
        ("cronjobs.batch", "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE"),
        ("services", "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"),
        ("secrets", "NAME TYPE DATA AGE"),
        ("poddisruptionbudgets.policy", "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE"),
        ("priorityclasses.scheduling.k8s.io", "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY"),
        ("resourcequotas", "NAME REQUEST LIMIT AGE"),
        ("leases.coordination.k8s.io", "NAME HOLDER AGE"),
        ("horizontalpodautoscalers.autoscaling", "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE"),
        ("ingresses.networking.k8s.io", "NAME CLASS HOSTS ADDRESS PORTS AGE"),
        ("networkpolicies.networking.k8s.io", "NAME POD-SELECTOR AGE"),
        ("resourceclaims.resource.k8s.io", "NAME STATE AGE"),
        ("customresourcedefinitions.apiextensions.k8s.io", "NAME CREATED AT"),
        ("certificatesigningrequests.certificates.k8s.io", "NAME AGE SIGNERNAME REQUESTOR REQUESTEDDURATION CONDITION"),
        ("events", "LAST SEEN TYPE REASON OBJECT MESSAGE"),
    ],
)
def test_headings(resource: str, columns: str) -> None:
    made = store()
    shown = table(made.kind(resource), [], made.now(), {})
    assert " ".join(column["name"].upper() for column in shown["columnDefinitions"] if not column["priority"]) == columns


@pytest.mark.parametrize(
    ("resource", "body", "cells"),
    [
        ("ingresses.networking.k8s.io", {"spec": {"rules": [{"host": "a.b"}, {}]}}, ["<none>", "a.b,*", "", "80"]),
        ("networkpolicies.networking.k8s.io", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, ["a=b"]),
        ("resourceclaims.resource.k8s.io", {"spec": {}}, ["pending"]),
        (
            "horizontalpodautoscalers.autoscaling",
            {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [METRIC]}},
            ["Deployment/d", "cpu: <unknown>/80%"],
        ),
        ("jobs.batch", {"spec": {"template": {"spec": SPEC | {"restartPolicy": "Never"}}, "completions": 2}}, ["Running", "0/2"]),
    ],
)
def test_cells(resource: str, body: dict[str, Any], cells: list[str]) -> None:
    made = store()
    obj = made.create(resource, {"metadata": {"name": "x"}} | body, "default")
    row = table(made.kind(resource), [obj], made.now(), {})["rows"][0]["cells"]
    assert row[1 : 1 + len(cells)] == cells


@pytest.mark.parametrize(
    ("types", "more", "state"),
    [
        ([], {}, "Pending"),
        (["Approved"], {}, "Approved"),
        (["Approved"], {"certificate": "Y2VydA=="}, "Approved,Issued"),
        (["Approved", "Failed"], {}, "Approved,Failed"),
        (["Denied"], {}, "Denied"),
    ],
)
def test_a_signing_request_says_how_far_it_is(types: list[str], more: dict[str, str], state: str) -> None:
    made = store()
    status = {"conditions": [{"type": each, "status": "True"} for each in types]} | more
    metadata = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
    obj = {"metadata": metadata, "spec": {"signerName": "a/b", "username": "ann", "expirationSeconds": 600}, "status": status}
    row = table(made.kind("certificatesigningrequests.certificates.k8s.io"), [obj], made.now(), {})["rows"][0]["cells"]
    assert row[2:] == ["a/b", "ann", "10m", state]


def test_every_kind_has_cells_for_an_object_that_says_little() -> None:
    made = store()
    for kind in made.kinds:
        if not kind.reviewed_only:
            bare: Any = {
                "metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"},
                "spec": {},
                "status": {},
            }
            made_of = {"template": {"spec": {}}, "jobTemplate": {"spec": {"template": {"spec": {}}}}, "scaleTargetRef": {}}
            assert table(kind, [bare | {"spec": made_of, "roleRef": {}}], made.now(), {})["rows"]
