"""The chart on two real nodes, and what its users live through, in this order: from its installation to its removal.

The amounts are of a resource that the nodes are said to have (four slots on each), so that the machine's processors decide nothing. Where a
comment gives times, they were measured on two cores; Volcano's are those of its own programs in the same place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.node.images import ROOT, SSH
from tests.node.namespace import Namespace, asked_to_end, bound, ended, exit_codes, job_of, task
from tests.node.node_cluster import NodeCluster

pytestmark = pytest.mark.node
CHART, SYSTEM = ROOT / "deploy/chart", "volcano-system"
SLOT = "example.com/slot"
CONF = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodeorder
"""
VISIT = """
until [ -s /etc/volcano/worker.host ]; do sleep 0.2; done
for host in $(cat /etc/volcano/worker.host); do
  until ssh -o ConnectTimeout=3 "$host" hostname; do sleep 0.5; done
done
"""


@pytest.fixture(scope="module")
def chart(cluster: NodeCluster) -> None:
    """Ready within 12 s."""
    cluster.helm("upgrade", "--install", "volcano", str(CHART), "-n", SYSTEM, "--create-namespace", "--wait", "--timeout=4m")


@pytest.fixture
def volcano(cluster: NodeCluster, chart: None) -> Namespace:
    """Where the three programs are."""
    return Namespace(cluster, SYSTEM)


@pytest.fixture(scope="module")
def evicting(cluster: NodeCluster, chart: None) -> None:
    """Slots on the nodes, and a configuration with preempt and reclaim, by an upgrade of the chart."""
    status = json.dumps({"status": {"capacity": {SLOT: "4"}}})
    for worker in cluster.workers:
        cluster.kubectl("patch", "node", worker.name, "--subresource=status", "-p", status)
    values = cluster.folder / "values.yaml"
    values.write_text(yaml.safe_dump({"scheduler": {"conf": CONF}}))
    cluster.helm("upgrade", "volcano", str(CHART), "-n", SYSTEM, "-f", str(values), "--wait", "--timeout=4m")


def test_installed_it_is_ready_without_a_restart_and_refuses_a_wrong_job(
    cluster: NodeCluster, volcano: Namespace, namespace: Namespace
) -> None:
    cluster.helm("test", "volcano", "-n", SYSTEM)
    pods = volcano.get("pods")
    assert len(pods) == 3
    for name, pod in pods.items():
        (status,) = pod["status"]["containerStatuses"]
        assert (status["ready"], status["restartCount"]) == (True, 0), name
        log = volcano.kubectl("logs", name)
        assert not re.search(r"\b403\b|forbidden|Traceback", log), log
    assert "default" in namespace.get("queues.scheduling.volcano.sh"), "ready is who has the queues, which webhooks must admit"
    with pytest.raises(AssertionError, match="denied the request"):
        namespace.job("wrong", task("w", 1), minAvailable=2)
    namespace.job("right", task("w", 1, "exit 0"))
    namespace.until_phase("right", "Completed")


def test_the_master_of_a_gang_reaches_both_workers_by_ssh(volcano: Namespace, namespace: Namespace) -> None:
    """10 s from submission to completion."""
    server = "mkdir -p /run/sshd && exec /usr/sbin/sshd -D"
    plugins: dict[str, list[str]] = {"ssh": [], "svc": [], "env": []}
    ends = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    master = task("master", 1, "env; " + VISIT, image=SSH, policies=ends)
    namespace.job("mpi", master, task("worker", 2, server, image=SSH), plugins=plugins)
    namespace.until_phase("mpi", "Completed")
    said = namespace.kubectl("logs", "mpi-master-0").splitlines()
    assert {"mpi-worker-0", "mpi-worker-1", "VC_TASK_INDEX=0", "VC_WORKER_NUM=2"} <= set(said)


@pytest.mark.usefixtures("evicting")
def test_a_preemptor_is_bound_when_its_slow_victim_has_ended(namespace: Namespace) -> None:
    """The victim needs 12 of the 20 s that it has. The preemptor is bound in the second in which it ends: as with Volcano."""
    classes(namespace, low=1, high=100)
    slow = "trap 'sleep 12; exit 0' TERM; while :; do sleep 0.2; done"
    namespace.job("victim", task("w", 2, slow, asks={SLOT: 4}, terminationGracePeriodSeconds=20), minAvailable=1, priorityClassName="low")
    namespace.until_phase("victim", "Running")
    running(namespace, "victim", 2)
    with namespace.history() as history:
        namespace.job("preemptor", task("w", 1, asks={SLOT: 4}), priorityClassName="high")
        namespace.until_phase("preemptor", "Running")
        victim = uid_of_evicted(history.changes())
        assert history.first(victim, ended) < history.first("preemptor", bound)
        assert exit_codes([pod for _, pod in history.changes() if pod["metadata"]["uid"] == victim]) == {0}


