"""What users of Volcano do beside jobs: queues, plugins, flows, schedules, plain workloads, network topologies, gates."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from jobs import Body, Jobs, task
from stage import until_true

from pumice.api.kinds import (
    COMMANDS,
    CONFIG_MAPS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NETWORK_POLICIES,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
    Kind,
    ObjectRef,
)
from pumice.client.failures import ApiError
from pumice.client.transport import PatchType, as_dict


def body(resource: Kind, name: str, spec: Body, **metadata: Any) -> Body:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name, **metadata}, "spec": spec}


async def until_state(jobs: Jobs, queue: str, state: str) -> Body:
    async def there() -> bool:
        return (await queue_of(jobs, queue)).get("status", {}).get("state") == state

    await until_true(there)
    return await queue_of(jobs, queue)


async def queue_of(jobs: Jobs, name: str) -> Body:
    return as_dict(await jobs.client.get(QUEUES, ObjectRef(name)))


async def operate(jobs: Jobs, queue: str, action: str) -> None:
    target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": queue, "uid": (await queue_of(jobs, queue))["metadata"]["uid"]}
    head = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": {"generateName": f"{queue}-"}}
    await jobs.client.create(COMMANDS, {**head, "target": target, "action": action}, jobs.namespace)


async def a_queue_closes_with_its_children_when_its_jobs_are_gone(jobs: Jobs) -> None:
    parent, child = f"{jobs.namespace[:20]}-parent", f"{jobs.namespace[:20]}-child"
    await jobs.client.create(QUEUES, body(QUEUES, parent, {"weight": 1}))
    made = await until_state(jobs, parent, "Open")
    assert (made["spec"]["parent"], made["spec"]["reclaimable"]) == ("root", True)
    await jobs.client.create(QUEUES, body(QUEUES, child, {"weight": 2, "parent": parent}))
    await until_state(jobs, child, "Open")
    await jobs.create("busy", [task()], queue=child)
    await jobs.until_phase("busy", "Running")
    await operate(jobs, parent, "CloseQueue")
    await until_state(jobs, parent, "Closed")
    closing = await until_state(jobs, child, "Closing")
    assert closing["metadata"]["annotations"]["volcano.sh/closed-by-parent"] == "true"
    with pytest.raises(ApiError, match="can only submit job to queue with state `Open`"):
        await jobs.create("refused", [task()], queue=child)
    await jobs.client.patch(QUEUES, ObjectRef(child), {"spec": {"weight": 3}}, PatchType.MERGE)
    await jobs.all_become("busy", "Succeeded")
    await jobs.until_phase("busy", "Completed")
    await until_state(jobs, child, "Closed")
    await operate(jobs, parent, "OpenQueue")
    await until_state(jobs, parent, "Open")
    await until_state(jobs, child, "Open")
    with pytest.raises(ApiError, match="can not be deleted because it has 1 child queues"):
        await jobs.client.delete(QUEUES, ObjectRef(parent))
    await jobs.client.delete(QUEUES, ObjectRef(child))


async def plugins_make_what_frameworks_need(jobs: Jobs) -> None:
    tasks = [task("master"), task("worker", 2)]
    names: dict[str, list[str]] = {"env": [], "svc": [], "ssh": [], "mpi": [], "pytorch": [], "tensorflow": ["--worker=worker"], "ray": []}
    await jobs.create("all", tasks, plugins=names)
    pods = await jobs.until_pods("all", 3, "Running")
    await jobs.until_phase("all", "Running")
    secret = (await jobs.listed(SECRETS))["all-ssh"]
    assert sorted(secret["data"]) == ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]
    assert b"Host all-worker-1" in base64.b64decode(secret["data"]["config"])
    data = (await jobs.listed(CONFIG_MAPS))["all-svc"]["data"]
    assert data["worker.host"] == "all-worker-0.all\nall-worker-1.all"
    services = await jobs.listed(SERVICES)
    assert services["all"]["spec"]["clusterIP"] == "None" and "all-head-svc" in services
    assert "all" in await jobs.listed(NETWORK_POLICIES)
    env = {each["name"]: each.get("value") for each in pods["all-worker-1"]["spec"]["containers"][0]["env"]}
    assert {name: env[name] for name in ("VC_TASK_INDEX", "VK_TASK_INDEX", "RANK", "WORLD_SIZE", "MASTER_ADDR")} == {
        "VC_TASK_INDEX": "1",
        "VK_TASK_INDEX": "1",
        "RANK": "2",
        "WORLD_SIZE": "3",
        "MASTER_ADDR": "all-master-0.all",
    }
    assert "VC_MASTER_HOSTS" in env and '"worker"' in str(env["TF_CONFIG"])
    assert (await jobs.status("all"))["controlledResources"] == {f"plugin-{name}": name for name in names}
    await jobs.all_become("all", "Succeeded")
    await jobs.until_phase("all", "Completed")

    async def cleaned() -> bool:
        left = [*await jobs.listed(SECRETS), *await jobs.listed(SERVICES), *await jobs.listed(NETWORK_POLICIES)]
        return not [name for name in left if name.startswith("all")]

    await until_true(cleaned)


async def a_flow_runs_its_steps_in_order(jobs: Jobs) -> None:
    for name in ("load", "train"):
        spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task()]}
        await jobs.client.create(JOB_TEMPLATES, body(JOB_TEMPLATES, name, spec), jobs.namespace)
    other_image = {"tasks": [{"name": "w", "template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}]}
    steps = [{"name": "load"}, {"name": "train", "dependsOn": {"targets": ["load"]}, "patch": {"spec": other_image}}]
    await jobs.client.create(JOB_FLOWS, body(JOB_FLOWS, "flow", {"flows": steps, "jobRetainPolicy": "delete"}), jobs.namespace)

    async def status() -> Body:
        return as_dict(await jobs.client.get(JOB_FLOWS, ObjectRef("flow", jobs.namespace))).get("status") or {}

    async def phase() -> str:
        return str(((await status()).get("state") or {}).get("phase"))

    async def runs() -> bool:
        return await phase() == "Running"

    for name in ("flow-load", "flow-train"):
        await until_true(lambda name=name: _has(jobs, JOBS, name))
        await jobs.until_phase(name, "Running")
        await until_true(runs)
        assert ("flow-train" in await jobs.listed(JOBS)) is (name == "flow-train")
        (container,) = (await jobs.pods(name))[f"{name}-w-0"]["spec"]["containers"]
        assert container["image"] == ("other" if name == "flow-train" else "x")
        await jobs.all_become(name, "Succeeded")
        if name == "flow-load":
            await jobs.until_phase(name, "Completed")

    async def over() -> bool:
        return await phase() == "Succeed" and not await jobs.listed(JOBS)

    await until_true(over)
    told = await status()
    assert {name: each["phase"] for name, each in told["conditions"].items()} == dict.fromkeys(("flow-load", "flow-train"), "Completed")
    assert [each["runningHistories"][-1]["state"] for each in told["jobStatusList"]] == ["Completed", "Completed"]


async def _has(jobs: Jobs, resource: Kind, name: str) -> bool:
    return name in await jobs.listed(resource)


async def jobs_start_by_the_clock(jobs: Jobs) -> None:
    template = {"metadata": {"labels": {"made": "by-clock"}}, "spec": {"queue": "default", "tasks": [task()]}}
    spec = {"schedule": "@every 1s", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    await jobs.client.create(CRON_JOBS, body(CRON_JOBS, "tick", spec), jobs.namespace)
    await jobs.client.create(CRON_JOBS, body(CRON_JOBS, "still", {**spec, "suspend": True}), jobs.namespace)

    async def status() -> Body:
        return as_dict(await jobs.client.get(CRON_JOBS, ObjectRef("tick", jobs.namespace))).get("status") or {}

    async def active() -> bool:
        return bool((await status()).get("active"))

    await until_true(active)
    (made,) = await jobs.listed(JOBS)
    job = await jobs.job(made)
    assert made.startswith("tick-") and job["metadata"]["labels"]["made"] == "by-clock"
    assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    (reference,) = (await status())["active"]
    assert (reference["name"], reference["uid"]) == (made, job["metadata"]["uid"])
    await jobs.until_phase(made, "Running")
    await jobs.all_become(made, "Succeeded")

    async def succeeded() -> bool:
        return bool((await status()).get("lastSuccessfulTime"))

    await until_true(succeeded)
    assert (await status())["lastScheduleTime"]
    assert not [name for name in await jobs.listed(JOBS) if name.startswith("still")]


async def plain_workloads_are_groups_of_their_own(jobs: Jobs) -> None:
    spec = task()["template"]["spec"] | {"schedulerName": "volcano", "restartPolicy": "Always"}
    notes = {"volcano.sh/preemptable": "true"}
    pod = as_dict(await jobs.client.create(PODS, {"metadata": {"name": "plain", "annotations": notes}, "spec": spec}, jobs.namespace))
    await jobs.until_pods("plain", 1, "Running")
    group = (await jobs.listed(POD_GROUPS))[f"podgroup-{pod['metadata']['uid']}"]
    assert group["metadata"]["annotations"] == notes and group["spec"]["minMember"] == 1 and group["spec"]["queue"] == "default"

    template = {"metadata": {"labels": {"app": "set"}}, "spec": spec}
    wanted = body(REPLICA_SETS, "set", {"replicas": 2, "selector": {"matchLabels": {"app": "set"}}, "template": template})
    wanted["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "2"}
    made = as_dict(await jobs.client.create(REPLICA_SETS, wanted, jobs.namespace))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": made["metadata"]["uid"], "controller": True}
    for index in range(2):
        meta = {"name": f"set-{index}", "labels": {"app": "set"}, "ownerReferences": [owner]}
        await jobs.client.create(PODS, {"metadata": meta, "spec": spec}, jobs.namespace)
    await jobs.until_pods("set", 2, "Running")
    name = f"podgroup-{made['metadata']['uid']}"
    assert (await jobs.listed(POD_GROUPS))[name]["spec"]["minMember"] == 2
    await jobs.client.patch(REPLICA_SETS, ObjectRef("set", jobs.namespace), {"spec": {"replicas": 0}}, PatchType.MERGE)

    async def gone() -> bool:
        return name not in await jobs.listed(POD_GROUPS)

    await until_true(gone)


CONTROLLER_CONF = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      story:
      - nodeLabel: example.org/spine
      - nodeLabel: example.org/leaf
      - nodeLabel: kubernetes.io/hostname
"""


