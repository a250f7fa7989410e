"""The commands: what they read, what they refuse, what programs get, their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.api.errors import InputError
from pumice.cli.main import cli

CLUSTER = str(Path(__file__).parents[2] / "examples/answers.yaml")
JOB = str(Path(__file__).parents[2] / "examples/job.yaml")


def type_in(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize("command", [("why", "job/train"), ("whatif", "job/train"), ("whatif", "--drain", "n1"), ("lint",)])
def test_programs_get_the_same_answer_as_json(command: tuple[str, ...]) -> None:
    assert json.loads(type_in(*command, "-f", CLUSTER, "-o", "json").stdout)


def test_a_remedy_is_a_change_with_its_kind() -> None:
    answer = json.loads(type_in("why", "job/train", "-f", CLUSTER, "-o", "json").stdout)
    assert answer["headline"]["because"] == "gang"
    assert answer["headline"]["remedy"] == [{"change": "room", "node": "n1", "amounts": {"cpu": "2"}}]


@pytest.mark.parametrize(
    ("subject", "refusal"),
    [
        ("train", '"train" is no subject; write one of job/NAME, pod/NAME, podgroup/NAME, queue/NAME, node/NAME, or NAMESPACE/NAME'),
        ("job/trian", "there is no job default/trian; did you mean"),
        ("queue/reserch", "there is no queue reserch; did you mean"),
        ("pod/team/x", "there is no pod team/x"),
        ("job/", '"job/" is no subject'),
        ("job/team/", '"job/team/" is no subject'),
    ],
)
def test_what_is_no_subject_is_refused(subject: str, refusal: str) -> None:
    result = type_in("why", subject, "-f", CLUSTER)
    assert isinstance(result.exception, InputError)
    assert refusal in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("whatif", "node/n1"), '"node/n1" is no subject; write one of job/NAME, pod/NAME, podgroup/NAME'),
        (("whatif", "queue/research"), '"queue/research" is no subject'),
        (("whatif", "--queue", "research.weight=--5"), '--queue: "--5" is not a whole number'),
        (("whatif", "--queue", "research.weight=²"), '--queue: "²" is not a whole number'),
        (("whatif", "--queue", "research.weight=0"), "--queue: queue research: spec.weight: queue weight must be a positive integer"),
        (("whatif", "--queue", "research.capability.cpu=-1"), '--queue: queue research: spec.capability.cpu: "-1" is negative'),
        (("eta", "--policy", "FIFO"), "--policy is for --score alone"),
        (("eta", "--score", "swf:x"), "-f has no effect with --score"),
    ],
)
def test_what_no_question_means_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = type_in(*arguments, "-f", CLUSTER)
    assert result.exit_code and told in result.stderr + str(result.exception)


def test_who_runs_leaves_or_has_ended_is_told_so(tmp_path: Path) -> None:
    before, name, rest = Path(CLUSTER).read_text().partition("metadata: {name: frontend-0")
    path = tmp_path / "cluster.yaml"
    path.write_text(before + name + rest.replace("phase: Running", "phase: Succeeded", 1))
    assert type_in("why", "pod/frontend-0", "-f", str(path)).stdout == "pod/frontend-0 has ended: its pods have ended: 1 Succeeded\n"


def test_a_subject_and_changes_are_two_questions() -> None:
    assert "not both" in type_in("whatif", "job/train", "--drain", "n1", "-f", CLUSTER).stderr
    assert "say what is asked" in type_in("whatif", "-f", CLUSTER).stderr


def test_another_configuration_can_be_tried(tmp_path: Path) -> None:
    conf = tmp_path / "other.conf"
    conf.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: predicates\n')
    told = type_in("whatif", "--conf", str(conf), "-f", CLUSTER).stdout
    assert "podgroup/train   starts            2" in told


def test_another_configuration_is_tried_under_the_rules_of_the_same_release(tmp_path: Path) -> None:
    conf, state = tmp_path / "kube.yaml", tmp_path / "state.yaml"
    conf.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}]\n"
    )
    state.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: m}]}}")
    words = ("whatif", "--conf", str(conf), "-f", str(state))
    assert "feature gate StorageCapacityScoring is off" in str(type_in(*words).exception)
    allowed = type_in(*words, "--kubernetes-version", "1.37", "--feature-gates", "StorageCapacityScoring=true")
    assert allowed.stdout == "The change makes no difference.\n", allowed.output + str(allowed.exception)


def test_lint_and_check_end_with_1_for_what_can_not_work() -> None:
    assert type_in("lint", "-f", CLUSTER).exit_code == 1
    assert type_in("check", "-f", JOB, "--against", CLUSTER).exit_code == 1
    assert type_in("check", "-f", JOB).exit_code == 0
    assert json.loads(type_in("lint", "-f", CLUSTER, "-o", "sarif").stdout)["version"] == "2.1.0"


def test_a_job_is_called_as_its_user_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    owner = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: u, controller: true}"
    path.write_text(
        Path(CLUSTER)
        .read_text()
        .replace("metadata: {name: train}", f"metadata: {{name: train-u, ownerReferences: [{owner}]}}", 1)
        .replace("group-name: train", "group-name: train-u")
    )
    assert type_in("why", "job/train", "-f", str(path)).stdout.startswith("job/train waits: ")
    assert type_in("whatif", "job/train", "-f", str(path)).stdout.startswith("job/train waits: ")


def test_names_are_given_as_to_kubectl(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(Path(CLUSTER).read_text().replace("metadata: {name: t", "metadata: {namespace: team, name: t"))
    told = type_in("why", "job/team/train", "-f", str(path)).stdout
    assert told.startswith("job/team/train waits: ")
    assert type_in("why", "team/train", "-f", str(path)).stdout == type_in("why", "job/train", "-n", "team", "-f", str(path)).stdout == told
    assert type_in("whatif", "job/train", "-n", "team", "-f", str(path)).stdout.startswith("job/team/train waits: ")
    assert type_in("eta", "job/train", "-n", "team", "-f", str(path)).stdout.startswith("job/team/train ")
    assert "podgroup/probe" not in type_in("eta", "-n", "team", "-f", str(path)).stdout
    assert "podgroup/probe" in type_in("eta", "-A", "-f", str(path)).stdout
    assert "podgroup/probe" not in type_in("lint", "-n", "team", "-f", str(path)).stdout
    assert (
        type_in("score", "pod/train-0", "-n", "team", "-f", str(path)).stdout
        == type_in("score", "--pod", "team/train-0", "-f", str(path)).stdout
    )


@pytest.mark.parametrize("command", ["why", "whatif", "eta", "score", "lint"])
def test_the_help_says_how_namespaces_are_named(command: str) -> None:
    help_ = type_in(command, "--help").output
    assert "--namespace" in help_ and ("NAMESPACE/NAME" in help_ or command == "lint")
