"""Alerts and dashboard ask for what our programs serve, each alert fires when it should, and a runbook says what to do then."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.live.controllers.metrics import ControllerMetrics
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.shadow_comparison import ShadowMetrics

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy/chart/files/alerts.yaml"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/chart/files/dashboard.json").read_text())
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
OPERATIONS = (ROOT / "docs/operations.md").read_text()
WIDTH = 24  #: of Grafana's grid

FAMILIES = {each.name: each for each in (*LiveMetrics().families(), *ControllerMetrics().families(), *ShadowMetrics().declared)}
SCRAPED = {"pod", "namespace", "instance"}  #: labels that Prometheus adds


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]] + [rule["expr"] for rule in RULES]


def used(expression: str) -> set[str]:
    """The families of the metrics that an expression names."""
    names = re.findall(r"\b((?:volcano|pumice)_\w+)", expression)
    return {name.removesuffix("_bucket") if name.removesuffix("_bucket") in FAMILIES else name for name in names}


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_asks_for_metrics_and_labels_that_are_served(expression: str) -> None:
    assert used(expression) and used(expression) - FAMILIES.keys() == set()
    served = {label for name in used(expression) for label in FAMILIES[name].labels} | SCRAPED | {"le"}
    grouped = re.findall(r"\b(?:by|on) \(([\w, ]*)\)", expression)
    selected = re.findall(r"(\w+)=~?\"", expression)
    assert {label.strip() for group in grouped for label in group.split(",")} | set(selected) <= served


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    headings = set(re.findall(r"^## (Pumice\w+)$", OPERATIONS, re.MULTILINE))
    assert {rule["alert"] for rule in RULES} == headings and len(headings) == 9
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert {"summary", "description"} < rule["annotations"].keys()


def test_alerts_fire_when_they_should() -> None:
    """By Prometheus' own program, of Debian's package prometheus."""
    if shutil.which("promtool") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no promtool; .ci/run installs Debian's package prometheus")
        pytest.skip("there is no promtool here; it is in Debian's package prometheus")
    tests = Path(__file__).with_name("alerts.test.yaml")
    done = subprocess.run(["promtool", "test", "rules", tests.name], cwd=tests.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {case["alertname"] for test in yaml.safe_load(tests.read_text())["tests"] for case in test["alert_rule_test"]}
    assert tested == {rule["alert"] for rule in RULES}


def test_the_dashboard_is_one() -> None:
    """Its fields are those of Grafana's model of a dashboard; panels do not overlap; variables are declared, and chosen by."""
    assert DASHBOARD["uid"] == "pumice" and DASHBOARD["schemaVersion"] >= 39
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    taken = [(x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(taken) == len(set(taken)) and max(x for x, _ in taken) < WIDTH
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert {"datasource", "queue", "namespace"} == variables.keys()
    for name in ("queue", "namespace"):
        asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variables[name]["query"]["query"])
        assert asked is not None and asked[2] in FAMILIES[asked[1]].labels
    text = json.dumps(panels())
    assert set(re.findall(r"\$\{?([a-z]+)\b", text)) == variables.keys()
    for panel in panels():
        references = [target["refId"] for target in panel["targets"]]
        assert panel["datasource"]["uid"] == "${datasource}" and len(references) == len(set(references))
