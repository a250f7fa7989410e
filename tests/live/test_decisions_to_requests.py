"""From decisions to requests: exact bodies, written only on change. No server here."""

from __future__ import annotations

from typing import Any

import pytest

from pumice import testing
from pumice.api.kinds import POD_GROUPS, QUEUES, ObjectRef
from pumice.api.times import instant
from pumice.live.scheduler.decisions_to_requests import requests_of
from pumice.live.scheduler.group_status import new_at
from pumice.live.scheduler.pod_condition import apply_mark
from pumice.live.scheduler.requests import BindPod, EvictPod, MarkPod, Requests, WriteStatus
from pumice.live.scheduler.sent_status import SentStatus
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import (
    Bind,
    Conclusion,
    Decisions,
    Evict,
    GroupCondition,
    GroupEvent,
    GroupStatus,
    JobOutcome,
    Pipelined,
    Unsaid,
    Waiting,
)
from pumice.scheduler.framework.job_classes import Member
from pumice.scheduler.framework.profiles import ExtenderSpec
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing import NOW, node, pod, podgroup, queue

N1 = node("n1").has(cpu=4, memory="8Gi", gpu=2).pods(10).build()
AT = "2026-01-01T00:00:00Z"
SHORT = GroupCondition("Unschedulable", "NotEnoughResources", "1/1 tasks in gang unschedulable: x")
READY = GroupCondition("Scheduled", "tasks in gang are ready to be scheduled", "")


@pytest.fixture
def cluster() -> Cluster:
    waiting = pod("p", "ns").gang("train").asks(cpu="1500m", memory="1Gi", gpu=1).having("metadata", "uid", value="uid-p")
    train = podgroup("train", namespace="ns").queue("default").having("metadata", "uid", value="g")
    return testing.cluster(queue("root"), queue("default"), train, waiting)


def of(cluster: Cluster, decisions: Decisions, sent_status: SentStatus | None = None, now: float = NOW) -> Requests:
    return requests_of(cluster, decisions, sent_status or SentStatus(), now, "cycle-1")


def groups(asked: Requests) -> list[WriteStatus]:
    return [write for write in asked.statuses if write.kind == POD_GROUPS]


def queues(asked: Requests) -> list[WriteStatus]:
    return [write for write in asked.statuses if write.kind == QUEUES]


def of_queue(name: str, held: dict[str, str]) -> WriteStatus:
    return WriteStatus(ObjectRef(name), QUEUES, {"allocated": held}, {})


def group(cluster: Cluster, phase: str, condition: GroupCondition | None = None, hypernode: str = "") -> Decisions:
    return Decisions(groups=[GroupStatus(cluster.jobs["ns/train"], phase, condition, hypernode)])


def test_a_bind_names_the_very_pod_and_what_plugins_write_with_it(cluster: Cluster) -> None:
    asked = of(cluster, Decisions(binds=[Bind(cluster.tasks["ns/p"], "n1", {"volcano.sh/gpu-index": "0"})]))
    assert asked.binds == [BindPod(ObjectRef("p", "ns", "uid-p"), "n1", {"volcano.sh/gpu-index": "0"})]


def test_a_bind_that_is_left_to_an_extender_says_to_which(cluster: Cluster) -> None:
    binder = ExtenderSpec("http://extender", bind_verb="bind")
    asked = of(cluster, Decisions(binds=[Bind(cluster.tasks["ns/p"], "n1", {}, binder)]))
    assert asked.binds[0].binder is binder


def test_an_eviction_is_told_on_the_pod_and_on_its_group(cluster: Cluster) -> None:
    asked = of(cluster, Decisions(evictions=[Evict(cluster.tasks["ns/p"], "n1", "ns/other", "preempt")]))
    assert asked.evictions == [EvictPod(ObjectRef("p", "ns", "uid-p"), "Pod is evicted, because of preempt for ns/other", "volcano")]
    assert [(e.regarding.kind, e.type, e.reason, e.message) for e in asked.events] == [
        ("Pod", "Warning", "Evict", "Pod is evicted, because of preempt for ns/other"),
        ("PodGroup", "Normal", "Evict", "p: preempt for ns/other"),
    ]


