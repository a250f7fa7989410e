"""JobFlows start jobs from templates as their dependencies come true."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import Object, labels_of
from pumice.controllers.volcano.jobflow import JobFlows
from pumice.controllers.volcano.jobtemplate import JobTemplates
from tests.controllers.stage import Stage, plain_pod, task, vcjob

FLOW = "flow.volcano.sh/v1alpha1"


def template(name: str) -> Object:
    meta = {"name": name, "namespace": "default", "labels": {"team": "red"}}
    return {"apiVersion": FLOW, "kind": "JobTemplate", "metadata": meta, "spec": vcjob()["spec"]}


def flow(*steps: Object, **spec: Any) -> Object:
    meta = {"name": "f", "namespace": "default", "uid": "uid-f"}
    return {"apiVersion": FLOW, "kind": "JobFlow", "metadata": meta, "spec": {"flows": list(steps), **spec}}


def step(name: str, *targets: str, **more: Any) -> Object:
    depends = {"dependsOn": {"targets": list(targets), **more}} if targets else {}
    return {"name": name, **depends}


def play(*objects: Object, reachable: Any = lambda probe: True) -> Stage:
    return Stage(*objects, controllers=[JobFlows(reachable), JobTemplates()])


def reach(stage: Stage, job: str, phase: str, **status: Any) -> None:
    state = {"phase": phase, "lastTransitionTime": "2027-01-15T09:00:00Z"}
    stage.change(kinds.JOB, job, {"status": {"state": state, **status}})


def status(stage: Stage) -> Object:
    found: Object = stage.get(kinds.JOB_FLOW, "f")["status"]
    return found


def test_a_step_waits_for_the_steps_before_it() -> None:
    stage = play(template("a"), template("b"), template("c"), flow(step("a"), step("b"), step("c", "a", "b")))
    assert stage.names(kinds.JOB) == ["f-a", "f-b"]
    assert labels_of(stage.get(kinds.JOB, "f-a")) == {
        "team": "red",
        "volcano.sh/createdByJobFlow": "default.f",
        "volcano.sh/createdByJobTemplate": "default.a",
    }
    assert stage.get(kinds.JOB_TEMPLATE, "a")["status"] == {"jobDependsOnList": ["f-a"]}
    assert status(stage)["state"]["phase"] == "Pending", "no job of it runs yet"
    reach(stage, "f-a", "Running")
    assert status(stage)["runningJobs"] == ["f-a"] and status(stage)["state"]["phase"] == "Running"
    reach(stage, "f-a", "Completed")
    assert stage.names(kinds.JOB) == ["f-a", "f-b"]
    reach(stage, "f-b", "Completed")
    assert stage.names(kinds.JOB) == ["f-a", "f-b", "f-c"]
    reach(stage, "f-c", "Completed")
    assert status(stage)["state"]["phase"] == "Succeed"
    assert status(stage)["completedJobs"] == ["f-a", "f-b", "f-c"]
    assert [each["state"] for each in status(stage)["jobStatusList"]] == ["Completed"] * 3
    created = stage.get(kinds.JOB, "f-a")["metadata"]["creationTimestamp"]
    assert status(stage)["jobStatusList"][0] == {
        "name": "f-a",
        "state": "Completed",
        "startTimestamp": created,
        "endTimestamp": "2027-01-15T09:00:00Z",
        "restartCount": 0,
        "runningHistories": [
            {"state": "Running", "startTimestamp": "2027-01-15T09:00:00Z", "endTimestamp": "2027-01-15T09:00:00Z"},
            {"state": "Completed", "startTimestamp": "2027-01-15T09:00:00Z"},
        ],
    }
    stage.assert_settled()


def test_a_step_that_stands_twice_is_one_step() -> None:
    stage = play(template("a"), flow(step("a"), step("a")))
    assert stage.names(kinds.JOB) == ["f-a"]
    reach(stage, "f-a", "Completed")
    assert status(stage)["completedJobs"] == ["f-a"] and status(stage)["state"]["phase"] == "Succeed"


def test_a_step_waits_for_its_template_and_a_flow_has_no_status_before_there_is_something_to_say() -> None:
    stage = play(flow(step("a")))
    assert "status" not in stage.get(kinds.JOB_FLOW, "f")
    stage.add(template("a"))
    assert status(stage)["state"]["phase"] == "Pending" and stage.names(kinds.JOB) == ["f-a"]


def test_a_flow_tells_how_its_jobs_stand_and_what_they_went_through() -> None:
    stage = play(template("a"), flow(step("a"), jobRetainPolicy="delete"))
    created = stage.get(kinds.JOB, "f-a")["metadata"]["creationTimestamp"]
    assert status(stage)["conditions"] == {"f-a": {"createTime": created}}
    assert "runningHistories" not in status(stage)["jobStatusList"][0]
    phases = [("Pending", "01"), ("Running", "02"), ("Restarting", "03"), ("Running", "04"), ("Completed", "05")]
    counted = {"w": {"phase": {"Running": 2}}}
    for phase, hour in phases:
        moved = {"state": {"phase": phase, "lastTransitionTime": f"2027-01-15T{hour}:00:00Z"}, "runningDuration": f"{hour}h"}
        stage.change(kinds.JOB, "f-a", {"status": {**moved, "taskStatusCount": counted}})
        if phase == "Restarting":
            restarting = {"phase": phase, "createTime": created, "runningDuration": "03h", "taskStatusCount": counted}
            assert status(stage)["conditions"] == {"f-a": restarting}
    assert stage.names(kinds.JOB) == [], "and this is told of jobs that are gone, too"
    histories = status(stage)["jobStatusList"][0]["runningHistories"]
    assert [(each["state"], each["startTimestamp"][11:13]) for each in histories] == phases
    assert [each.get("endTimestamp", "")[11:13] for each in histories] == ["02", "03", "04", "05", ""]
    assert status(stage)["conditions"]["f-a"]["phase"] == "Completed"
    stage.assert_settled()


def test_a_job_made_anew_under_its_name_has_a_history_of_its_own() -> None:
    stage = play(template("a"), flow(step("a")))
    reach(stage, "f-a", "Running")
    stage.wait(60)
    stage.delete(kinds.JOB, "f-a")
    assert stage.names(kinds.JOB) == ["f-a"]
    assert "runningHistories" not in status(stage)["jobStatusList"][0]


def test_a_failed_step_fails_the_flow() -> None:
    stage = play(template("a"), template("b"), flow(step("a"), step("b", "a")))
    reach(stage, "f-a", "Failed")
    assert status(stage)["state"]["phase"] == "Failed"
    assert stage.names(kinds.JOB) == ["f-a"]


def test_the_jobs_of_a_flow_that_succeeded_go_if_asked() -> None:
    stage = play(template("a"), flow(step("a"), jobRetainPolicy="delete"))
    reach(stage, "f-a", "Completed")
    assert stage.names(kinds.JOB) == []
    assert status(stage)["state"]["phase"] == "Succeed"
    stage.assert_settled()


def test_a_probe_lets_a_step_start_before_the_other_is_done() -> None:
    probe = {"taskStatusList": [{"taskName": "w", "phase": "Running"}]}
    stage = play(template("a"), template("b"), flow(step("a"), step("b", "a", probe=probe)))
    assert stage.names(kinds.JOB) == ["f-a"]
    reach(stage, "f-a", "Running", taskStatusCount={"w": {"phase": {"Running": 1}}})
    assert stage.names(kinds.JOB) == ["f-a", "f-b"]


def test_probes_of_the_network_are_asked_again_until_something_answers() -> None:
    up: set[tuple[str, tuple[str, str] | None]] = set()
    get = {"taskName": "w", "path": "/ok", "port": 80, "httpHeader": {"name": "X-For", "value": "flow"}}
    probe = {"httpGetList": [get], "tcpSocketList": [{"taskName": "w", "port": 22}]}
    objects = (template("a"), template("b"), flow(step("a"), step("b", "a", probe=probe)))
    stage = play(*objects, reachable=lambda probe: probe in up)
    assert play(*objects).names(kinds.JOB) == ["f-a"], "there is no pod yet"
    for number, address in enumerate(("10.0.0.1", "fd00::1")):
        pod = plain_pod(f"f-a-w-{number}", stage.get(kinds.JOB, "f-a"), {key.TASK_SPEC: "w"})
        stage.add({**pod, "status": {"podIP": address}}, plain_pod(f"f-a-x-{number}", stage.get(kinds.JOB, "f-a"), {key.TASK_SPEC: "x"}))
    stage.wait(5)
    assert stage.names(kinds.JOB) == ["f-a"]
    header = ("X-For", "flow")
    asked = {
        ("http://10.0.0.1:80/ok", header),
        ("http://[fd00::1]:80/ok", header),
        ("tcp://10.0.0.1:22", None),
        ("tcp://[fd00::1]:22", None),
    }
    for silent in asked:
        up.clear()
        up |= asked - {silent}
        stage.wait(5)
        assert stage.names(kinds.JOB) == ["f-a"], "all must answer"
    up |= asked
    stage.wait(5)
    assert stage.names(kinds.JOB) == ["f-a", "f-b"]


@pytest.mark.parametrize("called", ["spec", "jobSpec"])
def test_a_step_may_change_its_template(called: str) -> None:
    """As documented: tasks and containers are found by name, and only what differs is written."""
    stored = template("a")
    variables = [{"name": "LEVEL", "value": "1"}, {"name": "KEPT", "value": "x"}]
    stored["spec"]["tasks"] = [task("w"), task("ps")]
    stored["spec"]["tasks"][0]["template"]["spec"]["containers"][0] |= {"command": ["sleep", "1"], "env": variables}
    more = {"name": "sidecar", "image": "busybox"}
    container = {
        "name": "main",
        "command": ["sleep"],
        "resources": {"requests": {"memory": "1Gi"}},
        "env": [{"name": "LEVEL", "value": "2"}],
    }
    pod = {"containers": [container, more], "volumes": [{"name": "data", "emptyDir": {}}], "securityContext": {"runAsUser": 7}}
    patch = {"queue": "gold", "tasks": [{"name": "w", "template": {"spec": pod}}], "plugins": {"env": []}}
    stage = play(stored, flow({"name": "a", "patch": {called: patch}}))
    spec = stage.get(kinds.JOB, "f-a")["spec"]
    assert (spec["queue"], spec["plugins"], [each["name"] for each in spec["tasks"]]) == ("gold", {"env": []}, ["w", "ps"])
    assert spec["tasks"][1] == task("ps")
    made = spec["tasks"][0]["template"]["spec"]
    assert made["containers"] == [
        {
            "name": "main",
            "image": "busybox",
            "command": ["sleep"],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            "env": [{"name": "LEVEL", "value": "2"}, {"name": "KEPT", "value": "x"}],
        },
        more,
    ]
    assert (made["volumes"], made["securityContext"]) == ([{"name": "data", "emptyDir": {}}], {"runAsUser": 7})
    assert stage.get(kinds.JOB_TEMPLATE, "a")["spec"] == stored["spec"]


def test_a_task_that_a_step_does_not_name_is_the_one_at_its_place() -> None:
    new_image = {"template": {"spec": {"containers": [{"image": "new"}]}}}
    stage = play(template("a"), flow({"name": "a", "patch": {"spec": {"tasks": [new_image, {"name": "x", "replicas": 2}]}}}))
    first, second = stage.get(kinds.JOB, "f-a")["spec"]["tasks"]
    assert (first["name"], first["template"]["spec"]["containers"][0]["name"]) == ("w", "main")
    assert (first["template"]["spec"]["containers"][0]["image"], second) == ("new", {"name": "x", "replicas": 2})


def test_a_step_whose_names_are_too_long_for_a_label_is_annotated_only() -> None:
    long = "t" * 60
    stage = play(template(long), flow({"name": long}))
    job = stage.get(kinds.JOB, f"f-{long}")
    assert labels_of(job) == {"team": "red", "volcano.sh/createdByJobFlow": "default.f"}
    assert job["metadata"]["annotations"]["volcano.sh/createdByJobTemplate"] == f"default.{long}"
    assert stage.get(kinds.JOB_TEMPLATE, long)["status"] == {"jobDependsOnList": [f"f-{long}"]}


def test_a_flow_that_is_on_its_way_out_says_so_and_starts_nothing() -> None:
    going = flow(step("a"), step("b", "a"))
    going["metadata"] |= {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["foregroundDeletion"]}
    stage = play(template("a"), template("b"), going)
    assert (status(stage)["state"], stage.names(kinds.JOB)) == ({"phase": "Terminating"}, [])
    stage.assert_settled()
