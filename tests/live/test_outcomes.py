"""What was assumed, against what a look at the pod says."""

from __future__ import annotations

import asyncio

import pytest

from pumice import testing
from pumice.api.kinds import ObjectRef
from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.client.failures import ApiError
from pumice.extensions import plugins
from pumice.live.clock import WallClock
from pumice.live.scheduler.assumed_pods import EXPIRY_S
from pumice.live.scheduler.event_translation import EventTranslation
from pumice.live.scheduler.handle import Handle
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.outcomes import Outcomes
from pumice.live.scheduler.requests import BindPod, EvictPod, MarkPod, ReadPod
from pumice.live.scheduler.sent_status import SentStatus
from pumice.live.scheduler.single_writer import SingleWriter
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import PodBuilder, pod
from tests.live.situations import KUBE

REF = ObjectRef("p", "ns", "uid-p")
BARE = pod("p", "ns")


def shown(version: int, *, node: str = "", phase: str = "Pending", of: PodBuilder = BARE) -> Pod:
    made = of.having("metadata", "uid", value=f"uid-{of.document['metadata']['name']}")
    made = made.having("metadata", "resourceVersion", value=str(version)).on(node).phase(phase)
    return convert(made.document, Pod)


@pytest.fixture
def cluster() -> Cluster:
    made = testing.cluster(testing.node("a").cpu(1).pods(1))
    made.put("Pod", shown(5))
    return made


class StillClock(WallClock):
    time = 1000.0

    def now(self) -> float:
        return self.time


def outcomes(
    cluster: Cluster,
    keep_raw: int,
    clock: WallClock | None = None,
    event_translation: EventTranslation | None = None,
    sent: SentStatus | None = None,
    state: SingleWriter | None = None,
) -> Outcomes:
    def ignore(what: object) -> None:
        """Nobody listens."""

    event_translation = event_translation or EventTranslation(cluster)
    sent, state, clock = sent or SentStatus(), state or SingleWriter(), clock or WallClock()
    handle = Handle(cluster, state, sent, event_translation, clock, LiveMetrics(), tell=ignore, request_cycle=ignore)
    return Outcomes(handle, lambda *_: keep_raw)


def test_what_was_sent_changes_only_between_cycles(cluster: Cluster) -> None:
    sent, state, request = SentStatus(), SingleWriter(), BindPod(REF, "a", {})
    book = outcomes(cluster, keep_raw=5, sent=sent, state=state)

    async def story() -> None:
        async with state.alone():
            book.done(request, b"")
            book.failed(MarkPod(REF, "Unschedulable", "", None), ApiError(403, "Forbidden", ""))
            pause_s = asyncio.create_task(book.on_fault(request, ValueError()))
            await asyncio.sleep(0)
            assert not book.assumed.granted and not sent.pauses
        assert REF.uid in book.assumed.granted and sent.pauses.holds("Fault", str(REF), WallClock().now()) and await pause_s
        assert sent.pauses.holds("Pod", REF.uid, WallClock().now())

    asyncio.run(story())


def test_a_bind_that_came_to_nothing_is_taken_back(cluster: Cluster) -> None:
    task = cluster.tasks["ns/p"]
    cluster.move(task, status.BINDING, 0)
    assert asyncio.run(outcomes(cluster, keep_raw=5).pod_read(ReadPod(REF, status.BINDING), shown(5)))
    assert (task.status, task.node) == (status.PENDING, -1)


def test_an_answer_that_was_long_on_its_way_does_not_undo_what_the_watch_told_since(cluster: Cluster) -> None:
    task = cluster.tasks["ns/p"]
    cluster.move(task, status.RUNNING, 0)
    assert asyncio.run(outcomes(cluster, keep_raw=8).pod_read(ReadPod(REF, status.BINDING), shown(6, node="a")))
    assert task.status == status.RUNNING


def test_an_answer_older_than_the_watch_is_asked_for_again(cluster: Cluster) -> None:
    task = cluster.tasks["ns/p"]
    cluster.move(task, status.BINDING, 0)
    assert not asyncio.run(outcomes(cluster, keep_raw=8).pod_read(ReadPod(REF, status.BINDING), shown(5)))
    assert task.status == status.BINDING