def test_a_waiting_pod_is_marked_once_for_each_reason(cluster: Cluster) -> None:
    sent_status = SentStatus()
    waiting = Decisions(waiting=[Waiting(cluster.tasks["ns/p"], "Unschedulable", "0/3 nodes")])
    asked = of(cluster, waiting, sent_status)
    assert asked.marks == [MarkPod(ObjectRef("p", "ns", "uid-p"), "Unschedulable", "0/3 nodes", None)]
    assert [(e.reason, e.message) for e in asked.events] == [("FailedScheduling", "0/3 nodes")]
    assert not of(cluster, waiting, sent_status)
    changed = Decisions(waiting=[Waiting(cluster.tasks["ns/p"], "Unschedulable", "0/4 nodes")])
    assert [mark.message for mark in of(cluster, changed, sent_status).marks] == ["0/4 nodes"]


@pytest.mark.parametrize(
    ("text", "after_s", "news"),
    [
        ("1 Pending. Not let in: 6 of 8 held", 59, False),
        ("1 Pending. Not let in: 6 of 8 held", 60, True),
        ("1 Pending. Not let in: 6 of 8 promised", 0, True),
        ("2 Pending. Not let in: 5 of 8 held", 0, True),
        ("1 Pending", 0, True),
    ],
)
def test_a_pod_is_marked_again_after_a_minute_if_only_amounts_changed_that_only_we_tell(
    cluster: Cluster, text: str, after_s: float, news: bool
) -> None:
    sent_status, task = SentStatus(), cluster.tasks["ns/p"]
    for at, message, is_marked in ((0, "1 Pending. Not let in: 5 of 8 held", True), (after_s, text, news)):
        asked = of(cluster, Decisions(waiting=[Waiting(task, "Unschedulable", message)]), sent_status, NOW + at)
        assert [mark.message for mark in asked.marks] == [event.message for event in asked.events] == [message] * is_marked


def test_amounts_that_changed_are_written_after_a_minute_though_nothing_changes_then(cluster: Cluster) -> None:
    sent_status, job = SentStatus(), cluster.jobs["ns/train"]
    for at, held, marks in ((0, 5, 1), (1, 6, 0), (2, 6, 0), (59, 6, 0), (60, 6, 1), (61, 6, 0)):
        pods = [(0, "Unschedulable", f"1 Pending. Not let in: {held} of 8 held")]
        waiting = Decisions()
        waiting.tell(Conclusion([JobOutcome([Member.of(job)], "Pending", None, "", pods)], [], [], Unsaid([], 0)))
        assert len(of(cluster, waiting, sent_status, NOW + at).marks) == marks, at


def test_a_pod_for_whom_others_were_evicted_gets_its_node_nominated(cluster: Cluster) -> None:
    task = cluster.tasks["ns/p"]
    asked = of(cluster, Decisions(waiting=[Waiting(task, "Unschedulable", "m")], nominations={task: "n1"}))
    assert asked.marks[0].nominated == "n1"
    asked = of(cluster, Decisions(waiting=[Waiting(task, "Unschedulable", "m")], pipelined=[Pipelined(task, "n1")]))
    assert asked.marks[0].nominated is None


def test_a_nomination_that_is_taken_back_is_written_as_empty(cluster: Cluster) -> None:
    task = cluster.tasks["ns/p"]
    asked = of(cluster, Decisions(waiting=[Waiting(task, "Unschedulable", "m")], nominations={task: ""}))
    assert asked.marks[0].nominated == ""


def test_a_group_is_written_with_its_phase_and_condition(cluster: Cluster) -> None:
    asked = of(cluster, group(cluster, "Inqueue", SHORT))
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "transitionID": "cycle-1",
        "lastTransitionTime": AT,
        "reason": "NotEnoughResources",
        "message": "1/1 tasks in gang unschedulable: x",
    }
    assert groups(asked) == [WriteStatus(ObjectRef("train", "ns", "g"), POD_GROUPS, {"phase": "Inqueue", "conditions": [condition]}, {})]
    assert [(e.regarding.kind, e.type, e.reason) for e in asked.events] == [("PodGroup", "Warning", "Unschedulable")]


