"""The whole live loop over a server in memory, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.kinds import EVENTS, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Kind
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.failures import ApiError, NoAnswer
from pumice.live.scheduler.cycle_timing import CROWDED_S, Urgency
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.sent_status import KEPT_GONE
from tests.live.faults import Faults, Faulty, Plan
from tests.live.memory import MemoryServer
from tests.live.situations import important
from tests.live.stories import PREEMPTING, policy, running, scheduling, server, until
from tests.live.virtual import VirtualClock, run


def written(api: MemoryServer, plural: str, subresource: str = "") -> int:
    return sum(write[1:3] == (plural, subresource) for write in api.writes)


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((c for c in pod["status"].get("conditions", ()) if c["type"] == kind), {})


def test_a_gang_is_bound_within_a_tenth_of_a_second_and_its_status_follows() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            began = scheduler.clock.now()
            api.gang("train", pods=4)
            await until(lambda: len(api.placed()) == 4)
            assert scheduler.clock.now() - began < 0.1
            await until(lambda: api.found(POD_GROUPS, "train").get("status", {}).get("running") == 4)
            status = api.found(POD_GROUPS, "train")["status"]
            assert status["phase"] == "Running" and [c["type"] for c in status["conditions"]] == ["Scheduled"]
            await until(lambda: api.found(QUEUES, "root")["status"].get("allocated") == {"cpu": "4", "memory": "0", "pods": "4"})
            scheduler.cluster.check()
        assert not api.breaches

    run(story())


def test_a_cycle_that_is_requested_while_the_state_is_taken_begins_soon_after() -> None:
    """As when a page is made. Whoever waits is woken at once, sees no request yet, and sleeps again: it is to be woken once more."""

    async def story() -> None:
        async with scheduling(server("a")) as scheduler:
            await scheduler.synced.wait()
            count = scheduler.metrics.cycles.count
            before = count()
            await until(lambda: count() > before)  # the next one without a reason is a second away
            before = count()
            async with scheduler._state.alone():
                scheduler._request_cycle(Urgency.SOON)
                await asyncio.sleep(0.01)
            freed = scheduler.clock.now()
            await until(lambda: count() > before)
            assert scheduler.clock.now() - freed < 0.1

    run(story())


def test_of_jobs_that_were_made_for_single_pods_nothing_is_kept() -> None:
    async def story() -> None:
        api = server("a")
        async with running(Scheduler(api, replace(policy(), shadow_groups=True), Options(), VirtualClock())) as scheduler:
            await scheduler.synced.wait()
            for number in range(2 * KEPT_GONE):
                api.pod(f"large-{number}", 100)
                await asyncio.sleep(2)
                api.remove(PODS, f"large-{number}")
            await asyncio.sleep(2)
            assert len(scheduler._sent_status.quiet) <= KEPT_GONE

    run(story(), limit_s=1e4)


def test_while_binds_wait_for_others_changes_are_gathered_for_longer() -> None:
    """A bind that is decided sooner would only wait longer."""

    async def story() -> None:
        api = server(*"abcd")
        slow = Faulty(api, Faults(Plan({"bind": ["late answer"] * 3})))
        async with scheduling(slow, options=Options(concurrency=2)) as scheduler:
            await scheduler.synced.wait()
            api.gang("first", pods=3)
            await until(lambda: len(api.placed("first")) == 2)
            began, cycles = scheduler.clock.now(), scheduler.metrics.cycles.count()
            for number in range(4):
                api.gang(f"next{number}", pods=1)
                await asyncio.sleep(0.02)
            await until(lambda: scheduler.metrics.cycles.count() > cycles)
            assert CROWDED_S <= scheduler.clock.now() - began < CROWDED_S + 0.05
            await until(lambda: len(api.placed()) == 7)
        assert not api.breaches

    run(story())


def test_what_a_queue_holds_is_written_a_period_later_though_nothing_else_happens() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        api.gang("train", pods=4)

        async def until_it_holds(cpu: str) -> None:
            await until(lambda: api.found(QUEUES, "default")["status"].get("allocated", {}).get("cpu") == cpu)

        async with scheduling(api, options=Options(period_s=0.2)) as scheduler:
            await asyncio.sleep(10)
            api.remove(PODS, "train-0")
            await until_it_holds("3")
            began = scheduler.clock.now()
            api.remove(PODS, "train-1")
            await until_it_holds("2")
            assert 0.1 < scheduler.clock.now() - began < 0.3

    run(story())


def test_a_kept_state_that_differs_from_a_recount_ends_the_run_before_more_is_decided_by_it() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        api.gang("train", pods=2)
        scheduler = Scheduler(api, policy(), Options(check_every=3), VirtualClock())
        deciding = asyncio.create_task(scheduler.run())
        await until(lambda: "pumice_state_checks_total 1" in scheduler.metrics.page())
        assert len(api.placed()) == 2
        scheduler.cluster.queues["default"].holding += 1
        with pytest.raises(AssertionError, match="held of"):
            await deciding
        assert not api.breaches

    run(story())


def test_pods_of_other_schedulers_take_room() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        api.pod("theirs", 3, node="a", scheduler="default-scheduler")
        api.gang("train", pods=2)
        async with scheduling(api):
            await asyncio.sleep(5)
            assert api.placed("train") == {}
            api.remove(PODS, "theirs")
            await until(lambda: len(api.placed("train")) == 2)

    run(story())


def test_what_waits_is_told_once_and_then_costs_next_to_nothing() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=3)
        api.gang("train", pods=4)
        async with scheduling(api) as scheduler:
            await asyncio.sleep(5)
            pod = api.found(PODS, "train-3")
            assert condition(pod, "PodScheduled")["status"] == "False"
            assert api.found(POD_GROUPS, "train")["status"]["phase"] == "Inqueue"
            before = len(api.writes)
            cycles = scheduler.metrics.cycles.count()
            await asyncio.sleep(20)
            since = api.writes[before:]
            assert {(verb, plural) for verb, plural, _, _ in since} <= {("patch", "events")} and len(since) <= 2
            assert scheduler.metrics.cycles.count() > cycles, "it goes on looking"

    run(story())


def test_an_idle_cluster_is_looked_at_once_a_second_at_most() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        async with scheduling(api) as scheduler:
            await asyncio.sleep(60)
            assert scheduler.metrics.cycles.count() <= 62
            for _ in range(100):
                api.node("a", cpu=4)  # heartbeats
                await asyncio.sleep(0.01)
            assert scheduler.metrics.cycles.count() <= 65

    run(story())


def test_a_member_whose_bind_is_refused_is_tried_again_and_that_is_told() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        refusals = [ApiError(403, "Forbidden", "not now")] * 2

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS and name == "train-2" and refusals:
                raise refusals.pop()

        api.before_write = refuse
        api.gang("train", pods=4)
        async with scheduling(api) as scheduler:
            await until(lambda: len(api.placed()) == 4)
            await asyncio.sleep(1)
            keep_raw = [e for e in api.all(EVENTS) if e["reason"] == "FailedScheduling" and e["involvedObject"]["name"] == "train-2"]
            assert keep_raw and "binding to a failed" in keep_raw[0]["message"]
            assert scheduler.metrics.binds.value("failed") == 2 and scheduler.metrics.binds.value("bound") == 4
            scheduler.cluster.check()

    run(story())


def test_a_bind_whose_answer_is_lost_is_found_out_and_its_room_is_not_given_away() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=1)
        api.node("b", cpu=1)
        bind = api._bind
        lost = [True, True, True]

        def bind_and_lose(ref: Any, body: Any) -> bytes:
            if lost:
                lost.pop()
                raise NoAnswer("cut", sent=True)
            return bind(ref, body)

        api._bind = bind_and_lose  # type: ignore[method-assign]
        api.gang("train", pods=2)
        async with scheduling(api):
            await until(lambda: len(api.placed()) == 2)
        assert not api.breaches and sorted(api.placed().values()) == ["a", "b"]

    run(story())


def test_a_bind_that_the_watch_never_shows_is_looked_up() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=1)
        api._bind = lambda ref, body: b"{}"  # type: ignore[method-assign]
        api.gang("train", pods=1)
        async with scheduling(api) as scheduler:
            await asyncio.sleep(10)
            assert scheduler.cluster.tasks["default/train-0"].node_name == "a", "assumed"
            del api._bind
            await until(lambda: api.placed() == {"train-0": "a"})
            assert scheduler.metrics.expired.value() == 1

    run(story())


def test_a_victim_is_told_why_before_it_is_deleted_and_only_as_many_go_as_must() -> None:
    async def story() -> None:
        api = server(stop_s=5.0)
        api.node("a", cpu=4)
        for name, value in (("low", 1), ("high", 10)):
            api.put(PRIORITY_CLASSES, name, value=value)
        api.put(POD_GROUPS, "low", spec={"minMember": 1, "queue": "default", "priorityClassName": "low"}, status={"phase": "Running"})
        for number in range(4):
            api.pod(f"low-{number}", group="low", node="a", priority=1)
        api.put(POD_GROUPS, "high", spec={"minMember": 2, "queue": "default", "priorityClassName": "high"})
        for number in range(2):
            api.pod(f"high-{number}", group="high", priority=10)
        async with scheduling(api, PREEMPTING) as scheduler:
            await until(lambda: len(api.placed("high")) == 2)
            victims = [name for verb, plural, _, name in api.writes if (verb, plural) == ("delete", "pods")]
            assert len(victims) == 2 == len(api.placed("low"))
            for victim in victims:
                verbs = [(verb, sub) for verb, plural, sub, name in api.writes if plural == "pods" and name == victim]
                assert verbs[:2] == [("update", "status"), ("delete", "")]
            scheduler.cluster.check()
        assert not api.breaches

    run(story())


def test_an_eviction_that_fails_is_taken_back() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.queue("greedy")
        api.queue("poor")
        api.put(POD_GROUPS, "first", spec={"minMember": 1, "queue": "greedy"}, status={"phase": "Running"})
        for number in range(2):
            api.pod(f"first-{number}", group="first", node="a")
        api.gang("second", pods=1, queue="poor")
        broken = [True]

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if broken and verb == "delete":
                raise ApiError(500, "InternalError", "no")

        api.before_write = refuse
        async with scheduling(api, PREEMPTING) as scheduler:
            await until(lambda: scheduler.metrics.evictions.value("failed") >= 1)
            assert len(api.placed("first")) == 2 and not api.placed("second")
            broken.clear()
            await until(lambda: api.placed("second") == {"second-0": "a"})
            assert len(api.placed("first")) == 1 and not api.breaches

    run(story())


def test_a_group_that_somebody_else_changes_meanwhile_is_written_again() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        conflicts = []

        def interfere(verb: str, resource: Kind, name: str) -> None:
            if resource == POD_GROUPS and len(conflicts) < 3:
                conflicts.append(name)
                group = api.found(POD_GROUPS, name)
                api.put(POD_GROUPS, name, metadata={"labels": {"touched": str(len(conflicts))}}, spec=group["spec"])

        api.before_write = interfere
        api.gang("train", pods=2)
        async with scheduling(api):
            await until(lambda: api.found(POD_GROUPS, "train").get("status", {}).get("running") == 2)
            assert api.found(POD_GROUPS, "train")["metadata"]["labels"] == {"touched": "3"}

    run(story())


def test_a_server_without_volcanos_definitions_is_done_without() -> None:
    async def story() -> None:
        api = server()
        api.missing = {"podgroups", "queues", "hypernodes", "numatopologies"}
        api.node("a", cpu=4)
        async with scheduling(api) as scheduler:
            await asyncio.wait_for(scheduler.synced.wait(), 5)
            await asyncio.sleep(5)
            assert scheduler.metrics.cycles.count() > 1

    run(story())


def test_only_selected_nodes_are_used() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        api.node("b", cpu=1, labels={"for": "us"})
        api.gang("train", pods=2, minimum=1)
        async with scheduling(api, options=Options(node_labels=(("for", "us"),))):
            await asyncio.sleep(3)
            assert list(api.placed().values()) == ["b"]
            api.node("a", cpu=4, labels={"for": "us"})
            await until(lambda: len(api.placed()) == 2)

    run(story())


def test_victims_are_chosen_anew_when_some_evictions_fail() -> None:
    """Pods whose promised room came to nothing preempt again, although their nominated node refuses nothing."""

    async def story() -> None:
        api = important(1)
        refused: list[str] = []

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "delete" and len(refused) < 4 and name in (*refused[:1], *([] if refused else [name])):
                refused.append(name)
                raise ApiError(500, "InternalError", "no")

        api.before_write = refuse
        async with scheduling(api, PREEMPTING) as scheduler:
            await until(lambda: len(api.placed("high")) == 2)
            assert scheduler.metrics.evictions.value("failed") == 1
        assert not api.breaches

    run(story())


def test_who_was_to_be_evicted_before_and_was_not_may_be_a_victim_again() -> None:
    """Its status tells of the eviction that failed; it does not leave for anybody."""

    async def story() -> None:
        api = important(1)
        refused: list[str] = []

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "delete" and len(refused) < 8:
                refused.append(name)
                raise ApiError(500, "InternalError", "no")

        api.before_write = refuse
        async with scheduling(api, PREEMPTING) as scheduler:
            await until(lambda: len(api.placed("high")) == 2)
            assert scheduler.metrics.evictions.value("failed") == 2 and len(api.placed("low")) == 2

    run(story())


def test_another_policy_counts_from_the_next_cycle_on() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=1)
        api.gang("train", pods=1)
        async with scheduling(api, 'actions: "enqueue"\ntiers: []\n') as scheduler:
            await asyncio.sleep(5)
            assert not api.placed()
            scheduler.adopt(policy())
            await until(lambda: api.placed() == {"train-0": "a"}, within_s=0.5)

    run(story())


def test_whoever_keeps_the_time_may_ask_for_single_steps() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.gang("train", pods=2)
        scheduler = Scheduler(api, policy(), Options(), VirtualClock())
        async with scheduler.started():
            decisions = await scheduler.step()
            assert len(decisions.binds) == 2 and len(api.placed()) == 2

    run(story())


@pytest.mark.parametrize("gone", [PODS, NODES])
def test_what_is_deleted_is_forgotten(gone: Kind) -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.gang("train", pods=2)
        async with scheduling(api) as scheduler:
            await until(lambda: api.running() == 2)
            for obj in api.all(gone):
                api.remove(gone, obj["metadata"]["name"])
            await asyncio.sleep(1)
            assert (len(scheduler.cluster.tasks) == 0) if gone == PODS else (scheduler.cluster.nodes.count == 0)
            scheduler.cluster.check()

    run(story())


def test_the_state_knows_when_what_it_is_told_happens() -> None:
    """A pod that ends while nobody waits: no cycle is due for it."""

    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        api.gang("train", pods=1)
        async with scheduling(api) as scheduler:
            await until(lambda: len(api.placed()) == 1)
            await asyncio.sleep(100)
            api.remove(PODS, "train-0")
            await until(lambda: not scheduler.cluster.tasks)
            assert abs(scheduler.cluster.clock - scheduler.clock.now()) < 1

    run(story())


def test_events_are_limited_by_the_scheduler_s_clock() -> None:
    """A burst goes out at once, and so does another one ten seconds later, however little of the machine's time has passed."""

    async def story() -> None:
        api = server()
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            for burst in range(2):
                began = scheduler.clock.now()
                for number in range(500):
                    scheduler.tell(EventRecord(InvolvedObject("Pod", f"{burst}-{number}", "default"), "Normal", "Told", "so"))
                await scheduler.recorder.drain(60.0)
                assert scheduler.clock.now() - began < 0.1
                await asyncio.sleep(10)
            assert len(api.all(EVENTS)) == 1000

    run(story())
