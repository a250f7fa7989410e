"""Runs from the cluster's present: what they begin with, what they are decided by, who may begin one, and the view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from pumice.cli.up_options import policy_of
from pumice.page.policy import policy_fields, written
from pumice.page.simulations import beginning
from tests.page.desk import Town, town
from tests.page.tab import Tab

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def configuration(tmp_path: Path, text: str) -> str:
    path = tmp_path / "tried.conf"
    path.write_text(text)
    return str(path)


RICH = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: gang
    enableJobReady: false
  - name: priority
- plugins:
  - name: drf
    enableHierarchy: true
  - name: binpack
    arguments: {binpack.weight: 7, binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 3}
  - name: nodeorder
    arguments: {leastrequested.weight: 0}
configurations:
- name: preempt
  arguments: {enableTopologyAwarePreemption: true}
"""


SWITCHED = """\
actions: "allocate"
tiers:
- plugins:
  - {name: gang, enablePreemptable: false}
  - {name: capacity, enablePreemptable: false, enabledClusterOrder: true}
"""


@pytest.mark.parametrize("text", [RICH, SWITCHED, Path("examples/run.conf").read_text()])
def test_a_policy_written_anew_means_the_same(tmp_path: Path, text: str) -> None:
    policy = policy_of([configuration(tmp_path, text)])
    again = policy_of([configuration(tmp_path, written(policy))])
    assert policy_fields(again) == policy_fields(policy)
    assert again.tiers == policy.tiers


def pod(name: str, phase: str, group: str = "", **annotations: str) -> dict[str, Any]:
    status = {"phase": phase} | ({"startTime": "2025-12-31T23:58:20Z"} if phase == "Running" else {})
    marks = {key.replace("_", "-"): value for key, value in annotations.items()} | (
        {"scheduling.k8s.io/group-name": group} if group else {}
    )
    metadata = {"name": name, "creationTimestamp": "2025-12-31T20:00:00Z", "annotations": marks}
    return {"kind": "Pod", "metadata": metadata, "status": status}


def test_what_runs_comes_first_and_runs_as_long_as_it_has_left() -> None:
    says = {"pumice.io/run-seconds": "300"}
    objects = [
        pod("waits", "Pending", **{"pumice.io/run-seconds": "5m"}),
        pod("runs", "Running", **says),
        pod("silent", "Running"),
        pod("over", "Succeeded"),
    ]
    found = {obj["metadata"]["name"]: obj["metadata"]["annotations"]["pumice.io/run-time"] for obj in beginning(objects, NOW, 600)}
    assert found == {"runs": "200s", "silent": "500s", "waits": "300s"}
    assert list(found)[-1] == "waits"


def test_everybody_comes_now_and_groups_only_with_pods() -> None:
    group = {"kind": "PodGroup", "metadata": {"name": "g", "creationTimestamp": "2025-12-31T20:00:00Z"}}
    empty = {"kind": "PodGroup", "metadata": {"name": "empty", "creationTimestamp": "2025-12-31T20:00:00Z"}}
    secret = {"kind": "Secret", "metadata": {"name": "s"}}
    found = beginning([group, empty, secret, pod("p", "Pending", "g")], NOW, 600)
    assert [(obj["metadata"]["name"], obj["metadata"]["creationTimestamp"]) for obj in found] == [
        ("g", "2026-01-01T00:00:00Z"),
        ("p", "2026-01-01T00:00:00Z"),
    ]


@pytest.fixture(scope="module")
def place() -> Iterator[Town]:
    with town() as made:
        yield made


@pytest.mark.page
def test_other_weights_are_tried_from_the_present(place: Town, tab: Tab) -> None:
    tab.page.goto(place.acting_url)
    tab.page.get_by_role("button", name="Start a gang").click()
    tab.page.wait_for_selector("a.node[aria-label^='tour-1: 8 of 8 GPUs']")
    tab.page.get_by_role("button", name="Close").click()
    tab.page.goto(f"{place.url}#/simulate")
    text = tab.page.get_by_label("Configuration")
    expect(text).to_have_value(written(place.cluster.scheduler.policy))
    run = tab.page.get_by_role("button", name="Run it from here")
    run.click()
    tab.page.wait_for_selector("a:text-is('report')")
    text.fill(text.input_value().replace("leastrequested.weight: 1", "leastrequested.weight: 0"))
    run.click()
    tab.page.wait_for_selector("tbody tr:nth-child(2) a:text-is('report')")
    tab.page.wait_for_selector("tbody tr:first-child a:text-is('report')")
    expect(tab.page.locator("tbody tr")).to_contain_text(["leastrequested.weight: 0", "nothing"])
    tab.screenshots("runs")
    tab.check_accessible()
    report = tab.page.request.get(f"{place.url}api/report?number=1")
    assert report.headers["content-security-policy"] == "sandbox allow-scripts"
    tab.page.get_by_role("link", name="report").first.click()
    tab.page.wait_for_selector(".chart svg .grid", state="attached")
    tab.page.goto(f"{place.url}#/simulate")
    tab.page.wait_for_selector("tbody tr:nth-child(2)")
    text.fill("actions: [")
    run.click()
    tab.page.wait_for_selector("tbody tr:has-text('scheduler.conf:')")


@pytest.mark.page
def test_who_may_not_export_may_not_simulate(place: Town, tab: Tab) -> None:
    tab.page.goto(f"{place.url}#/simulate")
    tab.page.wait_for_selector("#connection[data-state=live]")
    expect(tab.page.get_by_role("button", name="Run it from here")).to_be_hidden()
    answer = tab.page.request.post(f"{place.url}api/simulate", data={"configuration": ""})
    assert answer.status == 401