def test_a_group_that_stays_as_it_is_is_not_written_again_and_told_again_ever_more_rarely(cluster: Cluster) -> None:
    sent_status = SentStatus()
    keep_raw = []
    of(cluster, group(cluster, "Inqueue", SHORT), sent_status)
    for second in range(1, 121):
        asked = of(cluster, group(cluster, "Inqueue", SHORT), sent_status, NOW + second)
        assert not groups(asked)
        keep_raw += [(second, event.reason) for event in asked.events]
    assert keep_raw == [(second, "Unschedulable") for second in (2, 6, 14, 30, 60, 90, 120)]


def test_what_a_complaint_holds_is_not_told_besides(cluster: Cluster) -> None:
    job, sent_status = cluster.jobs["ns/train"], SentStatus()
    why = GroupEvent(job, "Normal", "Unschedulable", "1/1 tasks in gang unschedulable: x")
    other = GroupEvent(job, "Normal", "Unschedulable", "queue resource quota insufficient")
    both = of(cluster, Decisions(events=[why, other], groups=group(cluster, "Pending", SHORT).groups), sent_status)
    assert [(event.type, event.message) for event in both.events] == [("Normal", other.message), ("Warning", SHORT.message)]
    assert of(cluster, Decisions(events=[why]), sent_status, NOW + 1).events == []


def test_conditions_of_other_types_stay(cluster: Cluster) -> None:
    sent_status = SentStatus()
    of(cluster, group(cluster, "Inqueue", SHORT), sent_status)
    written = groups(of(cluster, group(cluster, "Running", READY), sent_status))[0].status
    assert [c["type"] for c in written["conditions"]] == ["Unschedulable", "Scheduled"]
    assert "message" not in written["conditions"][1]


def test_counters_are_left_out_when_zero(cluster: Cluster) -> None:
    cluster.put(*N1)
    cluster.move(cluster.tasks["ns/p"], status.RUNNING, 0)
    assert groups(of(cluster, group(cluster, "Running")))[0].status == {"phase": "Running", "running": 1}


def test_the_topology_domain_is_written_and_taken_away(cluster: Cluster) -> None:
    sent_status = SentStatus()
    key = "volcano.sh/job-allocated-hypernode"
    assert groups(of(cluster, group(cluster, "Running", None, "rack-1"), sent_status))[0].annotations == {key: "rack-1"}
    assert not groups(of(cluster, group(cluster, "Running", None, "rack-1"), sent_status))
    assert groups(of(cluster, group(cluster, "Running", None, ""), sent_status))[0].annotations == {key: None}


def test_a_status_that_overtakes_another_still_writes_the_topology_domain(cluster: Cluster) -> None:
    """Of two requests that wait for one PodGroup only the newest is made."""
    sent_status = SentStatus()
    written = {"volcano.sh/job-allocated-hypernode": "rack-1"}
    assert groups(of(cluster, group(cluster, "Inqueue", None, "rack-1"), sent_status))[0].annotations == written
    assert groups(of(cluster, group(cluster, "Running", None, "rack-1"), sent_status))[0].annotations == written


def test_queues_write_what_they_hold_up_to_the_root_once(cluster: Cluster) -> None:
    sent_status = SentStatus()
    nothing = {"cpu": "0", "memory": "0"}
    assert queues(of(cluster, Decisions(), sent_status)) == [of_queue("root", nothing), of_queue("default", nothing)]
    assert not queues(of(cluster, Decisions(), sent_status))
    cluster.put(*N1)
    cluster.move(cluster.tasks["ns/p"], status.BOUND, 0)
    held = {"cpu": "1500m", "memory": "1Gi", "pods": "1", "nvidia.com/gpu": "1"}
    assert queues(of(cluster, Decisions(), sent_status)) == [of_queue("root", held), of_queue("default", held)]
    assert not queues(of(cluster, Decisions(), sent_status))


