"""Stories of Volcano jobs, with the scheduler, the kubelet and the user played by hand."""

from __future__ import annotations

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import annotations_of, controller_of, merged
from pumice.controllers.controller import GivesUp
from pumice.controllers.volcano.job.controller import Jobs
from pumice.controllers.volcano.job.event import JobEvent
from pumice.controllers.writes import Create, Delete, Emit, Patch
from tests.controllers.job_stage import phase, play, running, status
from tests.controllers.stage import Stage, fixed_key_pair, plain_pod, queue, task, vcjob


def test_no_pods_are_made_before_the_group_is_let_in() -> None:
    stage = play(vcjob(tasks=[task(replicas=3)]))
    assert stage.names(kinds.POD_GROUP) == ["train-uid-train"]
    assert stage.names(kinds.POD) == []
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-w-0", "train-w-1", "train-w-2"]
    stage.assert_settled()


def test_a_job_runs_and_completes() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    assert phase(stage) == "Running"
    assert status(stage)["running"] == 2
    stage.pods("Succeeded")
    assert phase(stage) == "Completed"
    assert status(stage)["taskStatusCount"] == {"w": {"phase": {"Succeeded": 2}}}
    assert [entry["status"] for entry in status(stage)["conditions"]] == ["Pending", "Running", "Completed"]
    assert stage.names(kinds.POD_GROUP) == []
    stage.assert_settled()


def test_a_job_without_pods_is_pending_before_it_runs() -> None:
    stage = play(vcjob(tasks=[task(replicas=0)]))
    assert phase(stage) == "Running"
    assert [entry["status"] for entry in status(stage)["conditions"]] == ["Pending", "Running"]
    stage.assert_settled()


