"""The tables of the job controller: phases and actions, policies, and what a group needs at least."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import Object, status_of, terminating
from pumice.controllers.controller import ObjectChange
from pumice.controllers.in_memory import Memory
from pumice.controllers.volcano.job.controller import Jobs
from pumice.controllers.volcano.job.event import OUT_OF_SYNC, JobEvent, from_pod
from pumice.controllers.volcano.job.pod_group import build, min_resources
from pumice.controllers.volcano.job.policy import PolicyChoice, choose
from tests.controllers.stage import NOON, fixed_key_pair, plain_pod, queue, table, task, vcjob


def _lister(row: dict[str, Any]) -> Memory:
    replicas = row.get("replicas", 3)
    minimum = row.get("min", replicas)
    member = {**task("w", replicas), "minAvailable": row.get("task_min", replicas)}
    job = vcjob(tasks=[member], minAvailable=minimum, maxRetry=row.get("max_retry", 3), minSuccess=row.get("min_success"))
    job["status"] = {"state": {"phase": row["phase"]}, "retryCount": row.get("retried", 0), "version": 1, "minAvailable": minimum}
    lister = Memory([queue(), job], NOON)
    group = build(job, lister)
    group["status"] = {"phase": "Running"}
    lister.put(group)
    for index, phase in enumerate(phase for phase, count in row["pods"].items() for _ in range(count)):
        lister.put(_pod(job, index, phase))
    return lister


def _pod(job: Object, index: int, phase: str) -> Object:
    pod = plain_pod(f"train-w-{index}", job, {key.TASK_SPEC: "w", key.JOB_VERSION: "1"}, nodeName="n1")
    pod["status"] = {"phase": "Running" if phase == "gone" else phase}
    if phase == "gone":
        pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    return pod


@pytest.mark.parametrize("row", table("job_states.yaml"), ids=lambda row: f"{row['phase']} {row['action']} {row['pods']}")
def test_an_action_in_a_phase_leads_to_the_next_phase(row: dict[str, Any]) -> None:
    lister = _lister(row)
    about = {"action": row["action"], "task": "w", "pod": "train-w-0", "pod_uid": "uid-train-w-0", "version": 1}
    request = JobEvent("default", "train", **(about if row["action"] != "SyncJob" else {}))
    for write in Jobs(fixed_key_pair).reconcile(request, lister, NOON).writes:
        lister.apply(write)
    job = lister.get(kinds.JOB, "default", "train")
    assert job is not None
    assert job["status"]["state"]["phase"] == row["then"]
    assert job["status"].get("retryCount", 0) == row.get("retry", row.get("retried", 0))
    if "left" in row:
        made = {"Pending"} if row["action"] == "SyncJob" else set()
        left = [status_of(pod).get("phase") or "Pending" for pod in lister.all(kinds.POD) if not terminating(pod)]
        assert sorted(phase for phase in left if phase not in made) == sorted(phase for phase in row["left"] if phase not in made)


def _reported(name: str, job: Object, phase: str | None, row: dict[str, Any], restarts: int = 0) -> Object | None:
    if phase is None:
        return None
    notes = {key.TASK_SPEC: "w", **({key.KILLED_ON_PURPOSE: "true"} if row.get("on_purpose") else {})}
    pod = plain_pod(name, job, notes)
    state = {"terminated": {"exitCode": row.get("code", 0)}} if phase == "Failed" else {}
    pod["status"] = {"phase": phase, "containerStatuses": [{"name": "main", "restartCount": restarts, "state": state}]}
    return pod


@pytest.mark.parametrize("row", table("job_events.yaml"), ids=lambda row: row["case"])
def test_what_becomes_of_a_pod_is_an_event(row: dict[str, Any]) -> None:
    job = vcjob(tasks=[task("w", 2, maxRetry=3)], policies=[{"event": "*", "action": "AbortJob", "timeout": "1s"}])
    old = _reported("train-w-0", job, row.get("was"), row)
    new = _reported("train-w-0", job, row.get("is"), row, row.get("restarts", 0))
    if new is not None and row.get("ending"):
        new["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    other = _reported("train-w-1", job, row.get("other"), {}, row.get("others_restarts", 0))
    lister = Memory([each for each in (job, new, other) if each is not None])
    (request,) = from_pod(ObjectChange(old, new), lister)
    assert (request.event, request.exit_code) == (row["event"] or OUT_OF_SYNC, row.get("exit", 0))


@pytest.mark.parametrize("row", table("job_policies.yaml"), ids=lambda row: row["case"])
def test_policies_choose_the_action(row: dict[str, Any]) -> None:
    job = vcjob(tasks=[task("w", policies=row.get("task_policies", [])), task("other")], policies=row.get("policies", []))
    job["status"] = {"state": {"phase": "Running"}, "version": row.get("job_version", 0)}
    request = JobEvent(
        "default",
        "train",
        event=row["event"],
        uid=row.get("uid", "uid-train"),
        task=row.get("task", "w"),
        exit_code=row.get("exit", 0),
        version=row.get("version", 0),
        action=row.get("action", ""),
    )
    assert choose(job, request) == PolicyChoice(row["then"], row.get("delay"))


@pytest.mark.parametrize("row", table("job_min_resources.yaml"), ids=lambda row: row["case"])
def test_a_group_needs_what_its_first_pods_are_charged(row: dict[str, Any]) -> None:
    members = []
    for number, (replicas, minimum, cpu, priority) in enumerate(row["tasks"]):
        member = task(f"t{number}", replicas, cpu)
        member["minAvailable"] = minimum
        member["template"]["spec"].update({"priorityClassName": priority} if priority else {})
        members.append(member)
    job = vcjob(tasks=members, minAvailable=row["min"])
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    needed = min_resources(job, Memory([high]))
    assert needed.get("cpu") == (None if row["cpu"] is None else int(row["cpu"]) * 1000)
    assert needed.get("pods", 0) == row["min"] * 1000
    assert needed.get("requests.cpu") == needed.get("cpu")
