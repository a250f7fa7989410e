"""Whoever applies all changes to a snapshot knows what a snapshot of now would say, whatever happened in between."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings, strategies as st
from msgspec import json

from pumice.cli.scheduler import Configuration
from pumice.cli.up_options import policy_of
from pumice.cluster.apiserver import Server
from pumice.cluster.in_process import InProcess
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.page.recorder import Recorder
from pumice.page.sent_rows import KINDS, SentRows, Touched
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.observer import Stage
from pumice.testing.builders import hypernode, node, pod, podgroup, queue
from tests.page.clusters import plain
from tests.samples import times

STORE, POLICY = Server(clock=lambda: 0.0, plain=True).store, policy_of()  #: nothing is read or written there
NAMES = ("a", "b", "c")
KINDS_OF_STEPS = ("node", "cordon", "hypernode", "queue", "job", "pod", "place", "remove", "cycle", "look")
STEPS = st.lists(st.tuples(st.sampled_from(KINDS_OF_STEPS), st.sampled_from(NAMES)), max_size=30)


class Reader:
    """What a browser would know."""

    def __init__(self, told: SentRows) -> None:
        self.told = told
        self.rows: dict[str, dict[str, bytes]] = {kind: {} for kind in KINDS}

    def look(self, cluster: Any) -> None:
        for kind, rows in self.told.changes(cluster).items():
            for name, row in rows.items():
                if row is None:
                    del self.rows[kind][name]
                else:
                    self.rows[kind][name] = row


async def _happens(scheduler: Scheduler, reader: Reader, what: str, name: str) -> None:
    cluster = scheduler.cluster
    match what:
        case "node":
            cluster.put(*node(name).cpu(8).memory("32Gi").gpu(8).build())
        case "cordon":
            cluster.put(*node(name).cpu(8).memory("32Gi").gpu(8).cordoned().build())
        case "hypernode":
            cluster.put(*hypernode(f"s-{name}").holds(name).build())
        case "queue":
            cluster.put(*queue(name).build())
        case "job":
            cluster.put(*podgroup(name, 1).queue(name).phase("Inqueue").build())
        case "pod":
            cluster.put(*pod(f"{name}-0").cpu(2).gang(name).build())
            cluster.put(*pod(f"loose-{name}").cpu(1).build())
            cluster.put(*pod(f"web-{name}").cpu(1).owned("ReplicaSet", "web-5f").build())
        case "place":
            cluster.put(*pod(f"{name}-1").cpu(3).gpu(1).gang(name).on(name).build())
            cluster.put(*pod(f"web-{name}").cpu(1).owned("ReplicaSet", "web-5f").on(name).build())
        case "remove":
            for kind, key in (
                ("Pod", f"default/{name}-0"),
                ("Pod", f"default/web-{name}"),
                ("PodGroup", f"default/{name}"),
                ("Node", name),
                ("Queue", name),
                ("HyperNode", f"s-{name}"),
            ):
                cluster.remove(kind, key)
        case "cycle":
            await scheduler.turn()
        case "look":
            reader.look(cluster)


async def _story(steps: list[tuple[str, str]]) -> None:
    scheduler = Scheduler(InProcess(STORE, "pumice"), POLICY)
    recorder = Recorder()
    scheduler.watch(recorder)
    reader = Reader(SentRows(recorder))
    reader.look(scheduler.cluster)
    for what, name in steps:
        await _happens(scheduler, reader, what, name)
    reader.look(scheduler.cluster)
    anew = SentRows(recorder)
    scheduler.cluster.index(Touched).recount()
    anew.changes(scheduler.cluster)
    for kind in KINDS:
        assert reader.rows[kind] == anew.rows[kind], kind


@settings(max_examples=times(15))
@given(STEPS)
def test_changes_add_up(steps: list[tuple[str, str]]) -> None:
    asyncio.run(_story(steps))


class Counting(Recorder):
    """Counts the sessions that take place."""

    sessions = 0

    def begins(self, stage: Stage, subject: Any) -> None:
        self.sessions += stage is Stage.SESSION
        super().begins(stage, subject)


async def _idle() -> Counting:
    scheduler = Scheduler(InProcess(STORE, "pumice"), Configuration("", None, strict=False).load())
    recorder = Counting()
    scheduler.watch(recorder)
    for kind, obj in (queue("q").build(), podgroup("big", 1).queue("q").phase("Inqueue").build(), pod("big-0").cpu(2).gang("big").build()):
        scheduler.cluster.put(kind, obj)
    for _ in range(5):
        await scheduler.turn()
    return recorder


def test_the_page_makes_no_cycle_look_again_at_what_has_not_changed() -> None:
    recorder = asyncio.run(_idle())
    assert recorder.count == 5
    assert recorder.sessions < 5
    assert list(recorder.jobs_why) == ["default/big"]


def test_pods_without_a_podgroup_are_one_job_of_their_owner_and_stand_outside_of_all_queues() -> None:
    scheduler, recorder = Scheduler(InProcess(STORE, "pumice"), POLICY, Options(schedulers=schedulers_of(POLICY))), Recorder()
    told = SentRows(recorder)
    for kind, obj in plain(nodes=3, pods_each=4, pending=2):
        scheduler.cluster.put(kind, obj)
    told.changes(scheduler.cluster)
    jobs, queues = ({name: json.decode(row) for name, row in told.rows[kind].items()} for kind in ("jobs", "queues"))
    assert set(jobs) == {"default/train", "pod/default/ReplicaSet/web-5f7c", "pod/default/alone"}
    web = jobs["pod/default/ReplicaSet/web-5f7c"]
    assert (web["owner"], web["queue"], web["pods"]) == ("web", "", {"Pending": 2, "Running": 12})
    assert (web["held"], web["asked"]) == ({"cpu": 24.0}, {"cpu": 4.0})
    assert (queues["-"]["held"], queues["-"]["asked"], queues["-"]["jobs"], queues["-"]["waiting"]) == ({"cpu": 25.0}, {"cpu": 4.0}, 2, 1)
    assert queues["default"]["held"]["cpu"] == 8.0
    for index in range(14):
        scheduler.cluster.remove("Pod", f"default/web-{index}")
    gone = told.changes(scheduler.cluster)
    assert gone["jobs"] == {"pod/default/ReplicaSet/web-5f7c": None}
    assert json.decode(gone["queues"]["-"] or b"")["held"] == {"cpu": 1.0}
    scheduler.cluster.remove("Pod", "default/alone")
    assert told.changes(scheduler.cluster)["queues"] == {"-": None}


def test_when_a_job_is_expected_to_start_is_told_and_told_anew_and_no_more_once_nothing_is_known() -> None:
    scheduler, recorder = Scheduler(InProcess(STORE, "pumice"), POLICY), Recorder()
    told = SentRows(recorder)
    for kind, obj in (queue("q").build(), podgroup("big", 1).queue("q").phase("Inqueue").build(), pod("big-0").cpu(2).gang("big").build()):
        scheduler.cluster.put(kind, obj)
    told.changes(scheduler.cluster)
    seen = []
    for expected in ({"default/big": (5.0, None)}, {"default/big": (6.0, 7.0)}, {"default/big": (6.0, 7.0)}, {}):
        told.expect(expected)
        rows = told.changes(scheduler.cluster).get("jobs", {})
        seen.append([json.decode(row or b"{}").get("expected") for row in rows.values()])
    assert seen == [[[5.0, None]], [[6.0, 7.0]], [], [None]]
