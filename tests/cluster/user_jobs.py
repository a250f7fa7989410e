"""What users of Volcano do with jobs. Each story has a namespace of its own; scheduler, controllers and webhooks are at work in all."""

from __future__ import annotations

import asyncio
from functools import partial

from jobs import Body, Jobs, task
from kubelets import HELD
from stage import until_true

from pumice.api.kinds import EVENTS, JOBS, NODES, PODS, PRIORITY_CLASSES, VOLUME_CLAIMS, ObjectRef
from pumice.client.transport import PatchType

#: action -> phase it ends in, tasks' pods that are replaced (of a-0, b-0, b-1, where b-0 fails or is evicted)
ENDS = {
    "RestartJob": ("Running", {"a-0", "b-0", "b-1"}),
    "RestartTask": ("Running", {"b-0", "b-1"}),
    "RestartPod": ("Running", {"b-0"}),
    "AbortJob": ("Aborted", set()),
    "TerminateJob": ("Terminated", set()),
    "CompleteJob": ("Completed", set()),
}


def uids(pods: dict[str, Body]) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in pods.items()}


async def a_gang_runs_and_completes(jobs: Jobs) -> None:
    await jobs.create("gang", [task(replicas=3, cpu="1")], labels={"team": "red"}, priorityClassName="system-cluster-critical")
    status = await jobs.until_phase("gang", "Running")
    assert (status["running"], status["minAvailable"]) == (3, 3)
    group = await jobs.group("gang")
    assert group is not None and group["metadata"]["labels"]["team"] == "red"
    assert group["metadata"]["ownerReferences"][0]["kind"] == "Job"
    spec = group["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["queue"]) == (3, {"w": 3}, "default")
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["minResources"] == {"count/pods": "3", "pods": "3", "cpu": "3", "requests.cpu": "3"}
    pod = (await jobs.pods("gang"))["gang-w-1"]
    notes, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    assert notes["scheduling.k8s.io/group-name"] == group["metadata"]["name"]
    assert (notes["volcano.sh/task-index"], labels["volcano.sh/task-index"], labels["volcano.sh/queue-name"]) == ("1", "1", "default")
    await jobs.all_become("gang", "Succeeded")
    status = await jobs.until_phase("gang", "Completed")
    assert [entry["status"] for entry in status["conditions"]] == ["Pending", "Running", "Completed"]
    assert status["taskStatusCount"] == {"w": {"phase": {"Succeeded": 3}}} and status["succeeded"] == 3

    async def cleaned() -> bool:
        return await jobs.group("gang") is None

    await until_true(cleaned)


async def policies_act_on_failed_and_evicted_pods(jobs: Jobs) -> None:
    async def one(event: str, action: str) -> None:
        name = f"{event}-{action}".lower()
        await jobs.create(name, [task("a"), task("b", 2)], policies=[{"event": event, "action": action}])
        await jobs.until_phase(name, "Running")
        before = uids(await jobs.pods(name))
        if event == "PodFailed":
            await jobs.becomes(f"{name}-b-0", "Failed", exit_code=3)
        else:
            await jobs.client.delete(PODS, ObjectRef(f"{name}-b-0", jobs.namespace))
        phase, replaced = ENDS[action]
        if phase == "Running":
            await jobs.until_restarted(name, 3)
            after = uids(await jobs.pods(name))
            assert {pod.removeprefix(f"{name}-") for pod in after if after[pod] != before[pod]} == replaced, name
            assert (await jobs.status(name))["retryCount"] == 1
        else:
            await jobs.until_phase(name, phase)
            left = {pod["status"]["phase"] for pod in (await jobs.pods(name)).values()}
            assert left <= {"Failed"}, name

    await asyncio.gather(*(one(event, action) for event in ("PodFailed", "PodEvicted") for action in ENDS))


async def policies_act_on_tasks_codes_and_waiting(jobs: Jobs) -> None:
    async def completed() -> None:
        await jobs.create("done", [task("m", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), task("w", 2)])
        await jobs.until_phase("done", "Running")
        await jobs.becomes("done-m-0", "Succeeded")
        await jobs.until_phase("done", "Completed")

    async def code() -> None:
        policies = [{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 4, "action": "CompleteJob"}]
        await jobs.create("code", [task("w", 2, policies=policies)])
        await jobs.until_phase("code", "Running")
        await jobs.becomes("code-w-0", "Failed", exit_code=4)
        await jobs.until_phase("code", "Completed")

    async def failed() -> None:
        policies = [{"event": "TaskFailed", "action": "TerminateJob"}]
        await jobs.create("crash", [task("w", 2, maxRetry=2)], policies=policies)
        await jobs.until_phase("crash", "Running")
        for restarts in (1, 2):
            await jobs.becomes("crash-w-0", "Running", restarts=restarts)
        await jobs.until_phase("crash", "Terminated")

    async def pending() -> None:
        policies = [{"event": "PodPending", "action": "AbortJob", "timeout": "1s"}]
        waiting = task("w", pod={"nodeSelector": {"nobody": "has-this"}})
        await jobs.create("late", [waiting], policies=policies)
        await jobs.until_phase("late", "Aborted")

    async def any_event() -> None:
        await jobs.create("any", [task("w", 2)], policies=[{"event": "*", "action": "TerminateJob"}])
        await jobs.until_phase("any", "Running")
        await jobs.becomes("any-w-1", "Failed", exit_code=1)
        await jobs.until_phase("any", "Terminated")

    await asyncio.gather(completed(), code(), failed(), pending(), any_event())


async def a_job_is_restarted_as_often_as_allowed(jobs: Jobs) -> None:
    await jobs.create("often", [task(replicas=2)], maxRetry=2, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    for attempt in range(2):
        await jobs.until_pods("often", 2, "Running")
        await jobs.until_phase("often", "Running")
        assert (await jobs.status("often")).get("retryCount", 0) == attempt
        await jobs.becomes("often-w-0", "Failed", exit_code=1)

        async def counted(retries: int = attempt + 1) -> bool:
            return (await jobs.status("often")).get("retryCount") == retries

        await until_true(counted)
    status = await jobs.until_phase("often", "Failed")
    assert status["retryCount"] == 2
    assert list(await jobs.pods("often")) == ["often-w-0"], "what failed stays for reading"


async def slow_pods_are_replaced_when_they_are_gone(jobs: Jobs) -> None:
    slow = task(replicas=3, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    slow["template"] |= {"metadata": {"annotations": {HELD: "yes"}}}
    slow["template"]["spec"] |= {"terminationGracePeriodSeconds": 30}
    await jobs.create("slow", [slow], plugins={"ssh": []})
    await jobs.until_phase("slow", "Running")
    before = uids(await jobs.pods("slow"))
    await jobs.becomes("slow-w-1", "Failed", exit_code=1)
    status = await jobs.until_terminating("slow", 2)
    assert (status["state"]["phase"], status["retryCount"]) == ("Restarting", 1)
    old = [name for name, pod in (await jobs.listed(PODS)).items() if pod["metadata"]["uid"] in before.values()]
    assert set(old) == {"slow-w-0", "slow-w-2"}, "who has failed is gone at once"
    for pod in old:
        assert (await jobs.status("slow"))["state"]["phase"] == "Restarting", "until all the old are gone"
        await jobs.client.patch(PODS, ObjectRef(pod, jobs.namespace), {"metadata": {"annotations": {HELD: None}}}, PatchType.MERGE)
    await jobs.until_restarted("slow", 3)
    pods = await jobs.pods("slow")
    assert not set(uids(pods).values()) & set(before.values())
    assert {pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] for pod in pods.values()} == {"1"}
    assert [entry["status"] for entry in (await jobs.status("slow"))["conditions"]] == ["Restarting", "Pending", "Running"]


async def counts_decide_how_a_job_ends(jobs: Jobs) -> None:
    rows: dict[str, tuple[Body, list[str], str]] = {
        "enough": ({"minAvailable": 1}, ["Failed", "Succeeded"], "Completed"),
        "none": ({"minAvailable": 1}, ["Failed", "Failed"], "Failed"),
        "all": ({}, ["Succeeded", "Failed"], "Failed"),
        "success": ({"minSuccess": 1}, ["Succeeded"], "Completed"),
    }

    async def one(name: str) -> None:
        spec, ends, phase = rows[name]
        await jobs.create(name, [task(replicas=2, **({"minAvailable": 1} if "minAvailable" in spec else {}))], **spec)
        await jobs.until_pods(name, 2, "Running")
        await jobs.until_phase(name, "Running")
        for index, end in enumerate(ends):
            await jobs.becomes(f"{name}-w-{index}", end, exit_code=int(end == "Failed"))
        await jobs.until_phase(name, phase)

    await asyncio.gather(*map(one, rows))


async def a_job_is_suspended_and_resumed(jobs: Jobs) -> None:
    await jobs.create("rest", [task(replicas=2)])
    await jobs.until_phase("rest", "Running")
    await jobs.order("rest", "AbortJob")
    await jobs.until_phase("rest", "Aborted")
    assert await jobs.pods("rest") == {}
    await jobs.order("rest", "ResumeJob")
    await jobs.until_restarted("rest", 2)
    assert (await jobs.status("rest"))["version"] >= 1
    for action, phase in (("CompleteJob", "Completed"), ("TerminateJob", "Terminated")):
        name = phase.lower()
        await jobs.create(name, [task()])
        await jobs.until_phase(name, "Running")
        await jobs.order(name, action)
        await jobs.until_phase(name, phase)


async def a_job_grows_and_shrinks(jobs: Jobs) -> None:
    await jobs.create("size", [task(replicas=2, minAvailable=1)], minAvailable=1, plugins={"svc": []})
    await jobs.until_pods("size", 2, "Running")
    for replicas, minimum in ((4, 3), (1, 1)):
        stored = (await jobs.job("size"))["spec"]["tasks"]
        stored[0] |= {"replicas": replicas, "minAvailable": minimum}
        await jobs.change("size", {"spec": {"minAvailable": minimum, "tasks": stored}})
        await jobs.until_pods("size", replicas, "Running")

        async def followed(wanted: tuple[int, Body] = (minimum, {"w": minimum})) -> bool:
            group = await jobs.group("size")
            return group is not None and (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == wanted

        await until_true(followed)
        await jobs.until_phase("size", "Running")
    assert "retryCount" not in await jobs.status("size")


async def a_task_waits_for_another(jobs: Jobs) -> None:
    tasks = [task("ps"), task("w", 2, dependsOn={"name": ["ps"]}), task("x", dependsOn={"name": ["ps", "w"], "iteration": "any"})]
    await jobs.create("deps", tasks, minAvailable=1)
    pods = await jobs.until_pods("deps", 4, "Running")
    order = sorted(pods, key=lambda name: pods[name]["metadata"]["creationTimestamp"] + name)
    assert order[0] == "deps-ps-0"
    await jobs.until_phase("deps", "Running")


async def a_finished_job_is_deleted_in_time(jobs: Jobs) -> None:
    await jobs.create("brief", [task()], ttlSecondsAfterFinished=1)
    await jobs.until_phase("brief", "Running")
    await jobs.all_become("brief", "Succeeded")

    async def going() -> bool:
        found = (await jobs.listed(JOBS)).get("brief")
        return found is None or bool(found["metadata"].get("deletionTimestamp"))

    await until_true(going)


async def a_job_has_volumes(jobs: Jobs) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "x", "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/made", "volumeClaim": claim}, {"mountPath": "/own", "volumeClaimName": "own"}]
    await jobs.create("disks", [task()], volumes=volumes)

    async def says() -> bool:
        return "own" in str((await jobs.status("disks")).get("state", {}).get("message"))

    await until_true(says)
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "own"}, "spec": claim}
    await jobs.client.create(VOLUME_CLAIMS, body, jobs.namespace)
    pods = await jobs.until_pods("disks", 1)
    claims = await jobs.listed(VOLUME_CLAIMS)
    (made,) = set(claims) - {"own"}
    assert (await jobs.job("disks"))["spec"]["volumes"][0]["volumeClaimName"] == made
    assert made.startswith("disks-pvc-") and claims[made]["metadata"]["ownerReferences"][0]["name"] == "disks"
    mounts = pods["disks-w-0"]["spec"]["containers"][0]["volumeMounts"]
    assert {mount["mountPath"] for mount in mounts} >= {"/made", "/own"}


