"""Two replicas never both lead, whatever the network and the clocks do; one of them leads soon if nothing is wrong."""

from __future__ import annotations

import asyncio
import heapq
import logging
from typing import Any

import msgspec
import pytest
from aloop import ended, run, until
from fakeapi import FakeApi, Fault
from hypothesis import given, settings, strategies as st

from pumice.api.kinds import Kind, ObjectRef
from pumice.api.times import micro_time
from pumice.client.access import Access, Fixed
from pumice.client.client import Backoff, Client, Retry
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.leader_election import Election, Lease, LeaseCandidate, LeaseSpec, Term, decode_lease, new_identity
from tests.samples import times

LOCK = ObjectRef("volcano", "volcano-system")


def stored(candidate: LeaseCandidate, at: float, version: int) -> Lease:
    wanted = candidate.wanted(at, at)
    assert wanted is not None
    return msgspec.structs.replace(wanted, metadata={"resourceVersion": str(version)})


def test_a_first_lease_is_created_with_kubernetes_times() -> None:
    candidate = LeaseCandidate("host_1", LOCK)
    candidate.observed(None, 0.0)
    wanted = candidate.wanted(0.0, 1767225600.396501)
    assert wanted is not None and wanted.version == ""
    time = "2026-01-01T00:00:00.396501Z"
    assert wanted.spec == LeaseSpec("host_1", 15, time, time, 0)
    assert not candidate.leading(0.0)


def test_a_leader_leads_until_the_deadline_after_its_last_write_was_sent() -> None:
    candidate = LeaseCandidate("a", LOCK)
    candidate.observed(None, 0.0)
    candidate.granted(stored(candidate, 0.0, 1), sent_at=1.0, received_at=4.0)
    assert candidate.leading(10.9) and not candidate.leading(11.0)
    candidate.check(11.0)
    candidate.granted(stored_by("a", 2), sent_at=10.9, received_at=11.2)
    assert candidate.lost and not candidate.leading(11.3)


def stored_by(holder: str, version: int, seconds: int = 15, transitions: int = 0) -> Lease:
    return Lease({"resourceVersion": str(version)}, LeaseSpec(holder, seconds, micro_time(0), micro_time(0), transitions))


def test_another_ones_lease_is_taken_when_it_was_not_renewed_as_seen_here() -> None:
    candidate = LeaseCandidate("b", LOCK)
    candidate.observed(stored_by("a", 1), 0.0)
    assert candidate.wanted(14.9, 0.0) is None
    candidate.observed(stored_by("a", 2), 10.0)  # renewed
    assert candidate.wanted(24.9, 0.0) is None
    candidate.observed(stored_by("a", 2, transitions=3), 20.0)
    wanted = candidate.wanted(25.0, 0.0)
    assert wanted is not None and (wanted.spec.holder_identity, wanted.spec.lease_transitions, wanted.version) == ("b", 4, "2")


def test_the_holders_own_promise_counts() -> None:
    candidate = LeaseCandidate("b", LOCK)
    candidate.observed(stored_by("a", 1, seconds=60), 0.0)
    assert candidate.wanted(59.0, 0.0) is None and candidate.wanted(60.0, 0.0) is not None


def test_a_released_lease_is_taken_at_once() -> None:
    leader, successor = LeaseCandidate("a", LOCK), LeaseCandidate("b", LOCK)
    leader.observed(None, 0.0)
    leader.granted(stored(leader, 0.0, 1), 0.0, 0.0)
    given_up = leader.released(5.0)
    assert given_up is not None and not leader.leading(5.0) and leader.released(5.0) is None
    successor.observed(given_up, 5.0)
    assert successor.wanted(5.0, 5.0) is not None


@pytest.mark.parametrize("spec", [b"", b', "spec": {}'])
def test_a_lease_that_says_nothing_is_taken_at_once(spec: bytes) -> None:
    """As our chart leaves it."""
    candidate = LeaseCandidate("b", LOCK)
    candidate.observed(decode_lease(b'{"metadata": {"name": "volcano", "resourceVersion": "7"}' + spec + b"}"), 0.0)
    wanted = candidate.wanted(0.0, 0.0)
    assert wanted is not None and (wanted.version, wanted.spec.holder_identity, wanted.spec.lease_transitions) == ("7", "b", 1)


