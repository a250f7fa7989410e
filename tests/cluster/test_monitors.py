"""What the chart has for the Prometheus operator is as the operator's own definitions, out of its module, want it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from binaries import module_folder
from chart import RENDERINGS, ROOT, Helm

from pumice.cluster.apiserver import StatusError, WriteOptions
from tests.apiserver.made import store

pytestmark = pytest.mark.nightly
KINDS = {name: f"{name.lower()}s.monitoring.coreos.com" for name in ("PodMonitor", "ServiceMonitor", "PrometheusRule")}


def test_monitors_and_rules_are_accepted_to_the_letter(tmp_path: Path) -> None:
    if not shutil.which("go"):
        pytest.skip("there is no `go` here to load the module with")
    folder = module_folder("github.com/prometheus-operator/prometheus-operator@v0.85.0") / "example/prometheus-operator-crd"
    cluster, helm, strict = store(), Helm(tmp_path), WriteOptions(validation="Strict")
    for kind in KINDS:
        definition = folder / f"monitoring.coreos.com_{kind.lower()}s.yaml"
        cluster.create("customresourcedefinitions.apiextensions.k8s.io", yaml.safe_load(definition.read_text()))
    ours = [item for values in RENDERINGS.values() for item in helm.rendered(values) if item["kind"] in KINDS]
    assert {item["kind"] for item in ours} == KINDS.keys()
    ours += [yaml.safe_load(path.read_text()) for path in (ROOT / "deploy/monitoring").glob("*.yaml")]
    for number, item in enumerate(ours):
        item["metadata"] = {"name": f"a-{number}", "labels": item["metadata"].get("labels")}
        cluster.create(KINDS[item["kind"]], item, "default", strict)
    (part,) = ours[0]["spec"].keys() & {"groups", "podMetricsEndpoints", "endpoints"}
    ours[0]["spec"][part][0]["intervall"] = "15s"
    with pytest.raises(StatusError, match="unknown field"):
        cluster.create(KINDS[ours[0]["kind"]], ours[0] | {"metadata": {"name": "wrong"}}, "default", strict)