async def a_job_that_waits_says_why(jobs: Jobs) -> None:
    await jobs.create("large", [task(replicas=2, cpu="1000")])
    await jobs.create("picky", [task(cpu="1", pod={"nodeSelector": {"nobody": "has-this"}})])

    async def says() -> bool:
        return "unschedule,reason:" in str((await jobs.status("picky")).get("state", {}).get("message"))

    await until_true(says)

    async def told() -> bool:
        events = (await jobs.listed(EVENTS)).values()
        found = {(each["involvedObject"]["name"].partition("-")[0], each["reason"]) for each in events}
        return {
            ("picky", "PodGroupPending"),
            ("picky", "Unschedulable"),
            ("picky", "FailedScheduling"),
            ("large", "Unschedulable"),
        } <= found

    await until_true(told)
    assert await jobs.pods("large") == {}, "no pods before the group is let in"


async def a_gang_that_finds_no_place_for_a_lost_member_is_an_event(jobs: Jobs) -> None:
    """Its node takes nobody any more: the scheduler calls the group Unknown, since the rest of it runs.

    The nodes are tainted: pods of other stories, which select none, would take the room that the lost member is to have again.
    """
    taint = {"key": "story", "value": "lost", "effect": "NoSchedule"}

    async def one(action: str, phase: str) -> None:
        name = action.lower()
        node = f"lost-{name}"
        amounts = {"cpu": "2", "memory": "10Gi", "pods": "10"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        await jobs.client.create(NODES, {"metadata": {"name": node, "labels": {"story": "volcano", "own": node}}})
        await jobs.client.patch(NODES, ObjectRef(node), {"status": status}, PatchType.MERGE, subresource="status")
        await jobs.client.patch(NODES, ObjectRef(node), {"spec": {"taints": [taint]}}, PatchType.MERGE)
        try:
            members = task(replicas=2, cpu="1", pod={"nodeSelector": {"own": node}, "tolerations": [{**taint, "operator": "Equal"}]})
            await jobs.create(name, [members], policies=[{"event": "Unknown", "action": action}])
            await jobs.until_phase(name, "Running")
            await jobs.client.patch(NODES, ObjectRef(node), {"spec": {"unschedulable": True}}, PatchType.MERGE)
            await jobs.client.delete(PODS, ObjectRef(f"{name}-w-0", jobs.namespace))
            if action == "RestartJob":
                await until_true(partial(restarted, name))
                await jobs.client.patch(NODES, ObjectRef(node), {"spec": {"unschedulable": None}}, PatchType.MERGE)
            await jobs.until_phase(name, phase)
        finally:
            await jobs.client.delete(NODES, ObjectRef(node))

    async def restarted(name: str) -> bool:
        status = await jobs.status(name)
        return status.get("retryCount") == 1 and status["state"]["phase"] == "Pending"

    await asyncio.gather(one("AbortJob", "Aborted"), one("TerminateJob", "Terminated"), one("RestartJob", "Running"))


async def partitions_are_sub_groups(jobs: Jobs) -> None:
    split = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    member = task(replicas=4, partitionPolicy=split, policies=[{"event": "PodFailed", "action": "RestartPartition"}])
    await jobs.create("parts", [member], networkTopology={"mode": "soft"})
    await jobs.until_pods("parts", 4, "Running")
    await jobs.until_phase("parts", "Running")
    group = await jobs.group("parts")
    assert group is not None
    (policy,) = group["spec"]["subGroupPolicy"]
    assert (policy["name"], policy["subGroupSize"], policy["minSubGroups"]) == ("w", 2, 1)
    assert policy["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}
    assert (group["spec"]["minMember"], group["spec"]["networkTopology"]) == (2, {"mode": "soft"})
    before = await jobs.pods("parts")
    assert [before[f"parts-w-{index}"]["metadata"]["labels"]["volcano.sh/partition-id"] for index in range(4)] == ["0", "0", "1", "1"]
    await jobs.becomes("parts-w-3", "Failed", exit_code=1)
    await jobs.until_restarted("parts", 4)
    after = uids(await jobs.pods("parts"))
    assert {name for name, uid in uids(before).items() if after[name] != uid} == {"parts-w-2", "parts-w-3"}


async def the_more_important_job_takes_the_place(jobs: Jobs) -> None:
    """Priorities of tasks and of jobs; preemption is a matter of the scheduler's configuration and has stories of its own."""
    name = f"{jobs.namespace}-high"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000}
    await jobs.client.create(PRIORITY_CLASSES, body)
    low, high = task("low", 2, cpu="1"), task("high", 1, cpu="2", pod={"priorityClassName": name})
    await jobs.create("prio", [low, high], minAvailable=1)

    async def counted() -> bool:
        group = await jobs.group("prio")
        return group is not None and group["spec"]["minResources"]["cpu"] == "2"

    await until_true(counted)
    pods = await jobs.until_pods("prio", 3, "Running")
    assert pods["prio-high-0"]["spec"]["priority"] == 1000


STORIES = (
    a_gang_runs_and_completes,
    policies_act_on_failed_and_evicted_pods,
    policies_act_on_tasks_codes_and_waiting,
    a_job_is_restarted_as_often_as_allowed,
    slow_pods_are_replaced_when_they_are_gone,
    counts_decide_how_a_job_ends,
    a_job_is_suspended_and_resumed,
    a_job_grows_and_shrinks,
    a_task_waits_for_another,
    a_finished_job_is_deleted_in_time,
    a_job_has_volumes,
    a_job_that_waits_says_why,
    a_gang_that_finds_no_place_for_a_lost_member_is_an_event,
    partitions_are_sub_groups,
    the_more_important_job_takes_the_place,
)