def test_an_order_for_an_earlier_job_of_this_name_or_one_that_was_withdrawn_is_not_followed() -> None:
    stage = running(vcjob())
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "uid-of-another"}
    meta = {"name": "late", "namespace": "default"}
    stage.add({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": "AbortJob", "target": target})
    assert (phase(stage), stage.names(kinds.COMMAND)) == ("Running", ["late"])
    meta = {"name": "withdrawn", "namespace": "default", "deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["x"]}
    own = {**target, "uid": "uid-train"}
    stage.add({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": "AbortJob", "target": own})
    assert phase(stage) == "Running"


def test_what_is_done_to_a_job_is_told_in_volcanos_words() -> None:
    stage = running(vcjob())
    stage.command("AbortJob", stage.get(kinds.JOB, "train"))
    told = [(event.type, event.reason, event.message) for event in stage.lister.emitted]
    text = "Start to execute command AbortJob, and clean it up to make sure executed not more than once."
    assert told == [("Normal", "CommandIssued", text), ("Normal", "ExecuteAction", "Start to execute action AbortJob")]


def test_a_failed_pod_restarts_the_job_as_often_as_allowed_and_then_fails_it() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)], maxRetry=3, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    attempts = 1
    while phase(stage) == "Running":
        stage.pods("Failed", "train-w-0", exit_code=1)
        stage.kubelet_ends()
        if phase(stage) == "Pending":
            assert stage.names(kinds.POD) == []
            attempts += 1
            stage.let_in()
            stage.bind()
            stage.pods("Running")
    assert attempts == 3
    assert phase(stage) == "Failed"
    assert status(stage)["retryCount"] == 3
    assert stage.get(kinds.POD, "train-w-0")["status"]["phase"] == "Failed"
    stage.assert_settled()


def test_a_pod_whose_name_is_somebody_elses_is_made_when_that_is_gone() -> None:
    """Two jobs may want one name for a pod, and anybody may have it before them."""
    stage = running(vcjob("a-b", tasks=[task("c", 1)]), plain_pod("a-b-c-1"))
    stage.add(vcjob("a", tasks=[task("b-c", 2)]))
    stage.let_in()

    def owners() -> dict[str, str]:
        pods = {name: stage.get(kinds.POD, name) for name in stage.names(kinds.POD)}
        return {name: (controller_of(pod) or {}).get("name", "") for name, pod in pods.items()}

    assert owners() == {"a-b-c-0": "a-b", "a-b-c-1": ""}
    assert "pending" not in status(stage, "a"), "what is not there is not counted"
    stage.assert_settled()
    stage.delete(kinds.JOB, "a-b")
    for name in stage.names(kinds.POD):
        stage.lose(name)
    assert owners() == {"a-b-c-0": "a", "a-b-c-1": "a"}


def test_two_failures_of_one_attempt_restart_a_job_once() -> None:
    stage = running(vcjob(tasks=[task(replicas=3)], policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    stage.pods("Failed", "train-w-0", "train-w-1")
    assert status(stage)["retryCount"] == 1


def test_a_failure_that_a_policy_answers_comes_before_the_end_of_the_job() -> None:
    """Whoever looks at the job first: the last pods that end together, or all that ended while no controller looked."""
    answer = [{"event": "PodFailed", "action": "RestartJob"}]
    stage = running(vcjob(tasks=[task(replicas=2)], policies=answer))
    ended = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}
    for name in stage.names(kinds.POD):
        stage.lister.put(merged(stage.get(kinds.POD, name), {"status": ended}))
    job = stage.get(kinds.JOB, "train")
    again = Stage(*(each for kind in stage.lister.kinds() for each in stage.lister.all(kind)), now=stage.now)
    assert (phase(again), status(again)["retryCount"]) == ("Pending", 1)
    for policies, end in ((answer, "Restarting"), ([{"exitCode": 3, "action": "CompleteJob"}], "Completing"), ([], "Failed")):
        stage.lister.put(merged(job, {"spec": {"policies": policies}}))
        writes = Jobs(fixed_key_pair).reconcile(JobEvent("default", "train"), stage.lister, stage.now).writes
        (changed,) = (write.patch["status"] for write in writes if isinstance(write, Patch) and write.subresource == "status")
        assert changed["state"]["phase"] == end


def test_a_task_that_is_complete_comes_before_the_end_of_the_job() -> None:
    """The master has done its work, and its workers were told to end, while no controller looked."""
    master = task("m", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}])
    stage = running(vcjob(tasks=[master, task("w", replicas=2)]))
    for name in stage.names(kinds.POD):
        ended = {"phase": "Succeeded" if name == "train-m-0" else "Failed"}
        stage.lister.put(merged(stage.get(kinds.POD, name), {"status": ended}))
    again = Stage(*(each for kind in stage.lister.kinds() for each in stage.lister.all(kind)), now=stage.now)
    assert phase(again) == "Completed"


def test_a_user_suspends_and_resumes_a_job() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    stage.command("AbortJob", stage.get(kinds.JOB, "train"))
    assert stage.names(kinds.COMMAND) == []
    stage.kubelet_ends()
    assert phase(stage) == "Aborted"
    assert stage.names(kinds.POD_GROUP) == []
    stage.assert_settled()
    stage.command("ResumeJob", stage.get(kinds.JOB, "train"))
    assert phase(stage) == "Pending"
    stage.let_in()
    assert len(stage.names(kinds.POD)) == 2
    assert annotations_of(stage.get(kinds.POD, "train-w-0"))[key.JOB_VERSION] != "0"


def test_an_order_that_was_taken_is_tried_until_it_is_done_and_not_after() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)]))
    job, (jobs,) = stage.get(kinds.JOB, "train"), [each for each in stage.loop.controllers if each.name == "job"]
    stage.lister.apply(Create(stage.order("AbortJob", job)))
    taking = jobs.reconcile(JobEvent("default", "train"), stage.lister, 0.0)
    assert [type(write) for write in taking.writes] == [Delete, Emit] and taking.writes[0].surely
    stage.lister.apply(taking.writes[0])
    (_, order), _ = taking.later
    for _ in range(2):  # the first time its writes failed
        assert "train-w-0" in {write.name for write in jobs.reconcile(order, stage.lister, 0.0).writes if isinstance(write, Delete)}
    for other in (order._replace(uid="of-an-earlier-job"), order._replace(version=order.version - 1, action="RestartJob")):
        assert not any(isinstance(write, Delete) for write in jobs.reconcile(other, stage.lister, 0.0).writes)


