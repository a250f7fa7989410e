"""The bridges between store, controllers and scheduler: nothing of a write is lost or told differently on the way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from pumice.api import kinds
from pumice.api.json_objects import Key, field, name_of, owners_of
from pumice.api.kinds import NODES, PODS, QUEUES, Kind, ObjectRef
from pumice.client.bind_and_evict import bind, evict
from pumice.client.failures import ApiError
from pumice.client.known_versions import Added, Deleted, Modified
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.transport import ListScope, PatchType, WatchedEvent, WatchLine
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, Server, Store
from pumice.cluster.apiserver.storage.watch import WatchFilter
from pumice.cluster.clock import RunningClock, VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.controller_loop import ControllerLoop
from pumice.cluster.in_process import InProcess
from pumice.cluster.nodes.stage import read_stages
from pumice.cluster.store_lister import StoreLister
from pumice.cluster.store_writes import StoreWrites
from pumice.cluster.worker_turns import WorkerTurns
from pumice.controllers.controller import NOTHING, Result, itself, result
from pumice.controllers.volcano.job.controller import Jobs
from pumice.controllers.volcano.job.plugins import SshKeyPair
from pumice.controllers.writes import Create, Delete, Emit, Patch
from tests.controllers.stage import NOON, vcjob

SPEC = {"containers": [{"name": "main", "image": "train:1"}]}


def store() -> Store:
    return Server(plain=True).store


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}, "spec": SPEC}


# The lister


STEPS = st.lists(st.tuples(st.sampled_from(["create", "bind", "delete", "disown"]), st.integers(0, 5), st.integers(0, 2)), max_size=25)


@given(STEPS)
def test_indexes_say_what_a_look_at_everything_says(steps: list[tuple[str, int, int]]) -> None:
    cluster = store()
    lister = StoreLister(cluster)
    for what, number, other in steps:
        name = f"p{number}"
        if what == "create" and cluster.find("pods", "default", name) is None:
            owner = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": f"uid-{other}"}
            cluster.create("pods", pod(name, ownerReferences=[owner]), "default")
        elif cluster.find("pods", "default", name) is None:
            continue
        elif what == "bind" and not cluster.get("pods", name, "default")["spec"].get("nodeName"):
            cluster.bind("default", name, f"n{other}")
        elif what == "delete":
            cluster.delete("pods", name, "default", DeleteOptions(grace_s=0))
        elif what == "disown":
            cluster.update("pods", {**cluster.get("pods", name, "default"), "metadata": {"name": name, "namespace": "default"}})
        _equal_to_a_scan(lister)
    _equal_to_a_scan(StoreLister(cluster))


def _equal_to_a_scan(lister: StoreLister) -> None:
    pods = list(lister.all(kinds.POD))
    for node in ("", "n0", "n1", "n2"):
        assert list(lister.by_field(kinds.POD, "spec.nodeName", node)) == [p for p in pods if (field(p, "spec.nodeName") or "") == node]
    for uid in ("uid-0", "uid-1", "uid-2"):
        assert list(lister.dependents(uid)) == [p for p in pods if any(owner["uid"] == uid for owner in owners_of(p))]


def test_a_world_tells_every_change_once_and_in_order() -> None:
    cluster = store()
    lister = StoreLister(cluster)
    lister.take()
    cluster.create("pods", pod("a"), "default")
    cluster.bind("default", "a", "n")
    cluster.delete("pods", "a", "default", DeleteOptions(grace_s=0))
    seen = [(change.old is not None, change.new is not None) for change in lister.take()]
    assert seen == [(False, True), (True, True), (True, False)]
    assert lister.take() == []


def test_controllers_are_told_of_a_change_after_watches_and_not_before_it_is_on_the_disk(tmp_path: Path) -> None:
    cluster = Server(plain=True, data=tmp_path).store
    cluster.storage.publish(cluster.storage.version)
    lister, told = StoreLister(cluster), list[str]()
    lister.take()
    cluster.storage.watch("pods", WatchFilter(), cluster.storage.version, lambda: told.append("watch"))
    lister.wake = lambda: told.append("controllers")
    cluster.create("pods", pod("p"), "default")
    first = cluster.storage.version
    cluster.create("pods", pod("q"), "default")
    assert (lister.take(), told) == ([], [])
    assert lister.get("Pod", "default", "p") is not None
    cluster.storage.publish(first)
    assert told == ["watch", "controllers"]
    assert [name_of(change.object) for change in lister.take()] == ["p"]
    cluster.storage.publish(cluster.storage.version)
    assert [name_of(change.object) for change in lister.take()] == ["q"]
    assert told == ["watch", "controllers", "controllers"]


def test_kinds_of_definitions_are_known_as_soon_as_they_are_served() -> None:
    cluster = store()
    lister = StoreLister(cluster)
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }
    assert list(lister.all("Thing.example.com")) == []
    cluster.create("customresourcedefinitions.apiextensions.k8s.io", definition)
    cluster.create("things.example.com", {"metadata": {"name": "one"}}, "default")
    assert [name_of(each) for each in lister.all("Thing.example.com")] == ["one"]


# Writes


def test_writes_are_as_forgiving_as_controllers_are_told() -> None:
    cluster = store()
    lister = StoreLister(cluster)
    writes = StoreWrites(lister, "test")
    writes.apply(Create(pod("a")))
    writes.apply(Create(pod("a")))
    writes.apply(Patch(kinds.POD, "default", "a", {"metadata": {"labels": {"x": "1"}}}, uid="another"))
    assert "labels" not in cluster.get("pods", "a", "default")["metadata"]
    writes.apply(Patch(kinds.POD, "default", "a", {"status": {"reason": "Tried"}}, "status"))
    assert cluster.get("pods", "a", "default")["status"]["reason"] == "Tried"
    writes.apply(Delete(kinds.POD, "default", "a", uid="another"))
    assert cluster.find("pods", "default", "a") is not None
    writes.apply(Delete(kinds.POD, "default", "a"))
    writes.apply(Delete(kinds.POD, "default", "a"))
    assert cluster.find("pods", "default", "a") is None


def test_an_event_that_is_repeated_is_counted() -> None:
    cluster = store()
    writes = StoreWrites(StoreLister(cluster), "test")
    about = cluster.create("pods", pod("a"), "default")
    for _ in range(3):
        writes.apply(Emit(about, "Normal", "Seen", "it was seen"))
    (event,) = cluster.all("events")
    assert (event["count"], event["involvedObject"]["uid"], event["source"]["component"]) == (3, about["metadata"]["uid"], "test")


class Stubborn:
    """A controller whose writes are refused so many times, and that gives up after three."""

    name = "stubborn"
    max_failures = 3

    def __init__(self, refusals: int) -> None:
        self.watches = {kinds.CONFIG_MAP: itself}
        self.left = refusals
        self.tried_at: list[float] = []
        self.gave_up_at: object = None

    def gave_up(self, key: object) -> object:
        self.gave_up_at = key
        return Key("default", "given up")

    def reconcile(self, key: object, lister: object, now: float) -> Result:
        if key != Key("default", "a"):
            return NOTHING
        self.tried_at.append(now)
        self.left -= 1
        return result([Create(pod("No Name" if self.left >= 0 else "a"))])


@pytest.mark.parametrize(("refusals", "tries", "gives_up"), [(2, 3, False), (9, 4, True)])
def test_a_key_whose_writes_fail_is_tried_again_with_growing_pauses(refusals: int, tries: int, gives_up: bool) -> None:
    cluster = store()
    clock = VirtualClock(100.0)
    stubborn = Stubborn(refusals)
    loop = ControllerLoop(StoreLister(cluster), [stubborn], clock)
    cluster.create("configmaps", {"metadata": {"name": "a"}}, "default")
    _until_idle(loop)
    while (when := clock.next_time()) is not None:
        clock.move_to(when)
        _until_idle(loop)
    pauses = [after - before for before, after in zip(stubborn.tried_at, stubborn.tried_at[1:], strict=False)]
    assert len(stubborn.tried_at) == tries
    assert pauses == sorted(pauses)
    assert (stubborn.gave_up_at is not None) is gives_up


def _until_idle(loop: ControllerLoop) -> None:
    """However slow the machine is: a step ends when its time is up."""
    while loop.step():
        pass


def test_what_takes_long_is_prepared_on_a_thread() -> None:
    made: list[int] = []

    def key_pair() -> SshKeyPair:
        made.append(threading.get_ident())
        return SshKeyPair("private", "public")

    async def story() -> int:
        clock = RunningClock(NOON)
        plane = ControlPlane(clock, Server(plain=True, clock=clock.now), read_stages())
        plane.quiet()  # the queue becomes open
        turns = WorkerTurns([ControllerLoop(StoreLister(plane.store), [Jobs(key_pair)], clock)])
        turns.start()
        plane.store.create("jobs.batch.volcano.sh", vcjob(plugins={"ssh": []}), "default")
        async with asyncio.timeout(60):
            while plane.store.find("secrets", "default", "train-ssh") is None:
                await asyncio.sleep(0.01)
        turns.stop()
        return threading.get_ident()

    assert asyncio.run(story()) not in made and len(made) == 1


class Flooding:
    """For a ConfigMap "large" it wants a hundred others, and for any ConfigMap of the namespace "quiet" one Secret."""

    name = "flooding"
    watches = {"ConfigMap": itself}

    def reconcile(self, key: Any, lister: Any, now: float) -> Result:
        if key.namespace == "quiet":
            wanted = [("Secret", "quiet", "answer")]
        else:
            wanted = [("ConfigMap", "flood", f"c{number}") for number in range(100 if key.name == "large" else 0)]
        made = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}} for kind, namespace, name in wanted]
        return result([Create(each) for each in made])


def test_other_namespaces_have_their_turn_between_the_writes_of_a_key() -> None:
    cluster = store()
    loop = ControllerLoop(StoreLister(cluster), [Flooding()], VirtualClock(NOON), slice_s=1e-9)
    for namespace, name in (("flood", "large"), ("quiet", "small")):
        cluster.create("namespaces", {"metadata": {"name": namespace}})
        cluster.create("configmaps", {"metadata": {"name": name}}, namespace)
    while cluster.find("secrets", "quiet", "answer") is None:
        assert loop.step()
    assert len(list(cluster.all("configmaps", "flood"))) < 10
    _until_idle(loop)
    assert len(list(cluster.all("configmaps", "flood"))) == 101


class Counting:
    """Reconciles ConfigMaps. The second time that it looks at "large", it waits until it has looked at "other", and may fail."""

    name = "counting"
    watches = {"ConfigMap": itself}

    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.on_loop: list[bool] = []  #: for each look at "large", whether it was in the thread of the event loop
        self.other_seen = threading.Event()
        self.loop = threading.get_ident()

    def reconcile(self, key: Any, lister: Any, now: float) -> Result:
        if key.name == "other":
            self.other_seen.set()
        if key.name != "large":
            return NOTHING
        self.on_loop.append(threading.get_ident() == self.loop)
        if len(self.on_loop) == 1:
            return NOTHING
        if len(self.on_loop) == 2:
            assert self.other_seen.wait(60) and not self.fails
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written", "namespace": "default"}}
        return result([Create(made)])


@pytest.mark.parametrize("fails", [False, True])
def test_a_key_that_takes_long_is_reconciled_on_a_thread_the_next_time_while_others_have_their_turn(fails: bool) -> None:
    async def story() -> list[bool]:
        cluster, counting, clock = store(), Counting(fails), RunningClock(NOON)
        cluster.create("configmaps", {"metadata": {"name": "large"}}, "default")
        turns = WorkerTurns([ControllerLoop(StoreLister(cluster), [counting], clock, long_s=0.0)])
        turns.start()
        async with asyncio.timeout(60):
            while not counting.on_loop:
                await asyncio.sleep(0.01)
            cluster.patch("configmaps", "large", PatchRequest("merge", {"data": {"x": "y"}}), "default")
            while len(counting.on_loop) < 2:
                await asyncio.sleep(0.01)
            cluster.patch("configmaps", "large", PatchRequest("merge", {"data": {"x": "z"}}), "default")  # is looked at afterwards
            cluster.create("configmaps", {"metadata": {"name": "other"}}, "default")
            while len(counting.on_loop) < 3 or cluster.find("configmaps", "default", "written") is None:
                await asyncio.sleep(0.01)
        turns.stop()
        return counting.on_loop

    assert asyncio.run(story()) == ([True, False, True] if fails else [True, False, False])


class Owners:
    """Notes for each look at an owner whether it was in the thread of the event loop."""

    name = "owners"
    watches = {"ConfigMap": itself}

    def __init__(self) -> None:
        self.loop = threading.get_ident()
        self.on_loop: dict[str, list[bool]] = {}

    def reconcile(self, key: Any, lister: Any, now: float) -> Result:
        self.on_loop.setdefault(key.name, []).append(threading.get_ident() == self.loop)
        return NOTHING


def test_an_owner_of_very_much_is_looked_at_on_a_thread_from_the_first_time_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.cluster.controller_loop.MANY", 3)

    async def story() -> dict[str, list[bool]]:
        cluster, owners, clock = store(), Owners(), RunningClock(NOON)
        for name, count in (("large", 4), ("small", 3)):
            uid = cluster.create("configmaps", {"metadata": {"name": name}}, "default")["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}
            for number in range(count):
                cluster.create("secrets", {"metadata": {"name": f"{name}-{number}", "ownerReferences": [owner]}}, "default")
        turns = WorkerTurns([ControllerLoop(StoreLister(cluster), [owners], clock, long_s=60.0)])
        turns.start()
        async with asyncio.timeout(60):
            while len(owners.on_loop) < 2:
                await asyncio.sleep(0.01)
            cluster.patch("configmaps", "large", PatchRequest("merge", {"data": {"x": "y"}}), "default")
            while len(owners.on_loop["large"]) < 2:
                await asyncio.sleep(0.01)
        turns.stop()
        return owners.on_loop

    assert asyncio.run(story()) == {"large": [False, True], "small": [True]}


class Quotas(Owners):
    watches = {"ResourceQuota": itself, "Pod": itself}


def test_a_quota_of_a_namespace_of_very_many_pods_is_counted_on_a_thread_from_the_first_time_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing belongs to a quota, and its controller looks at all pods."""
    monkeypatch.setattr("pumice.cluster.controller_loop.MANY", 3)

    async def story() -> dict[str, list[bool]]:
        cluster, quotas, clock = store(), Quotas(), RunningClock(NOON)
        for namespace, count in (("large", 4), ("small", 3)):
            cluster.create("namespaces", {"metadata": {"name": namespace}})
            for number in range(count):
                cluster.create("pods", {"metadata": {"name": f"p{number}"}, "spec": pod("p")["spec"]}, namespace)
            cluster.create("resourcequotas", {"metadata": {"name": f"of-{namespace}"}, "spec": {}}, namespace)
        turns = WorkerTurns([ControllerLoop(StoreLister(cluster), [quotas], clock, long_s=60.0)])
        turns.start()
        async with asyncio.timeout(60):
            while not {"of-large", "of-small"} <= quotas.on_loop.keys():
                await asyncio.sleep(0.01)
        turns.stop()
        return quotas.on_loop

    found = asyncio.run(story())
    assert found.pop("of-large") == [False] and all(all(looks) for looks in found.values())


