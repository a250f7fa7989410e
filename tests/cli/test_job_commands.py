"""`pumice job` and `pumice pod` do and print what users of vcctl know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pumice.cluster.apiserver import PatchRequest, Store
from tests.cli.terminal import Terminal

JOBS = "jobs.batch.volcano.sh"


def stored(pumice: Terminal, name: str, namespace: str = "default") -> dict[str, Any]:
    found: dict[str, Any] = pumice.store(lambda store: store.find(JOBS, namespace, name))
    return found


def commands(pumice: Terminal) -> list[dict[str, Any]]:
    def take(store: Store) -> list[dict[str, Any]]:
        found = list(store.all("commands.bus.volcano.sh"))
        for command in found:
            store.delete("commands.bus.volcano.sh", command["metadata"]["name"], command["metadata"]["namespace"])
        return found

    found: list[dict[str, Any]] = pumice.store(take)
    return found


def test_run_makes_a_job_of_flags(pumice: Terminal) -> None:
    flags = ["-N", "flags", "-i", "nginx", "-m", "2", "-r", "3", "-S", "mine", "-q", "q1", "-R", "cpu=2,memory=1Gi", "-L", "cpu=4"]
    assert pumice("job", "run", *flags, "-c", "sh -c 'sleep 1'") == "run job flags successfully\n"
    spec = stored(pumice, "flags")["spec"]
    task = spec["tasks"][0]
    container = task["template"]["spec"]["containers"][0]
    assert (spec["minAvailable"], spec["schedulerName"], spec["queue"], task["replicas"]) == (2, "mine", "q1", 3)
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4"}}
    assert (container["image"], container["command"]) == ("nginx", ["sh", "-c", "sleep 1"])


def test_run_takes_a_file_and_the_namespace_of_the_command_line(pumice: Terminal, tmp_path: Path) -> None:
    pumice.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    file = tmp_path / "job.yaml"
    file.write_text("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: filed}\nspec: {minAvailable: 1}\n")
    assert pumice("job", "run", "-f", str(file), "-n", "team") == "run job filed successfully\n"
    assert stored(pumice, "filed", "team")["spec"]["minAvailable"] == 1
    assert "Name" in pumice("job", "list", "-n", "team")


def test_run_says_what_is_wrong_with_a_file_or_an_amount(pumice: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    assert "must hold one Job of batch.volcano.sh/v1alpha1" in str(pumice.type("job", "run", "-f", str(file)).exception)
    assert '"x" is not a quantity' in str(pumice.type("job", "run", "-N", "a", "-R", "cpu=x").exception)
    assert '"cpu" is not an amount' in str(pumice.type("job", "run", "-N", "a", "-L", "cpu").exception)
    assert "cannot be split into words: no closing quotation" in str(pumice.type("job", "run", "-N", "a", "-c", "sh 'x").exception)
    assert "a job needs a name (-N)" in pumice.type("job", "run", "-r", "2").stderr


def test_list_has_the_columns_of_vcctl(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "job-1", "-q", "listed", "-r", "4", "-m", "3")
    status = {"status": {"state": {"phase": "Running"}, "running": 3, "pending": 1, "minAvailable": 3}}
    pumice.store(lambda store: store.patch(JOBS, "job-1", PatchRequest("merge", status), "default", "status"))
    created = stored(pumice, "job-1")["metadata"]["creationTimestamp"][:10]
    assert pumice("job", "list", "-q", "listed").splitlines() == [
        "Name    Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount",
        f"job-1   {created}     Running     Batch       4           3     1         3         0           0         0           0",
    ]
    everywhere = pumice("job", "list", "--all-namespaces", "--queue", "listed").splitlines()
    assert everywhere[0].split()[:2] == ["Namespace", "Name"] and everywhere[1].split()[:2] == ["default", "job-1"]


def test_list_chooses_by_scheduler_and_by_part_of_the_name(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "alpha-one", "-S", "kube")
    pumice("job", "run", "-N", "alpha-two")
    assert [line.split()[0] for line in pumice("job", "list", "--selector", "alpha").splitlines()] == ["Name", "alpha-one", "alpha-two"]
    assert [line.split()[0] for line in pumice("job", "list", "-S", "kube").splitlines()] == ["Name", "alpha-one"]
    assert pumice("job", "list", "-q", "nobody's") == "No resources found\n"
    assert pumice("job", "list", "alpha-two", "-o", "name") == "job.batch.volcano.sh/alpha-two\n"
    assert "name: alpha-one" in pumice("job", "list", "alpha-one", "-o", "yaml")


def test_suspend_and_resume_are_commands_for_that_very_job(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "paused")
    uid = stored(pumice, "paused")["metadata"]["uid"]
    assert pumice("job", "suspend", "paused").startswith("command.bus.volcano.sh/paused-abortjob-")
    pumice("job", "resume", "-N", "paused")
    given = sorted(commands(pumice), key=lambda command: command["action"])
    assert [command["action"] for command in given] == ["AbortJob", "ResumeJob"]
    assert all((command["target"]["kind"], command["target"]["uid"]) == ("Job", uid) for command in given)
    assert all(command["metadata"]["ownerReferences"][0]["uid"] == uid for command in given)


def test_view_tells_everything_with_the_events(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "viewed")
    job = stored(pumice, "viewed")
    uid = job["metadata"]["uid"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "viewed.1", "namespace": "default"},
        "involvedObject": {"kind": "Job", "name": "viewed", "namespace": "default", "uid": uid},
        "reason": "ExecuteAction",
        "message": "Start to execute action SyncJob",
        "type": "Normal",
        "source": {"component": "vc-controller-manager"},
        "lastTimestamp": job["metadata"]["creationTimestamp"],
    }
    of_group = {"kind": "PodGroup", "name": f"viewed-{uid}", "namespace": "default"}
    ignored = {"reason": "NetworkTopologyIgnored", "message": "its hard network topology has no effect", "type": "Warning"}
    pumice.apply(event, event | ignored | {"metadata": {"name": "viewed.2", "namespace": "default"}, "involvedObject": of_group})
    seen = pumice("job", "view", "-N", "viewed")
    assert seen.splitlines()[0].split() == ["Name:", "viewed"]
    for part in ("Kind:         Job", "Min Available:", "Image Pull Policy:", "Start to execute action SyncJob", "NetworkTopologyIgnored"):
        assert part in seen, part


def test_what_the_server_refuses_is_one_line(pumice: Terminal) -> None:
    for verb in ("view", "suspend", "resume", "delete"):
        told = pumice.refused("job", verb, "-N", "nothing")
        assert told == 'Error: from server (NotFound): jobs.batch.volcano.sh "nothing" not found\n'


def test_a_job_is_deleted(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "gone")
    assert pumice("job", "delete", "-N", "gone") == "delete job gone successfully\n"
    assert stored(pumice, "gone") is None


def pod(name: str, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_pods_are_listed_by_job_and_by_queue(pumice: Terminal) -> None:
    pumice.apply(
        pod("w-0", labels={"volcano.sh/job-name": "w", "volcano.sh/queue-name": "q7"}),
        pod("other-0", labels={"volcano.sh/job-name": "other"}),
        pod("plain", annotations={"scheduling.volcano.sh/queue-name": "q7"}),
    )

    def first_words(*arguments: str) -> list[str]:
        return [line.split()[0] for line in pumice("pod", "list", *arguments).splitlines()]

    assert first_words("-j", "w") == ["Name", "w-0"]
    assert first_words("-q", "q7") == ["Name", "plain", "w-0"]
    assert first_words() == ["Name", "other-0", "w-0"]
    assert pumice("pod", "list", "-j", "w").split()[:9] == ["Name", "Ready", "Status", "Restart", "Age", "w-0", "0/1", "Pending", "0"]
    assert first_words("--all-namespaces", "-j", "w") == ["Namespace", "default"]


def test_list_tells_when_those_that_wait_will_start(pumice: Terminal) -> None:
    pumice("job", "run", "-N", "soon", "-q", "told")
    uid = stored(pumice, "soon")["metadata"]["uid"]
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "soon", "uid": uid, "controller": True}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pumice.apply(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"soon-{uid}", "namespace": "default", "ownerReferences": [owner]},
            "spec": {"minMember": 1},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "soon-0", "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": f"soon-{uid}"}},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        },
    )
    head, row = pumice("job", "list", "--eta", "-q", "told").splitlines()
    assert head.endswith("ETA") and row.endswith(">7d to >7d"), "there is no node"


def test_why_and_whatif_read_the_live_cluster_where_no_file_is_given(pumice: Terminal) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    pumice.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "asked"}},
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "group", "namespace": "asked"},
            "spec": {"minMember": 1, "queue": "nowhere"},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "asked", "annotations": {"scheduling.k8s.io/group-name": "group"}},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        },
    )
    assert pumice("why", "podgroup/asked/group").startswith("podgroup/asked/group waits: ")
    assert pumice("whatif", "podgroup/asked/group").startswith("podgroup/asked/group waits: queue nowhere does not exist")
    assert pumice("eta", "podgroup/asked/group").startswith("podgroup/asked/group will probably not start within 7d")