def _orders(stage: Stage, *actions: str) -> None:
    """A user gives several orders, one right after the other: the names of their Commands are in no order."""
    for number, action in enumerate(actions):
        order = stage.order(action, stage.get(kinds.JOB, "train"))
        order["metadata"] |= {"name": f"z{9 - number}", "creationTimestamp": "2027-01-15T08:00:00Z"}
        stage.loop.observe(stage.lister.apply(Create(order)))
    stage.settle()
    stage.kubelet_ends()


def test_orders_are_carried_out_in_the_order_in_which_they_were_given() -> None:
    stage = running(vcjob(tasks=[task(replicas=2)], maxRetry=9))
    _orders(stage, "AbortJob", "ResumeJob")
    assert phase(stage) == "Pending"
    stage.let_in()
    stage.bind()
    stage.pods("Running")
    _orders(stage, "AbortJob", "ResumeJob", "AbortJob")
    assert phase(stage) == "Aborted"
    _orders(stage, "ResumeJob", "AbortJob")
    assert phase(stage) == "Aborted"
    assert stage.names(kinds.COMMAND) == []


def test_an_order_to_a_job_that_restarts_is_not_lost() -> None:
    """Neither if it restarts already, nor if it begins to while the order is on its way."""
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    stage = running(vcjob(tasks=[task(replicas=2)], policies=policies))
    stage.pods("Failed", "train-w-0")
    assert phase(stage) == "Restarting"
    _orders(stage, "AbortJob")
    assert phase(stage) == "Aborted"
    stage = running(vcjob(tasks=[task(replicas=2)], policies=policies))
    (jobs,) = stage.loop.controllers
    stage.lister.apply(Create(stage.order("AbortJob", stage.get(kinds.JOB, "train"))))
    taking = jobs.reconcile(JobEvent("default", "train"), stage.lister, stage.now)
    stage.loop.observe(stage.lister.apply(taking.writes[0]))
    stage.pods("Failed", "train-w-0")
    assert phase(stage) == "Restarting"
    for _, order in taking.later:
        stage.loop.queue.add(jobs, order)
    stage.settle()
    stage.kubelet_ends()
    assert phase(stage) == "Aborted"


