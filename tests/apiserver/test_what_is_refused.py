"""Validation of built-in kinds, in the words of Kubernetes, and what a Service keeps when its type changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pumice.cluster.apiserver import PatchRequest, StatusError
from tests.apiserver.made import pod, store

TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def cron_job(name: str = "c", **spec: Any) -> dict[str, Any]:
    body = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}, **spec}
    return {"metadata": {"name": name}, "spec": body}


def sysctls(*names: str) -> dict[str, Any]:
    return pod("p", securityContext={"sysctls": [{"name": name, "value": "1"} for name in names]})


@pytest.mark.parametrize(
    ("resource", "body", "field", "rule"),
    [
        ("cronjobs.batch", cron_job(timeZone="Mars/Olympus"), "spec.timeZone", "unknown time zone Mars/Olympus"),
        ("cronjobs.batch", cron_job(timeZone="../../etc/passwd"), "spec.timeZone", "unknown time zone"),
        ("cronjobs.batch", cron_job(timeZone=""), "spec.timeZone", "must be nil or non-empty string"),
        ("cronjobs.batch", cron_job(timeZone="LOCAL"), "spec.timeZone", "must be an explicit time zone"),
        ("cronjobs.batch", cron_job("c" * 53), "metadata.name", "must be no more than 52 characters"),
        ("namespaces", {"metadata": {"name": "n" * 64}}, "metadata.name", "must be no more than 63 characters"),
        ("services", {"metadata": {"name": "a.b"}, "spec": {"ports": [{"port": 1}]}}, "metadata.name", "must not contain dots"),
        ("pods", sysctls("kernel.shmmax", "foo-"), "spec.securityContext.sysctls[1].name", 'Invalid value: "foo-": must have at most 253'),
        ("pods", sysctls("bar.."), "spec.securityContext.sysctls[0].name", 'Invalid value: "bar..": must have'),
    ],
)
def test_object_is_refused_by_the_field_that_is_wrong(resource: str, body: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(StatusError) as refused:
        store().create(resource, body, "" if resource == "namespaces" else "default")
    assert f"{field}: " in str(refused.value) and rule in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        sysctls("x" * 400_000 + "-"),
        pod("P" * 400_000),
        pod("p") | {"metadata": {"name": "p", "labels": {"k" * 400_000: "v", "l": "-" * 400_000}}},
        pod("p", restartPolicy="x" * 400_000),
    ],
    ids=["value", "name", "keys and values of a mapping", "one of a few"],
)
def test_refusal_does_not_repeat_all_that_was_sent(body: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as refused:
        store().create("pods", body, "default")
    assert refused.value.code == 422 and "..." in refused.value.message
    assert len(json.dumps(refused.value.status())) < 10_000


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        ("cronjobs.batch", cron_job("c" * 52, timeZone="Europe/Berlin")),
        ("pods", sysctls("kernel.shmmax", "net/ipv4/ip_local_port_range", "safe-and-unsafe")),
    ],
)
def test_object_that_is_odd_but_right_is_taken(resource: str, body: dict[str, Any]) -> None:
    assert store().create(resource, body, "default")


def test_service_keeps_of_its_addresses_what_its_type_has() -> None:
    made = store()
    spec: dict[str, Any] = {"type": "NodePort", "ports": [{"port": 80}]}
    assert made.create("services", {"metadata": {"name": "s"}, "spec": spec}, "default")["spec"]["ports"][0]["nodePort"]

    def becomes(**change: Any) -> dict[str, Any]:
        found: dict[str, Any] = made.patch("services", "s", PatchRequest("merge", {"spec": change}), "default")["spec"]
        return found

    assert "nodePort" not in becomes(type="ClusterIP")["ports"][0]
    assert becomes(type="NodePort")["ports"][0]["nodePort"]
    outside = becomes(type="ExternalName", externalName="example.com")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & outside.keys() and "nodePort" not in outside["ports"][0]
    assert becomes(type="NodePort")["clusterIP"].startswith("10.")


def test_service_keeps_the_address_that_it_was_given_first() -> None:
    made = store()
    spec = {"clusterIP": "10.96.7.7", "ports": [{"port": 80}]}
    created = made.create("services", {"metadata": {"name": "s"}, "spec": spec}, "default")
    written = made.update("services", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": [{"port": 81}]}})
    assert {key: written["spec"][key] for key in ("clusterIP", "clusterIPs")} == {"clusterIP": "10.96.7.7", "clusterIPs": ["10.96.7.7"]}
    assert created["spec"]["ports"] != written["spec"]["ports"]
    for change in ({"clusterIP": "10.96.7.8"}, {"clusterIP": "None"}, {"clusterIPs": ["10.96.7.8"], "clusterIP": "10.96.7.8"}):
        with pytest.raises(StatusError, match=r"spec.clusterIPs\[0\]: Invalid value: .*: may not change once set"):
            made.patch("services", "s", PatchRequest("merge", {"spec": change}), "default")


def test_patch_with_a_wrong_type_is_refused_as_a_patch() -> None:
    made = store()
    made.create("pods", pod("p"), "default")
    for body, text in (({"metadata": {"labels": "no"}}, "map from string"), ({"spec": {"tolerations": 1}}, "slice from number")):
        with pytest.raises(StatusError) as refused:
            made.patch("pods", "p", PatchRequest("strategic", body), "default")
        assert refused.value.code == 422 and f"cannot restore {text}" in refused.value.message
        with pytest.raises(StatusError) as refused:
            made.patch("pods", "p", PatchRequest("merge", body), "default")
        assert refused.value.code == 422 and "json: cannot unmarshal" in refused.value.message
