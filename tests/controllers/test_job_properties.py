"""Promises about jobs whatever happens to their pods."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import annotations_of, labels_of, name_of, status_of, terminating
from tests.controllers.stage import Stage, queue, task, vcjob
from tests.samples import times

EVENTS = ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "*")
ACTIONS = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob")
HAPPENINGS = ("let_in", "run", "fail", "succeed", "lose", "end", "wait", "abort", "resume", "unknown")

policies = st.dictionaries(st.sampled_from(EVENTS), st.sampled_from(ACTIONS), max_size=2)


def happen(stage: Stage, what: str, choice: int) -> None:
    pods = [name_of(pod) for pod in stage.lister.all(kinds.POD) if not terminating(pod)]
    pod = pods[choice % len(pods)] if pods else None
    match what:
        case "let_in":
            stage.let_in()
        case "end":
            stage.kubelet_ends()
        case "wait":
            stage.wait(60)
        case "abort" | "resume":
            stage.command("AbortJob" if what == "abort" else "ResumeJob", stage.get(kinds.JOB, "train"))
        case "unknown":
            for group in stage.names(kinds.POD_GROUP):
                stage.change(kinds.POD_GROUP, group, {"status": {"phase": "Unknown"}})
        case "lose" if pod:
            stage.lose(pod)
        case "run" | "fail" | "succeed" if pod:
            stage.bind(pod)
            stage.pods({"run": "Running", "fail": "Failed", "succeed": "Succeeded"}[what], pod)


@settings(max_examples=times(30), deadline=None)
@given(policies, st.integers(1, 4), st.booleans(), st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.integers(0, 5)), max_size=25))
def test_whatever_happens_a_job_keeps_its_promises(
    answers: dict[str, str], max_retry: int, started: bool, story: list[tuple[str, int]]
) -> None:
    written = [{"event": event, "action": action} for event, action in answers.items()]
    members = [task("a", 2, minAvailable=1), task("b", 1)]
    stage = Stage(queue(), vcjob(tasks=members, minAvailable=2, maxRetry=max_retry, policies=written))
    resumed = 0
    for what in ("let_in", "run", "run", "run") if started else ():
        happen(stage, what, len([pod for pod in stage.lister.all(kinds.POD) if pod.get("status")]))
    for what, choice in story:
        resumed += what == "resume"
        happen(stage, what, choice)
        job = stage.get(kinds.JOB, "train")
        phase = job["status"]["state"]["phase"]
        assert job["status"].get("retryCount", 0) <= max_retry + resumed
        pods = list(stage.lister.all(kinds.POD))
        assert {name_of(pod) for pod in pods} <= {"train-a-0", "train-a-1", "train-b-0"}
        versions = [int(annotations_of(pod)[key.JOB_VERSION]) for pod in pods]
        assert all(version <= job["status"].get("version", 0) for version in versions)
        if phase in ("Aborted", "Completed", "Failed", "Terminated"):
            left = {status_of(pod).get("phase") or "Pending" for pod in pods if not terminating(pod)}
            assert left <= {"Succeeded", "Failed"}
            assert stage.names(kinds.POD_GROUP) == []
        assert all(labels_of(pod)[key.JOB_NAME] == "train" for pod in pods)
        stage.assert_settled()
