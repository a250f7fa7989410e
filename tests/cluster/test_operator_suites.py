"""The own suites of JobSet, Kueue and KubeRay on `pumice up`: what is listed in `passing` passes.

Suites that expect their project's program find it running outside of the cluster. The others have it in their own process.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from binaries import PROGRAMS, program, why_not
from operators import JOBSET, KUBERAY, NODES, Cluster, Operator, copied, running
from suites import api_server, failed, failed_of_go, listed

pytestmark = pytest.mark.nightly
KUEUE = Operator("kueue", "test/e2e/config/default")
#: what one program does of the image with which Kueue's suite tests
STAGES = ("--stages", str(Path(__file__).parent / "agnhost.yaml"))
#: of two sorts, as the nodes of Kueue's own cluster are
SORTS = """
kubectl get nodes -o name | sed -n 1~2p | xargs -I+ kubectl label + instance-type=on-demand
kubectl get nodes -o name | sed -n 2~2p | xargs -I+ kubectl label + instance-type=spot
"""
#: the least that JobSet takes: the suite does not wait for its webhooks
FIRST = """
until kubectl apply -f- <<< '{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: first}, spec: {replicatedJobs: [{name: a,
template: {spec: {template: {spec: {containers: [{name: c, image: i}], restartPolicy: Never}}}}}]}}'; do sleep 1; done
"""
#: made by Kueue's Makefile
DEFINITIONS = """
cd of-kueue/config/components/crd; mkdir _output; kubectl kustomize . > _output/crds-with-webhooks.yaml
"""


LABELS = " || ".join(f"feature:{each}" for each in ("job", "pod", "deployment", "statefulset", "visibility", "fairsharing", "e2e_v1beta1"))


class Suite(NamedTuple):
    program: str
    operators: tuple[Operator, ...] = ()  #: they run outside
    options: tuple[str, ...] = NODES
    before: str = "true"
    labels: str = ""  #: of the specs: the suite waits for operators of which there are specs


SUITES = (
    Suite("jobset-e2e", (JOBSET,), before=FIRST),
    Suite("kueue-e2e", (KUEUE,), (*NODES, *STAGES), SORTS, LABELS),
    Suite("kueue-scheduler", before=DEFINITIONS),
    Suite("kueue-core", before=DEFINITIONS),
)


def built(name: str) -> tuple[Path, list[str]]:
    """A suite, and what passes of it."""
    if missing := why_not([name, "kubectl"]):
        pytest.skip(missing)
    return program(name), listed(f"passing/{name}.txt")


def place(cluster: Cluster, suite: str) -> Path:
    """The folder in which a suite expects to be run. It finds other files of its module from there."""
    return copied(cluster, suite) / PROGRAMS[suite].package


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.program)
def test_what_has_passed_passes(suite: Suite, tmp_path: Path) -> None:
    tests, passing = built(suite.program)
    with running(tmp_path, *suite.operators, options=suite.options) as cluster:
        where = place(cluster, suite.program)
        cluster.shell(suite.before)
        environment = cluster.environment | {"USE_EXISTING_CLUSTER": "true"}
        flags = {"ginkgo.label-filter": suite.labels} if suite.labels else {}
        assert not failed(tests, passing, where, environment, **flags)


def test_what_has_passed_of_kuberays_controllers_passes(tmp_path: Path) -> None:
    """They play the kubelets, so there is an API server alone. Tests without Ginkgo prepare what some specs need."""
    tests, passing = built("kuberay-controllers")
    cluster = Cluster(tmp_path)
    (tmp_path / ".kube").mkdir()
    with api_server(tmp_path / ".kube" / "config"):
        environment = cluster.environment | {"USE_EXISTING_CLUSTER": "true"}
        assert not failed(tests, passing, place(cluster, "kuberay-controllers"), environment)


def test_what_has_passed_of_kuberays_suite_passes(tmp_path: Path) -> None:
    tests, passing = built("kuberay-e2e")
    with running(tmp_path, KUBERAY) as cluster:
        cluster.until(lambda: cluster.succeeds("kubectl get rayclusters"))
        assert not failed_of_go(tests, passing, tmp_path, cluster.environment), (tmp_path / "log").read_text(errors="replace")[-20000:]
