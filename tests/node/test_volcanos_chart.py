"""Volcano's own chart with only its images replaced, and from there the way of docs/from-volcano.md: shadow, canary, the whole, and back.

The commands are the guide's. The charts are given: VOLCANO_CHART=FOLDER, or several folders with `:` between them, of which the last goes
the whole way. The product runs under Volcano's manifests where the guide means Volcano, of which no image can be had here: objects, names
and ownership are the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest

from tests.node.images import ROOT, TARGETS, VERSION
from tests.node.namespace import Namespace, task
from tests.node.node_cluster import NodeCluster

pytestmark = pytest.mark.node
CHART, SYSTEM, TRIAL = str(ROOT / "deploy/chart"), "volcano-system", "pumice-trial"
NAMES = {"scheduler": "scheduler", "controllers": "controller", "webhooks": "admission"}
REPLACED = [
    f"basic.image_tag_version={VERSION}",
    "basic.image_pull_policy=IfNotPresent",
    *(f"basic.{NAMES[target]}_image_name={image.removeprefix('docker.io/').partition(':')[0]}" for target, image in TARGETS.items()),
]


CHARTS = os.environ.get("VOLCANO_CHART", "").split(":")


@pytest.fixture(scope="module")
def volcano(cluster: NodeCluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """Volcano's release, by one of the charts."""
    chart = request.param
    if not chart:
        pytest.skip("VOLCANO_CHART is not set: the folder of Volcano's chart")
    namespace = Namespace(cluster, SYSTEM)
    left = [name for name in cluster.kubectl("get", "crd", "-o", "name").split() if name.endswith(".volcano.sh")]
    if left:
        cluster.kubectl("delete", *left, "--timeout=120s")
    install(cluster, "install", "volcano", chart, "--create-namespace", *sets(REPLACED))
    (cluster.folder / "volcano-scheduler.conf").write_text(
        namespace.kubectl("get", "configmap", "volcano-scheduler-configmap", "-o", r"jsonpath={.data.volcano-scheduler\.conf}")
    )
    yield namespace
    cluster.helm("uninstall", "volcano", "-n", SYSTEM, "--wait", "--timeout=4m")


def install(cluster: NodeCluster, *arguments: str, namespace: str = SYSTEM) -> None:
    cluster.helm(*arguments, "-n", namespace, "--wait", "--wait-for-jobs", "--timeout=4m")


def sets(values: list[str]) -> list[str]:
    return [word for value in values for word in ("--set", value)]


def conf(cluster: NodeCluster) -> list[str]:
    return ["--set-file", f"scheduler.conf={cluster.folder / 'volcano-scheduler.conf'}"]


@pytest.mark.parametrize("volcano", CHARTS, indirect=True)
def test_volcanos_chart_works_with_only_its_images_replaced(volcano: Namespace, namespace: Namespace) -> None:
    pods = {name: pod for name, pod in volcano.get("pods").items() if pod["status"]["phase"] != "Succeeded"}
    assert len(pods) == 3
    for name, pod in pods.items():
        (status,) = pod["status"]["containerStatuses"]
        assert (status["ready"], status["restartCount"]) == (True, 0), name
        log = volcano.kubectl("logs", name)
        assert not re.search(r"level=(warn|error).*\b403\b|Traceback", log), log  # what Volcano's role does not allow is done without
    with pytest.raises(AssertionError, match="denied the request"):
        namespace.job("wrong", task("w", 1), minAvailable=2)
    namespace.job("right", task("w", 2, "exit 0"))
    namespace.until_phase("right", "Completed")