# The transport


def in_loop(story: Callable[[Store, InProcess], Any]) -> None:
    async def run() -> None:
        cluster = store()
        await asyncio.wait_for(story(cluster, InProcess(cluster, "test")), 20)

    asyncio.run(run())


def test_a_reflector_over_the_store_sees_what_was_and_what_comes() -> None:
    async def story(cluster: Store, transport: InProcess) -> None:
        cluster.create("pods", pod("old"), "default")
        told: list[Any] = []
        read = msgspec.json.Decoder(dict[str, Any]).decode
        reflector = Reflector(transport, ListScope(PODS), read, told.append, metadata=dict_metadata)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        cluster.create("pods", pod("new"), "default")
        cluster.bind("default", "new", "n")
        cluster.delete("pods", "old", "default", DeleteOptions(grace_s=0))
        while len(told) < 4:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert [type(each) for each in told] == [Added, Added, Modified, Deleted]
        assert cluster.storage.kind_storage("pods").watches == []

    in_loop(story)


def test_selectors_choose_in_process_as_over_http() -> None:
    async def story(cluster: Store, transport: InProcess) -> None:
        cluster.create("pods", pod("a", labels={"app": "x"}), "default")
        cluster.create("pods", pod("b"), "default")
        cluster.bind("default", "b", "n")
        for scope, expected in (
            (ListScope(PODS, label_selector="app=x"), ["a"]),
            (ListScope(PODS, field_selector="spec.nodeName=n"), ["b"]),
            (ListScope(PODS, namespace="other"), []),
        ):
            pages = [page async for page in transport.pages(scope)]
            names = [msgspec.json.decode(item)["metadata"]["name"] for page in pages for item in page.items]
            assert names == expected

    in_loop(story)