def test_a_leader_that_reads_another_name_has_lost() -> None:
    candidate = LeaseCandidate("a", LOCK)
    candidate.observed(None, 0.0)
    candidate.granted(stored(candidate, 0.0, 1), 0.0, 0.0)
    candidate.observed(stored_by("b", 2), 1.0)
    assert candidate.lost and not candidate.leading(1.0) and candidate.wanted(1.0, 1.0) is None


def test_times_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="longer than the renew deadline"):
        Term(lease_s=10, renew_deadline_s=10)


class World:
    """A server and two replicas on a virtual clock. Each message is delayed, and each answer may be lost."""

    def __init__(self, delays: list[float], losses: list[bool], pauses: list[float]) -> None:
        self.now = 0.0
        self.version = 0
        self.record: Lease | None = None
        self.candidates = [LeaseCandidate(name, LOCK) for name in "ab"]
        self.delays, self.losses, self.pauses = iter(delays), iter(losses), iter(pauses)
        self._queue: list[tuple[float, int, Any]] = []
        self._number = 0
        self.led: set[str] = set()

    def at(self, delay: float, what: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + delay, self._number, what))

    def play(self, until_s: float) -> None:
        for candidate in self.candidates:
            self.at(next(self.pauses, 0.0), lambda c=candidate: self.step(c))
        while self._queue and self._queue[0][0] < until_s:
            self.now, _, what = heapq.heappop(self._queue)
            self.check()
            what()
            self.check()

    def check(self) -> None:
        leading = [candidate.identity for candidate in self.candidates if candidate.leading(self.now)]
        assert len(leading) <= 1, f"both lead at {self.now}"
        self.led.update(leading)

    def step(self, candidate: LeaseCandidate) -> None:
        candidate.check(self.now)
        if not candidate.lost:
            self.at(next(self.delays, 0.01), lambda: self.read(candidate))

    def read(self, candidate: LeaseCandidate) -> None:
        record = self.record
        self.at(next(self.delays, 0.01), lambda: self.decide(candidate, record))

    def decide(self, candidate: LeaseCandidate, record: Lease | None) -> None:
        candidate.observed(record, self.now)
        wanted = candidate.wanted(self.now, self.now)
        sent_at = self.now
        if wanted is not None:
            self.at(next(self.delays, 0.01), lambda: self.write(candidate, wanted, sent_at))
        self.at(2.0 + next(self.pauses, 0.0), lambda: self.step(candidate))

    def write(self, candidate: LeaseCandidate, wanted: Lease, sent_at: float) -> None:
        if wanted.version != (self.record.version if self.record else ""):
            return
        self.version += 1
        record = self.record = msgspec.structs.replace(wanted, metadata={"resourceVersion": str(self.version)})
        if not next(self.losses, False):
            self.at(next(self.delays, 0.01), lambda: candidate.granted(record, sent_at, self.now))


DELAYS = st.lists(st.one_of(st.floats(0, 1), st.floats(0, 40)), max_size=60)


@settings(max_examples=times(100), deadline=None)
@given(DELAYS, st.lists(st.booleans(), max_size=20), st.lists(st.one_of(st.just(0.0), st.floats(0, 40)), max_size=30))
def test_two_candidates_never_both_lead(delays: list[float], losses: list[bool], pauses: list[float]) -> None:
    World(delays, losses, pauses).play(300.0)


def test_without_trouble_one_leads_and_when_it_stops_the_other_follows() -> None:
    world = World([], [], [])
    world.play(60.0)
    assert world.led == {"a"}
    world.candidates[0].lost = True
    world.play(120.0)
    assert world.led == {"a", "b"}


QUICK = Term(lease_s=1, renew_deadline_s=0.6, retry_s=0.1)


class OddServer:
    """Answers each read of the lease with these bytes, and notes how many there were."""

    def __init__(self, answer: bytes) -> None:
        self.reads, self.writes = 0, 0
        self._answer = answer

    async def get(self, *asked: Any) -> bytes:
        self.reads += 1
        return self._answer

    async def update(self, *asked: Any) -> bytes:
        self.writes += 1
        return self._answer

    create = update