def test_jobs_of_a_queue_that_is_gone_are_in_no_sum() -> None:
    running = podgroup("train").queue("gone"), pod("p").gang("train").cpu(1).on("n")
    made = testing.cluster(node("n").cpu(9), queue("root"), *running)
    nothing = {"cpu": "0", "memory": "0"}
    assert queues(of(made, Decisions())) == [of_queue("default", nothing), of_queue("root", nothing)]


def test_a_queue_is_written_at_most_once_a_period(cluster: Cluster) -> None:
    sent_status = SentStatus(1.0)
    assert queues(of(cluster, Decisions(), sent_status))
    cluster.put(*N1)
    cluster.move(cluster.tasks["ns/p"], status.BOUND, 0)
    assert not queues(of(cluster, Decisions(), sent_status, NOW + 0.9))
    assert not sent_status.queues_are_due(NOW + 0.9)
    assert len(queues(of(cluster, Decisions(), sent_status, NOW + 1.0))) == 2
    assert sent_status.queues_are_due(NOW + 2.0)


def test_that_a_gang_is_scheduled_is_written_when_its_binds_are_answered(cluster: Cluster) -> None:
    """Then its PodGroup is Running, so that one write tells both."""
    sent_status = SentStatus(1.0)
    assert groups(of(cluster, group(cluster, "Inqueue"), sent_status))
    cluster.put(*N1)
    cluster.move(cluster.tasks["ns/p"], status.BINDING, 0)
    assert not groups(of(cluster, group(cluster, "Inqueue", READY), sent_status))
    cluster.move(cluster.tasks["ns/p"], status.BOUND, 0)
    (write,) = groups(of(cluster, group(cluster, "Running", READY), sent_status))
    assert write.status["phase"] == "Running" and [each["type"] for each in write.status["conditions"]] == ["Scheduled"]


def test_a_queue_without_a_state_is_left_to_its_controller_until_it_holds_something(cluster: Cluster) -> None:
    cluster.put(*queue("root").state("").build())
    cluster.put(*N1)
    sent_status = SentStatus()
    assert [write.ref.name for write in queues(of(cluster, Decisions(), sent_status))] == ["default"]
    cluster.move(cluster.tasks["ns/p"], status.BOUND, 0)
    assert [write.ref.name for write in queues(of(cluster, Decisions(), sent_status))] == ["root", "default"]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({}, {"phase": ""}, True),
        ({"phase": "Running", "running": 0}, {"phase": "Running"}, True),
        ({"conditions": [{"type": "A", "lastTransitionTime": AT}]}, {"conditions": [{"type": "A", "transitionID": "x"}]}, True),
        ({"conditions": [{"type": "A", "message": "m"}]}, {"conditions": [{"type": "A"}]}, False),
        ({"running": 1}, {"running": 2}, False),
    ],
)
def test_statuses_are_compared_by_what_they_say(left: dict[str, Any], right: dict[str, Any], same: bool) -> None:
    assert (new_at(left, right) <= NOW) is not same


@pytest.mark.parametrize(("text", "after_s", "news"), [("6 cpu short", 59, False), ("6 cpu short", 60, True), ("6 memory short", 0, True)])
def test_a_condition_in_which_only_amounts_changed_is_written_again_after_a_minute(text: str, after_s: float, news: bool) -> None:
    before, after = (
        {"conditions": [{"type": "A", "message": sent_status, "lastTransitionTime": AT}]} for sent_status in ("5 cpu short", text)
    )
    assert (new_at(before, after) <= instant(AT) + after_s) is news


def test_an_event_in_which_only_amounts_changed_is_no_news() -> None:
    sent_status = SentStatus()
    keep_raw = ["1 cpu of n-1 short", "2500m cpu of n-1 short", "1 cpu of n-2 short", "1 memory of n-2 short"]
    assert [sent_status.is_new("uid", "Unschedulable", text, NOW) for text in keep_raw] == [True, False, True, True]