def test_the_scheduler_s_writes_work_in_process() -> None:
    async def story(cluster: Store, transport: InProcess) -> None:
        uid = cluster.create("pods", pod("a"), "default")["metadata"]["uid"]
        ref = ObjectRef("a", "default", uid)
        await bind(transport, ref, "n", {"note": "1"})
        bound = cluster.get("pods", "a", "default")
        assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n", {"note": "1"})
        with pytest.raises(ApiError) as elsewhere:
            await bind(transport, ref, "m")
        assert elsewhere.value.code == 409
        await evict(transport, ref, [{"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "for another"}])
        assert cluster.get("pods", "a", "default")["metadata"]["deletionTimestamp"]
        await transport.create(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 1}})
        await transport.patch(QUEUES, ObjectRef("q"), {"spec": {"weight": 3}}, PatchType.MERGE)
        assert cluster.get("queues.scheduling.volcano.sh", "q")["spec"]["weight"] == 3

    in_loop(story)


def test_refusals_in_process_are_those_of_the_server() -> None:
    async def story(cluster: Store, transport: InProcess) -> None:
        with pytest.raises(ApiError) as absent:
            await transport.get(NODES, ObjectRef("absent"))
        assert (absent.value.code, absent.value.reason) == (404, "NotFound")
        with pytest.raises(ApiError) as unknown:
            await transport.get(Kind("no.such", "v1", "Thing", "things"), ObjectRef("x"))
        assert unknown.value.code == 404

    in_loop(story)


# Clocks


def test_a_running_clock_runs_as_fast_as_it_is_told_and_can_be_paused() -> None:
    machine = [10.0]
    clock = RunningClock(1000.0, 60.0, lambda: machine[0])
    machine[0] += 2
    assert clock.now() == 1120.0
    clock.set_speed(0)
    machine[0] += 100
    assert clock.now() == 1120.0
    clock.set_speed(1)
    machine[0] += 5
    assert clock.now() == 1125.0
    clock.not_before(2000.0)
    assert clock.now() == 2000.0


def test_alarms_ring_in_the_order_of_their_instants_unless_cancelled() -> None:
    clock = VirtualClock(0.0)
    rung: list[str] = []
    clock.at(3, lambda: rung.append("c"))
    clock.at(1, lambda: rung.append("a"))
    clock.at(2, lambda: rung.append("never")).cancel()
    clock.at(1, lambda: rung.append("b"))
    clock.move_to(2)
    assert rung == ["a", "b"]
    assert clock.next_time() == 3


def test_sleep_on_a_fast_clock_is_short() -> None:
    async def story() -> float:
        clock = RunningClock(0.0, 1000.0)
        clock.attach()
        await asyncio.wait_for(clock.sleep(100.0), 5)
        clock.detach()
        return clock.now()

    assert asyncio.run(story()) >= 100.0


def test_a_watch_tells_at_once_what_happened_before_it_began() -> None:
    async def first_events() -> Sequence[WatchLine]:
        cluster = store()
        cluster.create("pods", pod("early"), "default")
        events = InProcess(cluster, "test").watch(ListScope(PODS), resource_version="0", timeout_s=60, idle_s=60)
        return await asyncio.wait_for(anext(events), 10)

    (event,) = asyncio.run(first_events())
    assert isinstance(event, WatchedEvent) and event.type == "ADDED"
    assert msgspec.json.decode(event.object)["metadata"]["name"] == "early"
