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
}


def wrong(values: Any) -> list[str]:
    """Where the values break the schema."""
    found = jsonschema_rs.validator_for(SCHEMA).iter_errors(values)
    return [".".join(map(str, error.instance_path)) for error in found]


def paths(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in tree.items():
        yield from paths(value, f"{above}{name}.") if isinstance(value, dict) else [f"{above}{name}"]


def test_the_values_are_as_the_schema_says_and_all_of_them_are_used() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert wrong(VALUES) == []
    templates = "".join(path.read_text() for path in (DEPLOY / "chart/templates").glob("*.yaml"))
    assert set(re.findall(r"\.Values\.([\w.]+)", templates)) == set(paths(VALUES))


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
    ],
)
def test_values_that_would_not_work_are_refused(part: str, name: str, value: object) -> None:
    (place,) = wrong({**VALUES, part: {**VALUES[part], name: value}})
    assert place in (f"{part}.{name}", part)


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
