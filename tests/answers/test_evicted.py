"""Who was evicted is told by whom, for whom, by which rule, and what that cost: from memory, from events, from conditions."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pumice.answers import Why, why
from pumice.answers.answer_text import page
from pumice.answers.lint import lint
from pumice.answers.outcome_of_cycles import course
from pumice.api.annotations import CHECKPOINT
from pumice.api.core import Event, Namespace, ObjectReference
from pumice.api.meta import Metadata
from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.api.times import rfc3339
from pumice.inputs.recording.state_file import dump
from pumice.live.scheduler.decisions_to_requests import requests_of
from pumice.live.scheduler.sent_status import SentStatus
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.eviction_events import eviction_events, take_in_evictions
from pumice.scheduler.framework.past_evictions import past_evictions
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup, priority_class
from pumice.testing.scene import NOW, policy
from tests.answers.test_commands import type_in
from tests.answers.test_lint import tiers

BY = policy("enqueue, allocate, preempt", ["priority", "gang", "conformance", "predicates"])
BECAUSE = "preempt for default/urgent, as priority, gang, conformance permit; it loses 1200 s of work on 4 GPUs"


def contested() -> Cluster:
    """A full node, and an urgent job."""
    low = podgroup("low", 0).phase("Running").annotation(CHECKPOINT, "40m")
    runs = pod("low-0").cpu(4).gpu(4).gang("low").on("n1").having("status", "startTime", value=rfc3339(NOW - 3600))
    urgent = podgroup("urgent").priority_class("high").phase("Inqueue")
    return cluster(priority_class("high", 10), node("n1").cpu(4).gpu(4), low, runs, urgent, pod("urgent").cpu(4).gpu(4).gang("urgent"))


@pytest.mark.parametrize("owners", [[], [{"kind": "ReplicaSet", "name": "low", "uid": "u", "controller": True}]])
def test_who_is_evicted_in_thought_comes_back_only_if_a_controller_makes_it_again(owners: list[dict[str, object]]) -> None:
    made = contested()
    made.put(
        "Pod", convert(pod("low-0").cpu(4).gpu(4).gang("low").on("n1").having("metadata", "ownerReferences", value=owners).document, Pod)
    )
    found = course(made, BY, NOW, None, NOWHERE)
    assert found.evicted == {"podgroup/default/low": 1}
    assert ("podgroup/default/low" in found.waits) == bool(owners)


@pytest.mark.parametrize("pods", [0, 2])
def test_a_namespace_that_is_being_deleted_is_named(pods: int) -> None:
    ends = Namespace(Metadata(name="team", deletion_timestamp=rfc3339(NOW)))
    gang = podgroup("g", 2, namespace="team").phase("Inqueue" if pods else "Pending")
    made = cluster(node("n1").cpu(4), gang, *(pod(f"g-{number}", namespace="team").cpu(1).gang("g") for number in range(pods)))
    assert why(made, BY, NOW, "job/team/g").state == "starts"
    made.put("Namespace", ends)
    told = why(made, BY, NOW, "job/team/g")
    assert told.line == "namespace team is being deleted: nothing starts in it any more"
    assert not pods or why(made, BY, NOW, "pod/team/g-0").line == told.line


def test_who_leaves_is_told_because_of_whom_and_what_is_lost() -> None:
    made = contested()
    cycle(made, BY, NOW)
    told = why(made, BY, NOW, "job/low")
    assert (told.state, told.line) == ("leaves", f"its pods are leaving, evicted because of {BECAUSE}: 1 Releasing")
    assert f"2026-01-01T00:00:00Z   default/low-0   {BECAUSE}" in page(told)
    [eviction] = told.evictions
    assert (eviction.action, eviction.beneficiary) == ("preempt", "default/urgent")
    assert (eviction.lost_s, eviction.gpus) == (1200.0, 4.0)


def test_who_came_again_is_told_why_it_waits_and_what_happened() -> None:
    made = contested()
    cycle(made, BY, NOW)
    made.remove("Pod", "default/low-0")
    assert page(why(made, BY, NOW, "pod/low-0")) == f"pod/low-0 was evicted: at 2026-01-01T00:00:00Z, because of {BECAUSE}"
    made.put(*pod("low-1").cpu(4).gpu(4).gang("low").build())
    told = why(made, BY, NOW, "podgroup/low")
    assert (told.state, [each.pod for each in told.evictions]) == ("waits", ["default/low-0"])
    assert not why(made, BY, NOW, "pod/low-1").evictions, "another pod of it was evicted"


def test_a_rehearsed_eviction_has_not_happened() -> None:
    made = contested()
    assert why(made, BY, NOW, "pod/low-0").state == "is evicted"
    assert not past_evictions(made)


def read_from(made: Cluster, path: Path, *more: dict[str, object]) -> Why:
    """As `pumice why -f` tells it: of the state that a scheduler writes into a file, and of other objects."""
    listing = json.loads(dump(made, ""))
    path.write_text(json.dumps(listing | {"items": [*listing["items"], *more]}))
    told = type_in("why", "job/low", "-f", str(path), "-o", "json", "--now", rfc3339(NOW))
    return msgspec.json.decode(told.stdout, type=Why)


def test_a_state_in_a_file_remembers(tmp_path: Path) -> None:
    made = contested()
    cycle(made, BY, NOW)
    assert read_from(made, tmp_path / "state.json").evictions == past_evictions(made)


def test_what_the_scheduler_tells_in_events_is_read_as_it_was_meant() -> None:
    made = contested()
    asked = requests_of(made, cycle(made, BY, NOW), SentStatus(), NOW, "cycle-1")
    other = contested()
    told = [record for record in asked.events if record.reason == "Evict"]
    events = [
        replace(
            event,
            message=record.message,
            involved_object=replace(event.involved_object, kind=record.regarding.kind, name=record.regarding.name),
        )
        for event in eviction_events(made)
        for record in told
    ]
    assert [event.involved_object.kind for event in events] == ["Pod", "PodGroup"]
    take_in_evictions(other, [("Event", event) for event in events])
    assert past_evictions(other) == past_evictions(made)


def test_what_other_schedulers_tell_is_told_in_their_words(tmp_path: Path) -> None:
    about = {"kind": "Pod", "name": "low-0", "namespace": "default"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": about,
        "reason": "Preempted",
        "message": "Preempted by pod 4711 on node n1",
        "lastTimestamp": rfc3339(NOW),
    }
    told = read_from(contested(), tmp_path / "events.json", event)
    assert [(each.pod, each.cause) for each in told.evictions] == [("default/low-0", "Preempted by pod 4711 on node n1")]


def test_conditions_of_a_pod_that_leaves_tell_it() -> None:
    made = contested()
    condition = {"type": "Ready", "status": "False", "reason": "Evict", "message": f"Pod is evicted, because of {BECAUSE}"}
    leaving = (
        pod("low-0").on("n1").having("metadata", "deletionTimestamp", value=rfc3339(NOW)).having("status", "conditions", value=[condition])
    )
    take_in_evictions(made, [leaving.build()])
    assert past_evictions(made)[0].cause == BECAUSE
    assert past_evictions(made)[0].permitted_by == ("priority", "gang", "conformance")


def test_an_event_of_a_group_that_names_no_pod_tells_nothing() -> None:
    made = contested()
    about = ObjectReference(kind="PodGroup", name="low", namespace="default")
    take_in_evictions(made, [("Event", Event(Metadata("e", "default"), about, "Evict", "made room", rfc3339(NOW)))])
    assert past_evictions(made) == ()


def test_the_plugins_that_decided_are_named_and_not_those_of_an_earlier_tier() -> None:
    """gang lets no pod of a gang go, so that drf in the next tier decides alone, whatever the priorities."""
    large = podgroup("large", 2).phase("Running").priority_class("high")
    held = [pod(f"large-{number}").cpu(4).gang("large").on("n1").priority(10) for number in range(2)]
    waits = podgroup("small").phase("Inqueue")
    made = cluster(priority_class("high", 10), node("n1").cpu(8), large, *held, waits, pod("small").cpu(2).gang("small"))
    by = tiers("enqueue, allocate, preempt", ("priority", "gang", "conformance"), ("drf", "predicates"))
    told = why(made, by, NOW, "job/large")
    assert told.line.endswith("(preempt) for default/small, as drf permits")
    finding = next(each for each in lint(made, by, NOW) if each.rule == "gang-without-say")
    assert finding.consequence.startswith("where priority, gang, conformance let nobody go, drf alone decides whom preempt evicts")
    assert finding.example.endswith("of podgroup/default/large (priority 10) for podgroup/default/small")
    cycle(made, by, NOW)
    assert {each.permitted_by for each in past_evictions(made)} == {("drf",)}