@pytest.mark.parametrize("volcano", CHARTS[-1:], indirect=True)
def test_a_shadow_writes_nothing_and_leaves_nothing(cluster: NodeCluster, volcano: Namespace, namespace: Namespace) -> None:
    before = objects(cluster)
    install(cluster, "install", "pumice", CHART, "--create-namespace", "--set", "mode=shadow", *conf(cluster), namespace=TRIAL)
    trial = Namespace(cluster, TRIAL)
    (name,) = trial.get("pods")
    namespace.job("both", task("w", 2))
    namespace.until_phase("both", "Running")
    compared = json.loads(trial.kubectl("exec", name, "--", "python", "-c", FETCH.format("debug/shadow")))
    assert compared, "what was compared can be read"
    assert not re.search(r"\b403\b|forbidden|Traceback", trial.kubectl("logs", name))
    cluster.helm("test", "pumice", "-n", TRIAL)
    cluster.helm("uninstall", "pumice", "-n", TRIAL, "--wait")
    trial.until(lambda: not trial.get("pods"), "the end of its pods, that of the test too")
    cluster.kubectl("delete", "namespace", TRIAL, "--timeout=60s")
    assert objects(cluster) == before


FETCH = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/{}').read().decode())"


@pytest.mark.parametrize("volcano", CHARTS[-1:], indirect=True)
def test_a_canary_schedules_its_share_and_the_whole_takes_over_what_runs(
    cluster: NodeCluster, volcano: Namespace, namespace: Namespace
) -> None:
    namespace.apply(
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"}, "spec": {"weight": 1}}
    )
    install(cluster, "install", "pumice", CHART, "--create-namespace", "--set", "mode=shadow", *conf(cluster), namespace=TRIAL)
    share = sets(["mode=canary", "canary.queues={research}"])
    install(cluster, "upgrade", "pumice", CHART, "--reuse-values", *share, namespace=TRIAL)
    namespace.job("ours", task("w", 2), schedulerName="pumice", queue="research")
    namespace.job("theirs", task("w", 2))
    for job in ("ours", "theirs"):
        namespace.until_phase(job, "Running")
    scheduled = json.loads(namespace.kubectl("get", "events", "--field-selector=reason=Scheduled", "-o", "json"))["items"]
    by = {event["involvedObject"]["name"].partition("-")[0]: event["source"]["component"] for event in scheduled}
    assert by == {"ours": "pumice", "theirs": "volcano"}
    assert "of queue/research alone" in Namespace(cluster, TRIAL).kubectl("logs", "deployment/pumice-scheduler")
    before = {name: pod["metadata"]["uid"] for name, pod in namespace.get("pods").items()}

    cluster.helm("uninstall", "pumice", "-n", TRIAL, "--wait")
    values = cluster.folder / "volcano-values.yaml"
    values.write_text(cluster.helm("get", "values", "volcano", "-n", SYSTEM, "-o", "yaml"))
    definitions = [name for name in cluster.kubectl("get", "crd", "-o", "name").split() if name.endswith(".volcano.sh")]
    cluster.kubectl("annotate", *definitions, "helm.sh/resource-policy=keep")
    install(cluster, "upgrade", "volcano", CHART, *conf(cluster))
    cluster.helm("test", "volcano", "-n", SYSTEM)
    assert {name: pod["metadata"]["uid"] for name, pod in namespace.get("pods").items()} == before, "what ran runs"
    namespace.job("whole", task("w", 2))
    namespace.until_phase("whole", "Running")

    install(cluster, "upgrade", "volcano", CHARTS[-1], "-f", str(values))
    namespace.job("back", task("w", 2))
    namespace.until_phase("back", "Running")
    assert before.items() <= {name: pod["metadata"]["uid"] for name, pod in namespace.get("pods").items()}.items()
    namespace.kubectl("delete", "jobs.batch.volcano.sh", "--all", "--timeout=60s")
    namespace.kubectl("delete", "queues.scheduling.volcano.sh", "research", "--timeout=60s")


def objects(cluster: NodeCluster) -> set[str]:
    """Names of what a chart creates outside its namespace."""
    kinds = "namespaces,clusterroles,clusterrolebindings,crd,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    return set(cluster.kubectl("get", kinds, "-o", "name").split())