@pytest.mark.usefixtures("evicting")
def test_a_queue_gets_back_its_share_from_one_that_ignores_sigterm(namespace: Namespace) -> None:
    """The victim is killed when its 5 s are over, and its place is taken in the same second."""
    stubborn = "trap '' TERM; while :; do sleep 0.2; done"
    with queues(namespace, "lender", "owner"), namespace.history() as history:
        namespace.job("victim", task("w", 2, stubborn, asks={SLOT: 4}), minAvailable=1, queue="lender")
        running(namespace, "victim", 2)
        namespace.job("owner", task("w", 1, asks={SLOT: 4}), queue="owner")
        namespace.until_phase("owner", "Running")
        victim = uid_of_evicted(history.changes())
        assert history.first(victim, ended) < history.first("owner", bound)
        assert exit_codes([pod for _, pod in history.changes() if pod["metadata"]["uid"] == victim]) == {137}


@pytest.mark.usefixtures("evicting")
def test_a_scheduler_that_is_killed_while_it_binds_a_gang_binds_the_rest_after_its_restart(
    cluster: NodeCluster, volcano: Namespace, namespace: Namespace
) -> None:
    """Sixty containers run 40 s after their submission, most of it spent by the kubelets."""
    (scheduler,) = scheduler_pods(volcano)
    with namespace.history() as history:
        namespace.job("gang", task("w", 60))
        namespace.until(lambda: any(bound(*change) for change in history.changes()), "the first bind")
        (status,) = scheduler["status"]["containerStatuses"]
        cluster.sandbox.kill_container(status["containerID"].rpartition("/")[2])
        namespace.until_phase("gang", "Running")
        running(namespace, "gang", 60)
        placed = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for _, pod in history.changes() if bound("", pod)}
        assert len(placed) == 60, "no pod was made twice"
    (again,) = scheduler_pods(volcano)
    (status,) = again["status"]["containerStatuses"]
    assert (again["metadata"]["uid"], status["restartCount"]) == (scheduler["metadata"]["uid"], 1)


@pytest.mark.usefixtures("chart")
def test_a_job_goes_on_elsewhere_when_its_node_is_lost_and_the_node_is_used_again(cluster: NodeCluster, namespace: Namespace) -> None:
    """20 s until the node is missed, 15 s that its pods may be missing, and at once when the node is said to be out of service."""
    first, lost = cluster.workers
    out_of_service = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    there = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [lost.name]}]}]
    rather_there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there[0]}]}}
    namespace.job("mobile", task("w", 1, affinity=rather_there))
    running(namespace, "mobile", 1)
    before = namespace.get("pods", "mobile-w-0")
    assert before["spec"]["nodeName"] == lost.name
    assert lost.kubelet is not None
    lost.kubelet.kill()
    try:
        cluster.kubectl("wait", "--for=condition=Ready=unknown", f"node/{lost.name}", "--timeout=90s")
        namespace.until(lambda: asked_to_end("", namespace.get("pods", "mobile-w-0")), "the eviction of the pod")
        cluster.kubectl("taint", "node", lost.name, out_of_service)
        namespace.until(lambda: uid_of(namespace, "mobile-w-0") not in ("", before["metadata"]["uid"]), "a new pod")
        running(namespace, "mobile", 1)
        assert namespace.get("pods", "mobile-w-0")["spec"]["nodeName"] == first.name
    finally:
        lost.start_kubelet()
        cluster.kubectl("wait", "--for=condition=Ready", f"node/{lost.name}", "--timeout=90s")
        cluster.kubectl("taint", "node", lost.name, f"{out_of_service}-")
    only_there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": there}}}
    namespace.job("again", task("w", 1, affinity=only_there))
    running(namespace, "again", 1)