def test_a_mark_leaves_a_pod_alone_that_was_placed_meanwhile() -> None:
    request = MarkPod(ObjectRef("p", "ns"), "Unschedulable", "m", "n1")
    placed: dict[str, Any] = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    assert not apply_mark(placed, request, AT) and "nominatedNodeName" not in placed
    waiting: dict[str, Any] = {"phase": "Pending"}
    assert apply_mark(waiting, request, AT) and waiting["nominatedNodeName"] == "n1"
    assert waiting["conditions"][0] | {"lastProbeTime": None} == {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": AT,
        "reason": "Unschedulable",
        "message": "m",
    }
    assert not apply_mark(waiting, request, "2026-01-02T00:00:00Z"), "nothing new"


def test_what_was_told_of_a_group_is_forgotten_with_it(cluster: Cluster) -> None:
    sent_status, waits = SentStatus(), group(cluster, "Pending", SHORT)
    assert of(cluster, waits, sent_status).events
    assert not of(cluster, waits, sent_status).events
    sent_status.forget_group(cluster.jobs["ns/train"].uid)
    assert of(cluster, waits, sent_status).events


def test_of_a_gang_whose_pods_are_only_just_coming_nothing_is_said_until_none_has_come_for_a_period() -> None:
    train = podgroup("train", 3, namespace="ns").queue("default").having("metadata", "uid", value="g")
    room = node("n1").has(cpu=4, memory="8Gi").pods(10)
    members = [pod(f"p{number}", "ns").gang("train").asks(cpu=1).build() for number in range(3)]
    cluster, sent_status = testing.cluster(queue("root"), queue("default"), room, train), SentStatus(1.0)
    policy, _ = read_policy(DEFAULT, PLUGINS)

    def said(at: float) -> list[str]:
        asked = of(cluster, cycle(cluster, policy, NOW + at), sent_status, NOW + at)
        keep_raw = [
            write.status["phase"] + ": " + ", ".join(c["reason"] for c in write.status.get("conditions", [])) for write in groups(asked)
        ]
        return [*keep_raw, *(mark.reason for mark in asked.marks), *(event.reason for event in asked.events)]

    assert said(0.0) == ["Inqueue: "]
    cluster.put(*members[0])
    assert said(0.9) == []
    assert said(1.8) == []
    cluster.put(*members[1])
    assert said(1.9) == []
    assert said(2.9) == ["Inqueue: NotEnoughResources", *["Unschedulable"] * 2, "FailedScheduling", "FailedScheduling", "Unschedulable"]
    cluster.put(*members[2])
    assert len(of(cluster, cycle(cluster, policy, NOW + 3.0), sent_status, NOW + 3.0).binds) == 3


def claim(name: str, count: int, memory: str = "") -> testing.ObjectBuilder:
    exactly = {"deviceClassName": "gpu.example.com", "count": count, **({"capacity": {"requests": {"memory": memory}}} if memory else {})}
    return testing.manifest("ResourceClaim", name, spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}}, status={})


def claiming(name: str, group: str, *claims: str) -> testing.PodBuilder:
    refs = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
    return pod(name).gang(group).cpu(1).on("n").having("spec", "resourceClaims", value=refs)


def test_what_a_queue_holds_includes_devices_by_class_and_a_shared_claim_once() -> None:
    made = testing.cluster(
        node("n").cpu(9).pods(10),
        queue("root"),
        queue("team").parent("root"),
        podgroup("a").queue("team"),
        claim("one", 1),
        claim("two", 2, memory="4Gi"),
        claiming("p0", "a", "one", "two"),
        claiming("p1", "a", "two"),
        claiming("p2", "a", "lost"),
    )
    devices = {"deviceclass/gpu.example.com": "3", "memory.deviceclass/gpu.example.com": "8589934592"}
    sent = SentStatus()
    written = {write.ref.name: write.status["allocated"] for write in queues(of(made, Decisions(), sent))}
    assert {name: value for name, value in written["team"].items() if "deviceclass" in name} == devices
    assert written["root"] == written["team"]
    assert not queues(of(made, Decisions(), sent, NOW + 60)), "nothing has changed"
    made.remove("Pod", "default/p0")
    (again, *_) = [write for write in queues(of(made, Decisions(), sent, NOW + 120)) if write.ref.name == "team"]
    assert again.status["allocated"]["deviceclass/gpu.example.com"] == "2"