async def network_domains_are_found_by_labels(jobs: Jobs) -> None:
    for index in range(4):
        labels = {"example.org/spine": "s", "example.org/leaf": f"l{index // 2}", "kubernetes.io/hostname": f"net-{index}"}
        await jobs.client.create(NODES, {"metadata": {"name": f"net-{index}", "labels": labels}})
    settings = ObjectRef("volcano-controller-configmap", "volcano-system")
    await jobs.client.patch(CONFIG_MAPS, settings, {"data": {"volcano-controller.conf": CONTROLLER_CONF}}, PatchType.MERGE)

    async def until_counted(*wanted: tuple[int, int]) -> None:
        async def counted() -> bool:
            found = [each for each in (await jobs.listed(HYPER_NODES)).values() if each["metadata"]["name"].startswith("hypernode-story")]
            return sorted((each["spec"]["tier"], (each.get("status") or {}).get("nodeCount") or 0) for each in found) == list(wanted)

        await until_true(counted)

    try:
        await until_counted((1, 2), (1, 2), (2, 4))
        await jobs.client.patch(NODES, ObjectRef("net-0"), {"metadata": {"labels": {"example.org/leaf": "l1"}}}, PatchType.MERGE)
        await until_counted((1, 1), (1, 3), (2, 4))
        await jobs.client.patch(NODES, ObjectRef("net-1"), {"metadata": {"labels": {"example.org/leaf": "l1"}}}, PatchType.MERGE)
        await until_counted((1, 4), (2, 4))
        await jobs.client.patch(CONFIG_MAPS, settings, {"data": {"volcano-controller.conf": ""}}, PatchType.MERGE)
        await until_counted()
    finally:
        for index in range(4):
            await jobs.client.delete(NODES, ObjectRef(f"net-{index}"))