def test_an_end_that_was_begun_is_gone_on_with() -> None:
    """Whether a server failed in the middle or the controllers: pods that are gone meanwhile are no reason to begin anew."""
    stage = running(vcjob(tasks=[task(replicas=3)], policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    (jobs,) = stage.loop.controllers
    order = JobEvent("default", "train", uid="uid-train", action="AbortJob")
    begun = [write for write in jobs.reconcile(order, stage.lister, stage.now).writes if not isinstance(write, Emit)]
    for write in begun[: len(begun) // 2]:
        stage.lister.apply(write)
    again = Stage(*(each for kind in stage.lister.kinds() for each in stage.lister.all(kind)), now=stage.now)
    again.kubelet_ends()
    assert (phase(again), again.names(kinds.POD), again.names(kinds.POD_GROUP)) == ("Aborted", [], [])


def test_a_job_that_names_no_queue_waits_for_the_default_queue() -> None:
    job = vcjob()
    del job["spec"]["queue"]
    stage = Stage(job)
    assert status(stage)["state"]["reason"] == "QueueNotFound"
    stage.add(queue("other"), queue())
    assert "reason" not in status(stage)["state"]
    assert len(stage.names(kinds.POD_GROUP)) == 1


def test_a_task_waits_for_the_tasks_it_depends_on() -> None:
    members = [task("ps"), task("w", replicas=2, dependsOn={"name": ["ps"]})]
    stage = play(vcjob(tasks=members, minAvailable=1))
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-ps-0"]
    stage.bind()
    stage.pods("Running")
    assert stage.names(kinds.POD) == ["train-ps-0", "train-w-0", "train-w-1"]


def test_with_any_one_ready_dependency_is_enough() -> None:
    waits = {"w": ("any", ["a", "b"]), "x": ("all", ["a", "b"]), "y": ("any", ["a"])}
    members = [task(name, dependsOn={"name": names, "iteration": iteration}) for name, (iteration, names) in waits.items()]
    stage = play(vcjob(tasks=[task("a"), task("b"), *members], minAvailable=1))
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-a-0", "train-b-0"]
    stage.bind("train-b-0")
    stage.pods("Succeeded", "train-b-0")
    assert stage.names(kinds.POD) == ["train-a-0", "train-b-0", "train-w-0"]


def test_a_dependency_is_ready_once_its_minimum_has_ready_containers_and_at_once_without_one() -> None:
    several = [task("ps", 2, minAvailable=1), {**task("x"), "minAvailable": None}]
    stage = play(vcjob(tasks=[*several, task("w", dependsOn={"name": ["ps"]}), task("y", dependsOn={"name": ["x"]})], minAvailable=1))
    stage.let_in()
    assert stage.names(kinds.POD) == ["train-ps-0", "train-ps-1", "train-x-0", "train-y-0"]
    stage.bind()
    half = [{"name": "main", "ready": True}, {"name": "side", "ready": False}]
    stage.change(kinds.POD, "train-ps-0", {"status": {"phase": "Running", "containerStatuses": half}})
    assert "train-w-0" not in stage.names(kinds.POD)
    stage.pods("Running", "train-ps-1")
    assert "train-w-0" in stage.names(kinds.POD)


def test_a_job_that_asks_for_what_its_tasks_ask_for_needs_successes_of_each() -> None:
    for minimum, end in ((2, "Failed"), (1, "Completed")):
        stage = running(vcjob(tasks=[task("a", 2, minAvailable=1), task("b", 1)], minAvailable=minimum))
        stage.pods("Succeeded", "train-a-0", "train-a-1")
        stage.pods("Failed", "train-b-0")
        assert phase(stage) == end


def test_enough_successes_complete_a_job_and_end_its_other_pods() -> None:
    stage = running(vcjob(tasks=[task(replicas=3)], minSuccess=1))
    stage.pods("Succeeded", "train-w-0")
    assert phase(stage) == "Completed"
    stage.kubelet_ends()
    assert stage.names(kinds.POD) == ["train-w-0"]
    stage.assert_settled()


def test_a_request_that_cannot_be_carried_out_ends_the_job() -> None:
    jobs = Jobs(fixed_key_pair)
    stage = running(vcjob())
    assert isinstance(jobs, GivesUp) and jobs.max_failures == 15
    stage.loop.queue.add(jobs, jobs.gave_up(JobEvent("default", "train")))
    stage.settle()
    stage.kubelet_ends()
    assert phase(stage) == "Terminated"


def test_a_job_that_is_not_placed_says_why_until_it_is() -> None:
    stage = play(vcjob())
    why = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable"
    condition = {"type": "Unschedulable", "status": "True", "message": why}
    for at in ("Pending", "Inqueue"):
        stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": at, "conditions": [{**condition, "message": f"{why} {at}"}]}})
        assert status(stage)["state"]["message"].endswith(at)
    stage.lister.emitted.clear()
    stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"conditions": [condition]}})
    told = f"PodGroup default:train unschedule,reason: {why}"
    assert (status(stage)["state"]["reason"], status(stage)["state"]["message"]) == ("PodGroupPending", told)
    assert [event.message for event in stage.lister.emitted if event.reason == "PodGroupPending"] == [told]
    stage.assert_settled()
    stage.change(kinds.POD_GROUP, "train-uid-train", {"status": {"phase": "Running"}})
    assert "message" not in status(stage)["state"]
    stage.assert_settled()