def test_uninstalled_it_leaves_what_is_written_and_hinders_nobody(cluster: NodeCluster, volcano: Namespace, namespace: Namespace) -> None:
    """What remains is what docs and notes of the chart say. A Job can be made and deleted, though nothing acts on it."""
    namespace.job("left", task("w", 1))
    running(namespace, "left", 1)
    cluster.helm("uninstall", "volcano", "-n", SYSTEM, "--wait", "--timeout=4m")
    volcano.until(lambda: not volcano.get("pods"), "the end of the programs")
    assert remains(cluster) == REMAINS
    assert not any(lease["spec"].get("holderIdentity") for lease in volcano.get("leases").values()), "whoever comes next leads at once"
    namespace.job("after", task("w", 1))
    namespace.kubectl("delete", "jobs.batch.volcano.sh", "left", "after", "--timeout=60s")


def test_what_kubectl_has_applied_it_deletes_whole(cluster: NodeCluster, volcano: Namespace, namespace: Namespace) -> None:
    """The manifests in their own order, and the namespace with them: no webhook is left that nobody answers."""
    folder = str(ROOT / "deploy/manifests")
    cluster.kubectl("apply", "-f", folder)
    volcano.kubectl("rollout", "status", "deployment", "--timeout=120s")
    namespace.until(lambda: lets_in(namespace), "a way to the webhooks")
    namespace.job("left", task("w", 1))
    running(namespace, "left", 1)
    cluster.kubectl("delete", "-f", folder, "--timeout=4m")
    assert remains(cluster) == {"queue.scheduling.volcano.sh/default", "queue.scheduling.volcano.sh/root"}
    namespace.job("after", task("w", 1))
    namespace.kubectl("delete", "jobs.batch.volcano.sh", "left", "after", "--timeout=60s")


#: besides the definitions: what the chart's notes say
REMAINS = {
    "lease.coordination.k8s.io/vc-controller-manager",
    "lease.coordination.k8s.io/volcano",
    "queue.scheduling.volcano.sh/default",
    "queue.scheduling.volcano.sh/root",
    "secret/volcano-admission-secret",
    "serviceaccount/volcano-controllers",
    "serviceaccount/volcano-scheduler",
    *(
        f"{kind}.rbac.authorization.k8s.io/volcano-{name}-leases"
        for kind in ("role", "rolebinding")
        for name in ("controllers", "scheduler")
    ),
}
WIDE = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,queues.scheduling.volcano.sh"
OWN = "all,configmaps,secrets,leases,serviceaccounts,roles,rolebindings,networkpolicies"


def remains(cluster: NodeCluster) -> set[str]:
    """Names of all kinds that programs or chart make."""
    wide = cluster.kubectl("get", WIDE, "-o", "name").split()
    own = cluster.kubectl("-n", SYSTEM, "get", OWN, "-o", "name").split()
    kubernetes_own = re.compile(r"system:|/(cluster-)?admin$|/edit$|/view$|kube-root-ca|serviceaccount/default")
    return {name for name in (*wide, *own) if not kubernetes_own.search(name)}


# ---- what the stories share


def lets_in(namespace: Namespace) -> bool:
    """Whether a job would be let in now. The nodes' proxies learn of a ready pod a moment after `rollout status` does."""
    try:
        namespace.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job_of("tried", task("w", 1))))
    except AssertionError:
        return False
    return True


def running(namespace: Namespace, job: str, pods: int) -> None:
    def enough() -> bool:
        found = [pod for name, pod in namespace.get("pods").items() if name.startswith(job)]
        return sum(pod["status"].get("phase") == "Running" and not asked_to_end("", pod) for pod in found) == pods

    namespace.until(enough, f"{pods} running pods of {job}")


def uid_of_evicted(changes: list[tuple[str, dict[str, object]]]) -> str:
    (uid,) = {pod["metadata"]["uid"] for kind, pod in changes if asked_to_end(kind, pod)}  # type: ignore[index]
    return uid


def uid_of(namespace: Namespace, pod: str) -> str:
    """Empty if there is none of that name."""
    found = namespace.get("pods").get(pod)
    return found["metadata"]["uid"] if found else ""


def scheduler_pods(volcano: Namespace) -> list[dict[str, object]]:
    return [pod for name, pod in volcano.get("pods").items() if name.startswith("volcano-scheduler")]


def classes(namespace: Namespace, **values: int) -> None:
    for name, value in values.items():
        namespace.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})


@contextmanager
def queues(namespace: Namespace, *names: str) -> Iterator[None]:
    for name in names:
        spec = {"reclaimable": True, "deserved": {SLOT: "4"}}
        namespace.apply({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec})
    yield
    namespace.kubectl("delete", "jobs.batch.volcano.sh", "--all")
    namespace.kubectl("delete", "queues.scheduling.volcano.sh", *names)
