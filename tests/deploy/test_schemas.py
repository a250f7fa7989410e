"""The chart by schema: its values by the schema that Helm holds them to, what it makes by the types of the API server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from pumice.cluster.apiserver import StatusError, WriteOptions
from tests.apiserver.made import store

DEPLOY = Path(__file__).parents[2] / "deploy"
VALUES = yaml.safe_load((DEPLOY / "chart/values.yaml").read_text())
SCHEMA = json.loads((DEPLOY / "chart/values.schema.json").read_text())
RESOURCES = {
    "Namespace": "namespaces",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
    "Service": "services",
    "Deployment": "deployments.apps",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
    "Role": "roles.rbac.authorization.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations.admissionregistration.k8s.io",
}


def wrong(values: Any) -> list[str]:
    """Where the values break the schema."""
    found = jsonschema_rs.validator_for(SCHEMA).iter_errors(values)
    return [".".join(map(str, error.instance_path)) for error in found]


def paths(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in tree.items():
        yield from paths(value, f"{above}{name}.") if isinstance(value, dict) and value else [f"{above}{name}"]


def used(path: str, named: set[str]) -> bool:
    """Whether a template names the value, or something that it is in: whole, or as a part of what all programs' pods have."""
    first, *rest = path.split(".")
    wholes = {".".join((first, *rest[:count])) for count in range(1, len(rest) + 1)} or {first}
    return bool(wholes & named) or "part." + ".".join(rest) in named


def test_the_values_are_as_the_schema_says_and_all_of_them_are_used() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert wrong(VALUES) == []
    templates = "".join(path.read_text() for path in (DEPLOY / "chart/templates").rglob("*.*"))
    named = set(re.findall(r"\.Values\.([\w.]+)", templates)) | {f"part.{each}" for each in re.findall(r"\.part\.([\w.]+)", templates)}
    assert [path for path in paths(VALUES) if not used(path, named)] == []
    assert [name for name in named if not name.startswith("part.") and not exists(name)] == []


def exists(name: str) -> bool:
    found: Any = VALUES
    for step in name.split("."):
        if step not in found:
            return False
        found = found[step]
    return True


def test_every_value_has_a_description() -> None:
    def described(schema: dict[str, Any], at: str = "") -> Iterator[str]:
        for name, each in (schema.get("properties") or {}).items():
            yield from described(each, f"{at}{name}.") if "properties" in each else [f"{at}{name}"] if not each.get("description") else []

    assert list(described(SCHEMA)) == []


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("image", "tag", 1.2),
        ("image", "pullPolicy", "Sometimes"),
        ("scheduler", "replicas", -1),
        ("scheduler", "period", "1"),
        ("scheduler", "memory", "half"),
        ("webhooks", "memoryLimit", ""),
        ("scheduler", "conf", {"actions": "allocate"}),
        ("controllers", "enabled", ""),
        ("webhooks", "enabled", "jobs/mutate"),
        ("webhooks", "logLevel", "4"),
        ("webhooks", "replica", 1),
        ("webhooks", "failurePolicy", "Perhaps"),
        ("scheduler", "extraArgs", "--kube-api-qps=50"),
        ("scheduler", "record", {"enabled": True, "sizeMiB": 256, "volume": {}}),
        ("controllers", "tolerations", {"key": "system"}),
        ("canary", "queues", ["Research"]),
        ("monitoring", "interval", "15"),
    ],
)
def test_values_that_would_not_work_are_refused(part: str, name: str, value: object) -> None:
    (place,) = wrong({**VALUES, part: {**VALUES[part], name: value}})
    assert place.startswith((f"{part}.{name}", part))


def test_every_manifest_is_accepted_to_the_letter() -> None:
    """Unknown fields and wrong types are errors."""
    cluster = store()
    for path in sorted((DEPLOY / "manifests").glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text()):
            namespace = item["metadata"].get("namespace", "")
            cluster.create(RESOURCES[item["kind"]], item, namespace, WriteOptions(validation="Strict"))
    with pytest.raises(StatusError, match="unknown field"):
        cluster.create(
            "deployments.apps", {"metadata": {"name": "odd"}, "spec": {"replica": 1}}, "default", WriteOptions(validation="Strict")
        )