@pytest.mark.parametrize(
    ("answer", "is_taken"),
    [
        (b"null", False),
        (b"[]", False),
        (b'{"spec":{}}', False),
        (b'{"metadata":null}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":5}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","leaseDurationSeconds":"15"}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","leaseDurationSeconds":1e400}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","renewTime":5}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","renewTime":"9999-12-31T23:59:59.000000Z"}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","renewTime":"yesterday"}}', False),
        (b'{"metadata":{},"spec":{"holderIdentity":"other","leaseDurationSeconds":-1,"renewTime":"9999-12-31T23:59:59Z"}}', True),
    ],
)
def test_an_odd_lease_ends_no_election_and_makes_no_leader_of_two(answer: bytes, is_taken: bool) -> None:
    """Its times count for nothing, whatever they say; what is no Lease is no answer."""

    async def story() -> None:
        server = OddServer(answer)
        candidate = LeaseCandidate("we", LOCK, Term(90, 60.0, 0.001))
        election = Election(server, candidate)  # type: ignore[arg-type]
        task = asyncio.create_task(election.run())
        await until(lambda: server.reads > 3 or server.writes > 0)
        assert not task.done() and bool(server.writes) == is_taken
        await ended(task)

    run(story())


def test_who_leads_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = OddServer(b'{"metadata":{},"spec":{"holderIdentity":"other","leaseDurationSeconds":90}}')
        task = asyncio.create_task(Election(server, LeaseCandidate("we", LOCK, Term(90, 60.0, 0.001))).run())  # type: ignore[arg-type]
        await until(lambda: server.reads > 3)
        await ended(task)

    with caplog.at_level(logging.INFO, "pumice.client.leader_election"):
        run(story())
    assert sum("other leads" in record.getMessage() for record in caplog.records) == 1


def client(api: FakeApi) -> Client:
    return Client(Access(api.url, Fixed()), retry=Retry(1, Backoff(0.001, 0.01)))


class Silent:
    """A server that grants a lease, and is not heard of again."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        raise ApiError(404, "NotFound", "no lease")

    async def create(self, resource: Kind, body: Any, namespace: str) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(body, metadata={**body.metadata, "resourceVersion": "1"}))

    async def update(self, resource: Kind, ref: ObjectRef, body: Any) -> bytes:
        raise NoAnswer("connection refused", sent=False)


def test_a_lead_that_is_lost_to_nobody_is_not_said_to_be_another_ones(caplog: pytest.LogCaptureFixture) -> None:
    run(Election(Silent(), LeaseCandidate("we", LOCK, Term(2, 0.05, 0.01))).run())  # type: ignore[arg-type]
    lost = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert lost == [f"we lost {LOCK}: it could not be renewed for 0.05 s"]


def test_an_election_on_a_server_is_won_lost_and_followed_and_the_loser_writes_nothing() -> None:
    async def story() -> None:
        async with FakeApi() as api, client(api) as ours, client(api) as theirs:
            first = Election(ours, LeaseCandidate(new_identity(), LOCK, QUICK))
            second = Election(theirs, LeaseCandidate(new_identity(), LOCK, QUICK))
            run_first = asyncio.create_task(first.run())
            await first.won.wait()
            run_second = asyncio.create_task(second.run())
            api.faults.append(Fault(409, "Conflict", method="PUT"))
            api.faults.append(Fault(lose="answer", method="PUT"))
            await asyncio.sleep(0.8)
            assert first.leading() and not second.leading()
            run_first.cancel()  # a replica that hangs: it goes on believing until its deadline
            await second.won.wait()
            assert second.leading() and not first.leading()
            lease = api.objects["leases", "volcano-system", "volcano"]
            assert lease["spec"]["holderIdentity"] == second.candidate.identity and lease["spec"]["leaseTransitions"] == 1
            api.faults.extend([Fault(500, method="PUT"), Fault(500, method="GET")] * 20)
            await run_second
            assert second.candidate.lost and not second.leading()
            await ended(run_first)

    run(story())


def test_a_clean_end_releases_the_lease() -> None:
    async def story() -> None:
        async with FakeApi() as api, client(api) as ours, client(api) as theirs:
            first = Election(ours, LeaseCandidate("a", LOCK))
            task = asyncio.create_task(first.run())
            await first.won.wait()
            await ended(task)
            await first.release()
            assert not first.leading()
            second = Election(theirs, LeaseCandidate("b", LOCK))
            task = asyncio.create_task(second.run())
            await until(second.won.is_set)
            await ended(task)

    run(story())