def test_a_pod_that_is_gone_is_forgotten(cluster: Cluster) -> None:
    cluster.move(cluster.tasks["ns/p"], status.BINDING, 0)
    assert asyncio.run(outcomes(cluster, keep_raw=5).pod_read(ReadPod(REF, status.BINDING), None))
    assert not cluster.tasks


def test_what_the_watch_tells_of_a_pod_from_before_it_was_read_is_old(cluster: Cluster) -> None:
    cluster.move(cluster.tasks["ns/p"], status.BINDING, 0)
    sent = SentStatus()
    book = outcomes(cluster, keep_raw=5, sent=sent)
    assert not book.assumed.is_older(REF.uid, 5)
    assert asyncio.run(book.pod_read(ReadPod(REF, status.BINDING), shown(8, node="a", phase="Running")))
    assert book.assumed.is_older(REF.uid, 7)
    assert not book.assumed.is_older(REF.uid, 9)
    assert not book.assumed.is_older(REF.uid, 7), "it is the reflector's business from then on"


def test_nothing_that_the_watch_still_tells_of_a_pod_brings_it_back_once_it_was_found_gone(cluster: Cluster) -> None:
    cluster.move(cluster.tasks["ns/p"], status.BINDING, 0)
    sent = SentStatus()
    book = outcomes(cluster, keep_raw=5, sent=sent)
    assert asyncio.run(book.pod_read(ReadPod(REF, status.BINDING), None))
    assert book.assumed.is_older(REF.uid, 7) and book.assumed.is_older(REF.uid, 9)
    book.assumed.forget(REF.uid)
    assert not book.assumed.is_older(REF.uid, 9)


def test_a_granted_eviction_that_the_watch_never_shows_is_looked_up(cluster: Cluster) -> None:
    clock = StillClock()
    book = outcomes(cluster, keep_raw=5, clock=clock)
    cluster.move(cluster.tasks["ns/p"], status.RELEASING, 0)
    book.done(EvictPod(REF, "preempt", "volcano"), b"")
    assert not book.assumed.expired()
    clock.time += EXPIRY_S
    assert book.assumed.expired() == [ReadPod(REF, status.RELEASING)]
    assert not book.assumed.expired()


def test_of_two_granted_writes_about_a_pod_the_last_one_counts(cluster: Cluster) -> None:
    clock = StillClock()
    book = outcomes(cluster, keep_raw=5, clock=clock)
    cluster.move(cluster.tasks["ns/p"], status.RELEASING, 0)
    book.assumed.grant(ReadPod(REF, status.BINDING), clock.now())
    book.assumed.grant(ReadPod(REF, status.RELEASING), clock.now() + 1)
    clock.time += EXPIRY_S
    assert not book.assumed.expired() and REF.uid in book.assumed.granted
    clock.time += 1
    assert book.assumed.expired() == [ReadPod(REF, status.RELEASING)]
    assert not book.assumed.granted


P, Q = (pod(name, "ns").cpu(1).scheduler("default-scheduler") for name in "pq")


@pytest.mark.parametrize(
    "found",
    [None, shown(7, of=P), shown(7, node="a", phase="Succeeded", of=P), shown(7, node="b", of=P)],
    ids=["gone", "waiting still", "finished", "elsewhere"],
)
def test_what_was_held_for_a_pod_that_is_not_there_wakes_who_waits_for_it(found: Pod | None) -> None:
    cluster = Cluster(("default-scheduler",))
    for name in "ab":
        cluster.put(*testing.node(name).cpu(1).pods(9).build())
    for waits in (P, Q):
        cluster.put("Pod", shown(5, of=waits))
    event_translation = EventTranslation(cluster)
    event_translation.adopt(read_configurations([config_text(KUBE, "test")], plugins(None))[0])
    queue = event_translation.queue
    assert isinstance(queue, SchedulingQueue)
    task, other = cluster.tasks["ns/p"], cluster.tasks["ns/q"]
    cluster.move(task, status.BINDING, 0)
    queue.refused(other, frozenset(["NodeResourcesFit"]), 0.0)
    assert asyncio.run(
        outcomes(cluster, keep_raw=5, event_translation=event_translation).pod_read(
            ReadPod(ObjectRef("p", "ns", "uid-p"), status.BINDING), found
        )
    )
    assert list(queue.backoff) == [other.uid]
    assert list(queue.failing) == ([task.uid] if task.status == status.PENDING and found is not None else [])
