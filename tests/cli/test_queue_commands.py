"""`pumice queue`, `pumice jobflow` and `pumice jobtemplate` do and print what users of vcctl know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.cluster.apiserver import PatchRequest
from tests.cli.terminal import Terminal

QUEUES = "queues.scheduling.volcano.sh"


def stored(pumice: Terminal, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = pumice.store(lambda store: store.find(QUEUES, "", name))
    return found


def _version(item: dict[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])


def last_command(pumice: Terminal) -> dict[str, Any]:
    found: dict[str, Any] = pumice.store(lambda store: max(store.all("commands.bus.volcano.sh"), key=_version))
    return found


def test_a_queue_has_a_life(pumice: Terminal) -> None:
    assert pumice("queue", "create", "-n", "life", "-w", "3") == "queue.scheduling.volcano.sh/life created\n"
    made = stored(pumice, "life")
    assert made is not None and made["spec"]["weight"] == 3
    pumice("queue", "operate", "-n", "life", "-a", "update", "-w", "5")
    changed = stored(pumice, "life")
    assert changed is not None and changed["spec"]["weight"] == 5
    pumice("queue", "delete", "-n", "life")
    assert stored(pumice, "life") is None


@pytest.mark.parametrize(("action", "ordered"), [("open", "OpenQueue"), ("close", "CloseQueue")])
def test_opening_and_closing_are_commands(pumice: Terminal, action: str, ordered: str) -> None:
    pumice("queue", "create", "-n", f"q-{action}")
    pumice("queue", "operate", "-n", f"q-{action}", "-a", action)
    command = last_command(pumice)
    assert (command["action"], command["target"]["kind"], command["target"]["name"]) == (ordered, "Queue", f"q-{action}")


def test_a_queue_made_closed_is_ordered_closed(pumice: Terminal) -> None:
    pumice("queue", "create", "-n", "shut", "-S", "Closed")
    assert last_command(pumice)["target"]["name"] == "shut"


def test_an_update_without_a_weight_is_refused(pumice: Terminal) -> None:
    result = pumice.type("queue", "operate", "-n", "q", "-a", "update")
    assert result.exit_code == 2 and "add -w/--weight" in result.stderr


def test_get_and_list_count_the_podgroups_of_each_phase(pumice: Terminal) -> None:
    pumice("queue", "create", "-n", "test")
    pumice.store(lambda store: store.patch(QUEUES, "test", PatchRequest("merge", {"status": {"state": "Open"}}), "", "status"))
    for number, phase in enumerate(("Inqueue", "Pending", "Pending", "Running", "Completed")):
        pumice.apply(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": f"group-{number}", "namespace": "default"},
                "spec": {"queue": "test", "minMember": 1, "minResources": {"cpu": "500m", "memory": "1Gi"}},
                "status": {"phase": phase},
            }
        )
    assert pumice("queue", "get", "--name", "test") == (
        "Name                     Weight  State   Inqueue Pending Running Unknown Completed\n"
        "test                     1       Open    1       2       1       0       1\n"
    )
    assert "test                     1       Open    1       2       1       0       1" in pumice("queue", "list").splitlines()
    limits = {"deserved": {"cpu": "4"}, "capability": {"cpu": "8"}}
    pumice.store(lambda store: store.patch(QUEUES, "test", PatchRequest("merge", {"spec": limits}), ""))
    pumice.store(
        lambda store: store.patch(
            QUEUES, "test", PatchRequest("merge", {"status": {"allocated": {"cpu": "1", "memory": "0"}}}), "", "status"
        )
    )
    head, row = pumice("queue", "list", "test", "-o", "wide").splitlines()
    assert head.split()[-4:] == ["Used", "Deserved", "Capability", "Waiting"]
    assert row.split()[-4:] == ["cpu=1", "cpu=4", "cpu=8", "cpu=1500m,memory=3Gi"]
    assert pumice("queue", "list", "test", "-o", "name") == "queue.scheduling.volcano.sh/test\n"
    assert pumice("queue", "get", "test") == pumice("queue", "get", "-n", "test")


def test_what_is_not_there_is_said_in_one_line(pumice: Terminal) -> None:
    told = pumice.refused("queue", "get", "-n", "nothing")
    assert told == 'Error: from server (NotFound): queues.scheduling.volcano.sh "nothing" not found\n'


FLOWS = """
apiVersion: flow.volcano.sh/v1alpha1
kind: {kind}
metadata: {{name: a}}
spec: {{}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: {kind}
metadata: {{name: b}}
spec: {{}}
"""


@pytest.mark.parametrize("kind", ["JobFlow", "JobTemplate"])
def test_flows_and_templates_are_made_shown_and_deleted(pumice: Terminal, tmp_path: Path, kind: str) -> None:
    word, file = kind.lower(), tmp_path / "objects.yaml"
    file.write_text(FLOWS.format(kind=kind))
    assert pumice(word, "create", "-f", str(file)) == f"Created {kind}: default/a\nCreated {kind}: default/b\n"
    shown = pumice(word, "list").splitlines()
    assert shown[0].split() == (["Name", "Namespace", "Phase", "Age"] if kind == "JobFlow" else ["Name", "Namespace", "Age"])
    assert [line.split()[:2] for line in shown[1:]] == [["a", "default"], ["b", "default"]]
    assert pumice(word, "get", "-N", "a").splitlines()[1].split()[0] == "a"
    described = pumice(word, "describe")
    assert described.count(f"kind: {kind}") == 2 and "-" * 33 in described and "managedFields" not in described
    assert pumice(word, "describe", "-N", "a", "-o", "json").startswith('{\n    "apiVersion": "flow.volcano.sh/v1alpha1"')
    assert pumice(word, "delete", "-N", "a") == f"Deleted {kind}: default/a\n"
    assert "NotFound" in pumice.refused(word, "delete", "-f", str(file))
    assert pumice(word, "delete", "-N", "b") == f"Deleted {kind}: default/b\n"
    assert pumice(word, "list") == "No resources found\n"


def test_a_file_of_another_kind_is_refused(pumice: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(FLOWS.format(kind="JobTemplate"))
    assert "is a JobTemplate, not a JobFlow" in str(pumice.type("jobflow", "create", "-f", str(file)).exception)
