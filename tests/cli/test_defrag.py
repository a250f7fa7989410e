"""`pumice defrag` on a whole embedded cluster: the plan alone writes nothing; carried out, pods gather, and it stops where it must."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import cli
from tests.embedded.cluster import JOBS, PODS, Api, cluster, until
from tests.embedded.test_stories import running, vcjob

NODES = "/api/v1/nodes"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def api() -> Iterator[Api]:
    """Two nodes in use, each with a job of one pod."""
    with cluster("2x8cpu") as api:
        for name in ("a", "b"):
            api.create(JOBS, vcjob(name, 1))
            until(lambda name=name: running(api.pods_of(name)))
        assert len(places(api)) == 2, "the built-in configuration spreads them"
        yield api


def places(api: Api) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in running(api.items(PODS))}


def cordoned(api: Api) -> list[str]:
    return [node["metadata"]["name"] for node in api.items(NODES) if node["spec"].get("unschedulable")]


def defrag(api: Api, tmp_path: Path, *options: str) -> Result:
    host, port = api._address
    user = {"name": "u", "user": {"token": api._head["Authorization"].partition(" ")[2]}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [user],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    return CliRunner().invoke(cli, ["defrag", "--kubeconfig", str(file), "--minimum-run-time", "0s", "--patience", "60", *options])


def test_the_plan_writes_nothing_and_carried_out_the_pods_gather(api: Api, tmp_path: Path) -> None:
    before = [pod["metadata"]["uid"] for pod in api.items(PODS)]
    planned = defrag(api, tmp_path, "-o", "json")
    plan = json.loads(planned.stdout)
    assert [len(step["moves"]) for step in plan["steps"]] == [1] and plan["after"]["emptyNodes"] == 1
    assert [pod["metadata"]["uid"] for pod in api.items(PODS)] == before
    done = defrag(api, tmp_path, "--apply")
    assert done.exit_code == 0, done.output
    assert "(1 of 1): 1 pod runs elsewhere" in done.stdout
    assert len(running(api.items(PODS))) == 2 and len(places(api)) == 1
    assert cordoned(api) == []
    assert defrag(api, tmp_path).stdout == "No node can be emptied by moves.\n"


def budget(api: Api, name: str, job: str, least: int) -> None:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"volcano.sh/job-name": job}}}
    api.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    until(lambda: api.get(f"{BUDGETS}/{name}").get("status", {}).get("expectedPods"))


def test_the_plan_keeps_budgets(api: Api, tmp_path: Path) -> None:
    for job in ("a", "b"):
        budget(api, job, job, 1)
    assert defrag(api, tmp_path).stdout == "No node can be emptied by moves.\n"


def test_it_stops_where_an_eviction_is_refused_and_no_node_stays_cordoned(api: Api, tmp_path: Path) -> None:
    """The API server evicts no pod with two budgets, whatever they allow."""
    for job in ("a", "b"):
        for name in ("one", "two"):
            budget(api, f"{job}-{name}", job, 0)
    stopped = defrag(api, tmp_path, "--apply")
    assert stopped.exit_code == 1 and "is not evicted: This pod has more than one PodDisruptionBudget" in stopped.stderr
    assert len(places(api)) == 2 and cordoned(api) == []


def test_it_stops_where_the_scheduler_spreads_pods_over_empty_nodes(tmp_path: Path) -> None:
    with cluster("3x8cpu") as api:
        for name in ("a", "b"):
            api.create(JOBS, vcjob(name, 1))
            until(lambda name=name: running(api.pods_of(name)))
        stopped = defrag(api, tmp_path, "--apply")
        assert stopped.exit_code == 1 and "which was to stay empty" in stopped.stderr
        assert cordoned(api) == []


def test_files_are_planned_but_nothing_is_applied_to_them(tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 8, pods: 10}}\n")
    assert CliRunner().invoke(cli, ["defrag", "-f", str(file)]).stdout == "No node can be emptied by moves.\n"
    refused = CliRunner().invoke(cli, ["defrag", "-f", str(file), "--apply"])
    assert refused.exit_code == 2 and "--apply is for a live cluster" in refused.output


@pytest.mark.parametrize(
    "words, message",
    [
        (("--minimum-run-time", "soon"), "Invalid value for '--minimum-run-time': \"soon\" is not a duration"),
        (("--maximum-lost-work=-5m",), "Invalid value for '--maximum-lost-work': \"-5m\" is out of range"),
        (("--protect-queue", "tema"), '--protect-queue: there is no queue "tema"; did you mean "team"?'),
    ],
)
def test_what_would_protect_nobody_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: team}\n")
    found = CliRunner().invoke(cli, ["defrag", "-f", str(file), *words])
    assert found.exit_code and message in (found.output + str(found.exception))
    assert CliRunner().invoke(cli, ["defrag", "-f", str(file), "--protect-queue", "team", "--maximum-lost-work", "30m"]).exit_code == 0