async def gated_pods_wait_for_their_gate(jobs: Jobs) -> None:
    await jobs.create("gate", [task(replicas=2, pod={"schedulingGates": [{"name": "example.org/wait"}]})])
    await jobs.until_pods("gate", 2, "Pending")
    for name in ("gate-w-0", "gate-w-1"):
        assert not (await jobs.pods())[name]["spec"].get("nodeName")
        await jobs.client.patch(PODS, ObjectRef(name, jobs.namespace), {"spec": {"schedulingGates": []}}, PatchType.MERGE)
    await jobs.until_phase("gate", "Running")


async def what_cannot_work_is_refused_and_defaults_are_written(jobs: Jobs) -> None:
    async def refusal(resource: Kind, wrong: Body, namespace: str = "") -> str:
        with pytest.raises(ApiError) as caught:
            await jobs.client.create(resource, wrong, namespace)
        return caught.value.message

    told = await refusal(QUEUES, body(QUEUES, "lost", {"weight": 1, "parent": "nowhere"}))
    expected = 'spec.parent: queue "nowhere" does not exist; create it first'
    assert told == f'admission webhook "validatequeue.volcano.sh" denied the request: {expected}'
    assert "unable to find queue" in await refusal(JOBS, body(JOBS, "j", {"queue": "nowhere", "tasks": [task()]}), jobs.namespace)
    assert "validatejob.volcano.sh" in await refusal(JOBS, body(JOBS, "j", {"minAvailable": 2, "tasks": [task()]}), jobs.namespace)
    assert "write at most 63" in await refusal(JOBS, body(JOBS, "n" * 64, {"tasks": [task()]}), jobs.namespace)
    assert "plugin svc" in await refusal(JOBS, body(JOBS, "n" * 60, {"tasks": [task()], "plugins": {"svc": []}}), jobs.namespace)
    group = body(POD_GROUPS, "g", {"minMember": 1, "queue": "nowhere"})
    assert "validatepodgroup.volcano.sh" in await refusal(POD_GROUPS, group, jobs.namespace)
    node = body(HYPER_NODES, "odd", {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "["}}}]})
    assert "is not a regular expression" in await refusal(HYPER_NODES, node)
    cron = body(CRON_JOBS, "c", {"schedule": "never", "jobTemplate": {"spec": {"tasks": [task()]}}})
    assert '"never" has 1 fields' in await refusal(CRON_JOBS, cron, jobs.namespace)
    steps = [{"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    assert "loop" in await refusal(JOB_FLOWS, body(JOB_FLOWS, "f", {"flows": steps}), jobs.namespace)

    await jobs.client.create(JOBS, body(JOBS, "bare", {"tasks": [task("", 2, maxRetry=None)]}), jobs.namespace)
    spec = (await jobs.job("bare"))["spec"]
    assert (spec["minAvailable"], spec["schedulerName"], spec["maxRetry"], spec["queue"]) == (2, "volcano", 3, "default")
    assert (spec["tasks"][0]["name"], spec["tasks"][0]["minAvailable"]) == ("default0", 2)
    await jobs.until_phase("bare", "Running")
    with pytest.raises(ApiError, match="job updates may not change fields"):
        await jobs.change("bare", {"spec": {"queue": "other"}})


async def the_command_line_is_that_of_vcctl(jobs: Jobs) -> None:
    here = ("-n", jobs.namespace)
    assert await jobs.pumice("job", "run", "-N", "cli", "-i", "busybox", "-r", "2", "-m", "2", *here) == "run job cli successfully\n"
    await jobs.until_phase("cli", "Running")
    head, row = (await jobs.pumice("job", "list", *here)).splitlines()
    assert head.split()[:6] == ["Name", "Creation", "Phase", "JobType", "Replicas", "Min"]
    assert row.split()[2:] == ["Running", "Batch", "2", "2", "0", "2", "0", "0", "0", "0"]
    await jobs.pumice("job", "suspend", "-N", "cli", *here)
    await jobs.until_phase("cli", "Aborted")
    await jobs.pumice("job", "resume", "-N", "cli", *here)
    await jobs.until_phase("cli", "Running")
    assert "cli-test-0" in await jobs.pumice("pod", "list", "-j", "cli", *here)
    seen = await jobs.pumice("job", "view", "-N", "cli", *here)
    assert "Min Available:" in seen and "CommandIssued" in seen
    await jobs.pumice("queue", "create", "-n", "by-hand", "-w", "4")
    await until_state(jobs, "by-hand", "Open")
    await jobs.pumice("queue", "operate", "-n", "by-hand", "-a", "close")
    await until_state(jobs, "by-hand", "Closed")
    assert (await jobs.pumice("queue", "get", "-n", "by-hand")).splitlines()[1].split()[:3] == ["by-hand", "4", "Closed"]
    await jobs.pumice("queue", "operate", "-n", "by-hand", "-a", "open")
    await until_state(jobs, "by-hand", "Open")
    await jobs.pumice("queue", "delete", "-n", "by-hand")
    await jobs.pumice("job", "delete", "-N", "cli", *here)


STORIES = (
    a_queue_closes_with_its_children_when_its_jobs_are_gone,
    plugins_make_what_frameworks_need,
    a_flow_runs_its_steps_in_order,
    jobs_start_by_the_clock,
    plain_workloads_are_groups_of_their_own,
    network_domains_are_found_by_labels,
    gated_pods_wait_for_their_gate,
    what_cannot_work_is_refused_and_defaults_are_written,
    the_command_line_is_that_of_vcctl,
)
