"""`pumice get` and `pumice apply` print what kubectl prints."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRule
from tests.cli.terminal import Terminal


def config_map(name: str, data: dict[str, str], **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}


def test_apply_tells_created_configured_and_unchanged(pumice: Terminal) -> None:
    assert pumice.apply(config_map("told", {"a": "1"})) == "configmap/told created\n"
    assert pumice.apply(config_map("told", {"a": "1"})) == "configmap/told unchanged\n"
    assert pumice.apply(config_map("told", {"a": "2"})) == "configmap/told configured\n"
    assert pumice.apply(config_map("told", {"b": "3"})) == "configmap/told configured\n"
    assert yaml.safe_load(pumice("get", "cm", "told", "-o", "yaml"))["data"] == {"b": "3"}


def test_what_the_server_warns_of_is_printed_once_beside_the_output(pumice: Terminal) -> None:
    def warn(review: AdmissionAttributes, world: AdmissionLister) -> None:
        if review.name == "warned":
            review.warnings.append('say "please"')

    pumice.store(lambda store: store.admission.add([AdmissionRule(("configmaps",), ("CREATE", "UPDATE"), validate=warn)]))
    objects = "\n---\n".join(json.dumps(config_map("warned", {"a": text})) for text in "12")
    told = pumice.type("apply", "-f", "-", stdin=objects)
    assert told.stdout == "configmap/warned created\nconfigmap/warned configured\n"
    assert told.stderr == 'Warning: say "please"\n'


def test_apply_takes_over_what_another_program_wrote(pumice: Terminal) -> None:
    pumice("queue", "create", "-n", "taken", "-w", "2")
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "taken"}, "spec": {"weight": 7}}
    assert pumice.apply(queue) == "queue.scheduling.volcano.sh/taken configured\n"


def test_one_apply_brings_a_definition_and_an_object_of_it(pumice: Terminal) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}}
    told = pumice.apply(thing, definition)
    assert told == "customresourcedefinition.apiextensions.k8s.io/things.example.org created\nthing.example.org/t created\n"


def test_yaml_is_read_as_kubectl_reads_it(pumice: Terminal, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: read}\ndata: {time: 12:30, date: 2026-01-01}\n")
    assert pumice("apply", "-f", str(tmp_path)) == "configmap/read created\n"
    (tmp_path / "one.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: read, labels: {on: y}}\n")
    assert "BadRequest" in pumice.refused("apply", "-f", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Pod\nmetadata: {name: p}\n", "apiVersion: is missing"),
        ("- 1\n", "is not an object"),
        ("apiVersion: v1\nkind: Pod\n", "metadata: is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n", "generateName is for create only"),
        ("apiVersion: v9\nkind: Pod\nmetadata: {name: p}\n", 'no matches for kind "Pod" in version "v9"'),
        ("", "no objects found"),
    ],
)
def test_wrong_manifests_are_explained(pumice: Terminal, text: str, told: str) -> None:
    assert told in str(pumice.type("apply", "-f", "-", stdin=text).exception)


def test_a_list_is_a_table_with_the_servers_columns(pumice: Terminal) -> None:
    pumice.apply(config_map("web-1", {"a": "1", "b": "2"}, app="web"), config_map("web-2", {}, app="web"))
    lines = pumice("get", "configmaps", "-l", "app=web").splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "DATA"], ["web-1", "2"], ["web-2", "0"]]
    assert lines[0] == "NAME    DATA   AGE"
    everywhere = pumice("get", "cm", "-A", "-l", "app=web").splitlines()
    assert [line.split()[:2] for line in everywhere] == [["NAMESPACE", "NAME"], ["default", "web-1"], ["default", "web-2"]]


def test_kinds_are_known_by_all_their_names(pumice: Terminal) -> None:
    pumice("queue", "create", "-n", "named")
    for word in ("queue", "queues", "q", "Queue", "queues.scheduling.volcano.sh", "queue.v1beta1.scheduling.volcano.sh"):
        assert pumice("get", word, "named", "-o", "name") == "queue.scheduling.volcano.sh/named\n", word
    assert pumice("get", "queue/named", "namespace/default", "-o", "name") == "queue.scheduling.volcano.sh/named\nnamespace/default\n"
    assert 'doesn\'t have a resource type "qeue"; did you mean "queue"?' in str(pumice.type("get", "qeue").exception)


def test_several_kinds_are_several_tables_with_the_kind_in_the_name(pumice: Terminal) -> None:
    pumice("queue", "create", "-n", "several")
    tables = pumice("get", "namespaces,queues").split("\n\n")
    assert "namespace/default" in tables[0] and "queue.scheduling.volcano.sh/several" in tables[1]


def test_json_yaml_and_wide(pumice: Terminal) -> None:
    pumice.apply(config_map("forms", {"n": "1e6", "y": "y"}))
    one = json.loads(pumice("get", "cm", "forms", "-o", "json"))
    assert (one["kind"], one["data"]) == ("ConfigMap", {"n": "1e6", "y": "y"}) and "managedFields" not in one["metadata"]
    text = pumice("get", "cm", "forms", "-o", "yaml")
    assert text.startswith("apiVersion: v1\ndata:\n  'n': '1e6'\n  'y': 'y'\nkind: ConfigMap\n")
    several = yaml.safe_load(pumice("get", "cm", "-o", "yaml"))
    assert several["kind"] == "List" and several["metadata"] == {"resourceVersion": ""}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    pumice.apply(node)
    assert "INTERNAL-IP" in pumice("get", "node", "n1", "-o", "wide") and "INTERNAL-IP" not in pumice("get", "node", "n1")


def test_nothing_found_is_said_beside_the_output(pumice: Terminal) -> None:
    result = pumice.type("get", "secrets")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No resources found in default namespace.\n")
    assert pumice.refused("get", "pod", "none") == 'Error: from server (NotFound): pods "none" not found\n'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pod/a", "b"), "KIND/NAME"),
        (("pod", "a", "-l", "x=y"), "either by name or by labels"),
        (("pod", "a", "-A"), "in one namespace"),
        (("pod,node", "-w"), "can be watched"),
    ],
)
def test_questions_that_cannot_be_answered_are_explained(pumice: Terminal, arguments: tuple[str, ...], told: str) -> None:
    assert told in str(pumice.type("get", *arguments).exception)


def test_watching_prints_a_row_for_each_change_until_it_is_interrupted(pumice: Terminal) -> None:
    pumice.apply(config_map("watched", {"a": "1"}, watch="me"))
    with pumice.process("get", "cm", "-l", "watch=me", "-w") as process:
        assert process.stdout is not None
        rows = [process.stdout.readline().split()[:2] for _ in range(2)]
        pumice.apply(config_map("watched", {"a": "1", "b": "2"}, watch="me"))
        rows.append(process.stdout.readline().split()[:2])
        pumice.store(lambda store: store.delete("configmaps", "watched", "default"))
        rows.append(process.stdout.readline().split()[:2])
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert rows == [["NAME", "DATA"], ["watched", "1"], ["watched", "2"], ["watched", "2"]]


def test_a_server_that_is_not_there_is_one_line(pumice: Terminal) -> None:
    told = pumice.refused("get", "pods", "-s", "http://127.0.0.1:1", "-k", "")
    assert told.startswith("Error: http://127.0.0.1:1 did not answer:") and told.count("\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(pumice: Terminal, shell: str) -> None:
    script = pumice("completion", shell)
    assert "_PUMICE_COMPLETE" in script and "pumice" in script


def test_completion_knows_commands_and_options(pumice: Terminal) -> None:
    from click.shell_completion import BashComplete

    from pumice.cli.main import cli

    completer = BashComplete(cli, {}, "pumice", "_PUMICE_COMPLETE")
    assert {item.value for item in completer.get_completions(["job"], "s")} == {"suspend"}
    assert "--queue" in {item.value for item in completer.get_completions(["job", "list"], "--")}
