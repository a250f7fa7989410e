"""What one owner or one namespace asks for keeps no other waiting: pods are made as far as they find nodes, and namespaces take turns."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.annotations import GROUP_MIN_MEMBER
from pumice.api.json_objects import Object, condition, spec_of, status_of
from pumice.controllers.controller import NOTHING, Key, Lister, Result, itself
from pumice.controllers.in_memory import Memory
from pumice.controllers.in_memory_loop import InMemoryLoop
from pumice.controllers.pod_bursts import BURST, REASON, TYPE, burst
from pumice.controllers.registry import kubernetes_controllers
from pumice.controllers.volcano.job.controller import Jobs
from pumice.controllers.work_queue import KeyQueue
from tests.controllers.playing import node, workload
from tests.controllers.stage import NOON, Stage, fixed_key_pair, queue, task, vcjob

MOST = 5
ENDLESS = 2**31 - 1
STATEFUL = {"replicas": ENDLESS, "podManagementPolicy": "Parallel"}
FLOODS = [
    (kinds.DEPLOYMENT, {"replicas": ENDLESS}),
    (kinds.REPLICA_SET, {"replicas": ENDLESS}),
    (kinds.STATEFUL_SET, STATEFUL),
    (kinds.BATCH_JOB, {"parallelism": ENDLESS}),
    (kinds.BATCH_JOB, {"parallelism": ENDLESS, "completions": ENDLESS, "completionMode": "Indexed"}),
]


class Flood:
    """A cluster in which five pods of an owner may wait."""

    def __init__(self, *objects: Object) -> None:
        self.cluster = Memory((node("n"), *objects), NOON)
        self.loop = InMemoryLoop(self.cluster, kubernetes_controllers(most_waiting=MOST))
        self.loop.settle(NOON)

    def waiting(self) -> list[Object]:
        return [pod for pod in self.cluster.all(kinds.POD) if not spec_of(pod).get("nodeName")]

    def bind(self, count: int) -> None:
        for pod in self.waiting()[:count]:
            self.loop.observe(self.cluster.put({**pod, "spec": {**pod["spec"], "nodeName": "n"}}))
        self.loop.settle(NOON)


@pytest.mark.parametrize(("kind", "spec"), FLOODS, ids=["deployment", "replica set", "stateful set", "job", "indexed job"])
def test_pods_are_made_as_far_as_they_find_nodes(kind: str, spec: dict[str, Any]) -> None:
    flood = Flood(workload(kind.partition(".")[0], **spec))
    assert len(flood.waiting()) == MOST
    flood.bind(2)
    assert len(list(flood.cluster.all(kinds.POD))) == MOST + 2 and len(flood.waiting()) == MOST
    for owner in (*flood.cluster.all(kind), *flood.cluster.all(kinds.REPLICA_SET)):
        said = condition(owner, TYPE) or {}
        assert said["reason"] == REASON and said["message"] == f"{MOST} of its pods wait for a node; more are made as these get one"


def test_the_condition_goes_when_nothing_is_held_back() -> None:
    flood = Flood(workload("ReplicaSet", replicas=MOST + 1))
    (owner,) = flood.cluster.all(kinds.REPLICA_SET)
    assert condition(owner, TYPE)
    flood.bind(1)
    (owner,) = flood.cluster.all(kinds.REPLICA_SET)
    assert len(list(flood.cluster.all(kinds.POD))) == MOST + 1 and not condition(owner, TYPE)


def test_the_pods_of_a_gang_are_all_made() -> None:
    owner = workload("ReplicaSet", replicas=2 * MOST)
    owner["metadata"]["annotations"] = {GROUP_MIN_MEMBER: str(2 * MOST)}
    assert len(Flood(owner).waiting()) == 2 * MOST


def let_in(job: Object) -> Stage:
    stage = Stage(queue(), job, controllers=[Jobs(fixed_key_pair, most_waiting=MOST)])
    stage.let_in()
    return stage


def test_a_volcano_job_has_its_minimum_and_few_more_pods_that_wait() -> None:
    elastic = let_in(vcjob(tasks=[task("a", 3 * MOST, minAvailable=1), task("b", 3 * MOST, minAvailable=2)]))
    assert elastic.names(kinds.POD) == ["train-a-0", "train-a-1", "train-a-2", "train-b-0", "train-b-1"]
    assert status_of(elastic.get(kinds.JOB, "train"))["state"]["reason"] == REASON
    gang = let_in(vcjob(tasks=[task("a", 2 * MOST), task("b", 2 * MOST)]))
    assert len(gang.names(kinds.POD)) == 4 * MOST
    least = let_in(vcjob(tasks=[task("a", 3 * MOST), task("b", 3 * MOST)], minAvailable=MOST + 1))
    assert len(least.names(kinds.POD)) == MOST + 1


def test_a_turn_makes_as_many_pods_as_there_are_but_at_least_a_burst() -> None:
    assert [burst(existing) for existing in (0, BURST, 3 * BURST)] == [BURST, BURST, 3 * BURST]


class Seen:
    name = "seen"
    watches = {kinds.POD: itself}

    def reconcile(self, key: Any, lister: Lister, now: float) -> Result:
        return NOTHING


def test_namespaces_take_turns_however_much_one_of_them_asks_for() -> None:
    waiting, seen = KeyQueue([]), Seen()
    for key in [Key("flood", f"f{number}") for number in range(100)] + [Key("other", "a"), Key("third", "b"), Key("other", "c")]:
        waiting.add(seen, key)
    assert len(waiting) == 103
    order: list[Any] = [work.key for _ in range(103) if (work := waiting.pop(0.0)) is not None]
    assert order[:6] == [
        Key("flood", "f0"),
        Key("other", "a"),
        Key("third", "b"),
        Key("flood", "f1"),
        Key("other", "c"),
        Key("flood", "f2"),
    ]
    assert order[6:] == [Key("flood", f"f{number}") for number in range(3, 100)]
    assert waiting.pop(0.0) is None and len(waiting) == 0


def test_a_key_that_is_put_back_goes_on_first_in_its_namespace_but_lets_other_namespaces_have_their_turn() -> None:
    waiting, seen = KeyQueue([]), Seen()
    for key in (Key("flood", "large"), Key("flood", "next"), Key("quiet", "a"), Key("quiet", "b")):
        waiting.add(seen, key)
    large = waiting.pop(0.0)
    assert large is not None
    waiting.put_back(large)
    order = []
    for rest in range(5):
        work = waiting.pop(0.0)
        assert work is not None
        order.append(work.key)
        if work == large and rest < 4:
            waiting.put_back(work)
    assert order == [Key("quiet", "a"), Key("flood", "large"), Key("quiet", "b"), Key("flood", "large"), Key("flood", "large")]
    last = waiting.pop(0.0)
    assert last is not None and last.key == Key("flood", "next") and waiting.pop(0.0) is None


def test_a_key_that_was_put_back_alone_comes_again() -> None:
    waiting, seen = KeyQueue([]), Seen()
    waiting.add(seen, Key("flood", "large"))
    large = waiting.pop(0.0)
    assert large is not None and waiting.pop(0.0) is None
    waiting.put_back(large)
    assert waiting.pop(0.0) == large and waiting.pop(0.0) is None
