"""After any faults a reflector's consumer knows what the server knows, was told each thing once, and never an older one after a newer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aloop import ended, run, until
from fakeapi import FakeApi, Fault, StreamFault
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.api.kinds import PODS
from pumice.api.meta import Metadata, Wire
from pumice.client.access import Access, Fixed
from pumice.client.client import Backoff, Client, Retry
from pumice.client.known_versions import Added, Deleted, KnownVersions, Modified, OutOfOrder
from pumice.client.reflector import Pace, Reflector, dict_metadata
from pumice.client.transport import ListScope, Page, as_dict
from tests.samples import times

QUICK = Pace(Backoff(0.001, 0.01), idle_s=0.1, shortest_watch_s=300, page=2)


class Spec(Wire):
    nodeName: str | None = None


class Thing(Wire):
    metadata: Metadata
    spec: Spec | None = None


decode = msgspec.json.Decoder(Thing).decode


class Consumer:
    """Keeps what it is told, and refuses what cannot be true."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], tuple[str, int]] = {}
        self.told: set[tuple[str, int]] = set()
        self.changes: list[Any] = []

    def __call__(self, change: Any) -> None:
        self.changes.append(change)
        if isinstance(change, Deleted):
            assert self.objects.pop((change.namespace, change.name))[0] == change.uid
            return
        metadata = change.object.metadata
        key, now = (metadata.namespace, metadata.name), (metadata.uid, int(metadata.resource_version))
        before = self.objects.get(key)
        assert now not in self.told, "told twice"
        assert (before is None) == isinstance(change, Added), "Added what is there, or Modified what is not"
        assert before is None or (before[0] == now[0] and before[1] < now[1]), "went back in time"
        self.told.add(now)
        self.objects[key] = now

    def agrees_with(self, api: FakeApi) -> bool:
        server = {key[1:]: (body["metadata"]["uid"], int(body["metadata"]["resourceVersion"])) for key, body in api.objects.items()}
        return self.objects == server


def name_of(change: Any) -> str:
    return change.name if isinstance(change, Deleted) else change.object.metadata.name


@asynccontextmanager
async def following(api: FakeApi, **options: Any):
    consumer = Consumer()
    async with Client(Access(api.url, Fixed()), retry=Retry(2, Backoff(0.001, 0.01))) as client:
        reflector = Reflector(client, ListScope(PODS), decode, consumer, **{"pace": QUICK, **options})
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, consumer
            assert not task.done(), task.exception()
        finally:
            await ended(task)


def test_it_tells_what_is_there_and_then_what_changes() -> None:
    async def story() -> None:
        async with FakeApi() as api:
            for name in "abcde":
                await api.put("pods", name)
            async with following(api) as (reflector, consumer):
                await reflector.synced.wait()
                assert consumer.agrees_with(api) and len(consumer.changes) == 5
                await api.put("pods", "a", spec={"nodeName": "n1"})
                await api.remove("pods", "b")
                await until(lambda: consumer.agrees_with(api))
                assert [type(change) for change in consumer.changes[5:]] == [Modified, Deleted]
                assert consumer.changes[5].object.spec.nodeName == "n1"

    run(story())


def test_a_server_is_asked_for_pages_and_a_watch() -> None:
    async def story() -> None:
        async with FakeApi() as api:
            for name in "abcde":
                await api.put("pods", name)
            async with following(api) as (reflector, _):
                await reflector.synced.wait()
                await until(lambda: any("resourceVersion=105" in path for _, path, _ in api.requests))
            lists = [path for _, path, _ in api.requests if "watch" not in path]
            assert len(lists) == 3 and all("limit=2" in path for path in lists)

    run(story())


def test_pages_that_expire_are_replaced_by_one_whole_list() -> None:
    async def story() -> None:
        async with FakeApi(pages_expire=True) as api:
            for name in "abc":
                await api.put("pods", name)
            async with following(api) as (reflector, consumer):
                await reflector.synced.wait()
                assert consumer.agrees_with(api)

    run(story())


def test_after_other_failures_pages_are_asked_for_again() -> None:
    """A whole list of a large cluster takes longer than any answer may."""

    async def story() -> None:
        async with FakeApi() as api:
            for name in "abcde":
                await api.put("pods", name)
            api.faults.extend([Fault(lose="answer")] * 4)
            async with following(api) as (reflector, consumer):
                await reflector.synced.wait()
                assert consumer.agrees_with(api)
            assert all("limit=2" in path for _, path, _ in api.requests if "watch" not in path)

    run(story())


def test_after_410_only_the_differences_are_told() -> None:
    async def story() -> None:
        async with FakeApi() as api:
            for name in "abcd":
                await api.put("pods", name)
            async with following(api) as (reflector, consumer):
                await reflector.synced.wait()
                api.faults.extend([Fault(lose="request", watch=True)] * 20)
                api.cut_streams()
                await api.remove("pods", "a")
                await api.put("pods", "a")  # another a
                await api.put("pods", "b", spec={"nodeName": "n1"})
                await api.remove("pods", "c")
                await api.compact()
                api.faults.clear()
                await until(lambda: consumer.agrees_with(api))
                names = sorted((type(change).__name__, name_of(change)) for change in consumer.changes[4:])
                assert names == [("Added", "a"), ("Deleted", "a"), ("Deleted", "c"), ("Modified", "b")]

    run(story())


def test_a_stream_that_falls_silent_is_left() -> None:
    async def story() -> None:
        async with FakeApi() as api, following(api) as (reflector, _):
            await reflector.synced.wait()
            before = len(api.requests)
            await until(lambda: len(api.requests) > before)

    run(story())


def test_429_just_after_a_crd_was_installed_is_waited_out() -> None:
    async def story() -> None:
        async with FakeApi() as api:
            await api.put("pods", "a")
            api.faults.append(Fault(429, "TooManyRequests", retry_after="1"))
            async with following(api) as (reflector, consumer):
                begun = asyncio.get_running_loop().time()
                await reflector.synced.wait()
                assert asyncio.get_running_loop().time() - begun >= 0.99
                assert consumer.agrees_with(api) and reflector.trouble is None

    run(story())


def test_a_missing_resource_counts_as_empty_only_if_it_is_optional(caplog: pytest.LogCaptureFixture) -> None:
    async def story(optional: bool) -> bool:
        async with FakeApi() as api:
            api.faults.extend([Fault(404, "NotFound")] * 5)
            async with following(api, optional=optional) as (reflector, _):
                await until(lambda: len(api.faults) < 4)
                synced = reflector.synced.is_set()
                await reflector.synced.wait()
                return synced

    assert run(story(True))
    assert not [record for record in caplog.records if record.levelname == "WARNING"], "who can do without need not be warned"
    assert not run(story(False))


def test_of_a_resource_that_was_there_one_line_says_that_it_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with FakeApi() as api, following(api, optional=True) as (reflector, _):
            await reflector.synced.wait()
            api.faults.extend([Fault(404, "NotFound")] * 3)
            await api.put("pods", "a")
            await until(lambda: not api.faults)

    run(story())
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == ["pods: 404 NotFound: made to fail"]


def test_after_an_outage_nobody_is_told_of_what_was_never_there_nor_that_a_position_is_too_old(caplog: pytest.LogCaptureFixture) -> None:
    outage = [Fault(503, "Unavailable")] * 7

    async def story(*after: Fault) -> None:
        async with FakeApi() as api:
            api.faults.extend([Fault(404, "NotFound")] * (after[0].code == 404))
            async with following(api, optional=True) as (reflector, _):
                await reflector.synced.wait()
                api.faults.extend([*outage, *after])
                await api.put("pods", "a")
                await until(lambda: not api.faults)

    run(story(Fault(404, "NotFound")))
    run(story(Fault(410, "Expired")))
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert {*told} == {"pods: 503 Unavailable: made to fail"}


def test_the_same_failure_again_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with FakeApi() as api:
            api.faults.extend([Fault(503, "Unavailable")] * 3 + [Fault(500, "InternalError")] * 2 + [Fault(403, "Forbidden")])
            async with following(api) as (reflector, _):
                await reflector.synced.wait()

    run(story())
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    expected = ["pods: 503 Unavailable: made to fail", "pods: 500 InternalError: made to fail"]
    assert told == expected, "whoever waits for the first list tells what the role lacks"


def test_what_may_last_for_good_is_told_once_even_to_who_wants_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Volcano's chart runs its controllers with -v=4, and its role lets them read few of the kinds that we could."""
    caplog.set_level(logging.DEBUG, "pumice.client.reflector")

    async def story(fault: Fault, optional: bool) -> None:
        async with FakeApi() as api:
            api.faults.extend([fault] * 5)
            async with following(api, optional=optional):
                await until(lambda: not api.faults)

    run(story(Fault(403, "Forbidden"), False))
    run(story(Fault(404, "NotFound"), True))
    told = [record.getMessage() for record in caplog.records if record.name == "pumice.client.reflector"]
    assert told == ["pods: 403 Forbidden: made to fail", "pods: 404 NotFound: made to fail"]


def test_an_object_that_cannot_be_read_spoils_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with FakeApi() as api:
            await api.put("pods", "a", spec=7)
            await api.put("pods", "b")
            async with following(api) as (reflector, consumer):
                await reflector.synced.wait()
                assert [change.object.metadata.name for change in consumer.changes] == ["b"]
                await api.put("pods", "a", spec={})
                await until(lambda: consumer.agrees_with(api))

    run(story())
    assert "Pod default/a cannot be read" in caplog.text


class Odd:
    """A server with one list and one batch of lines of a watch, which it gives again and again. It ends after `rounds` watches."""

    def __init__(self, items: list[bytes], batch: list[bytes], rounds: int = 1) -> None:
        self._items, self._batch, self._left = items, batch, rounds

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        yield Page([msgspec.Raw(item) for item in self._items], "5")

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        self._left -= 1
        if self._left < 0:
            raise asyncio.CancelledError
        yield self._batch


class Noted:
    """A backoff without pauses, which notes the failures before each."""

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def delay_s(self, attempt: int, jitter: float) -> float:
        self.attempts.append(attempt)
        return 0.0


def told_by(server: Odd, backoff: Any, **options: Any) -> list[Any]:
    changes: list[Any] = []
    scope, read = options.pop("scope", ListScope(PODS)), options.pop("decode", decode)
    reflector = Reflector(server, scope, read, changes.append, pace=Pace(backoff), **options)  # type: ignore
    with pytest.raises(asyncio.CancelledError):
        run(reflector.run())
    return changes


NOTHING = b'{"type":"ADDED","object":{}}'


@pytest.mark.parametrize(
    "batch",
    [
        [b"<html>"],
        [b"null"],
        [b'{"type":"ADDED"}'],
        [b'{"type":"ERROR","object":null}'],
        [b'{"type":"ERROR","object":{"kind":"Status","code":500}}'],
        [b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}'],
        [NOTHING],
        [b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":null}}}'],
    ],
)
@pytest.mark.parametrize("options", [{}, {"decode": as_dict, "metadata": dict_metadata}], ids=["structs", "dicts"])
def test_pauses_grow_while_a_watch_shows_nothing_but_what_is_no_event(batch: list[bytes], options: Any, caplog: Any) -> None:
    """Without this, a proxy that answers each watch with a page to sign in is asked without any pause."""
    noted = Noted()
    assert told_by(Odd([], batch, 6), noted, **options) == []
    assert noted.attempts[-1] >= 4 and noted.attempts == sorted(noted.attempts)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) <= 2


@pytest.mark.parametrize("options", [{}, {"decode": as_dict, "metadata": dict_metadata}], ids=["structs", "dicts"])
def test_bytes_that_are_no_utf8_spoil_no_more_than_their_text(options: Any) -> None:
    head = b'{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"%d","annotations":{"odd":"x\xff"}}}'
    events = [b'{"type":"MODIFIED","object":%s}' % (head % 6), b'{"type":"DELETED","object":%s}' % (head % 7)]
    changes = told_by(Odd([head % 1], events), Noted(), **options)
    assert [type(change) for change in changes] == [Added, Modified, Deleted]


def test_objects_of_another_namespace_in_the_list_of_one_are_nobodys() -> None:
    """Without this, an object that another reflector follows is gone with the next right list of this one."""
    text = b'{"metadata":{"name":"a","namespace":"%s","uid":"u","resourceVersion":"%d"}}'
    server = Odd([text % (b"other", 1), text % (b"mine", 2)], [b'{"type":"ADDED","object":%s}' % (text % (b"third", 6))])
    changes = told_by(server, Noted(), scope=ListScope(PODS, "mine"))
    assert [change.key for change in changes] == ["mine/a"]


def test_objects_may_be_followed_as_plain_dicts() -> None:
    async def story() -> None:
        async with FakeApi() as api, Client(Access(api.url, Fixed())) as client:
            await api.put("pods", "a", spec={"x": 1})
            told: list[Any] = []
            reflector = Reflector(client, ListScope(PODS), as_dict, told.append, metadata=dict_metadata, pace=QUICK)
            task = asyncio.create_task(reflector.run())
            await reflector.synced.wait()
            await ended(task)
            assert told[0].object["spec"] == {"x": 1}

    run(story())


NAMES = st.sampled_from("abcd")
NUMBER = st.integers(0, 6)
FAULTS = st.one_of(
    st.builds(Fault, code=st.sampled_from([429, 500, 503, 504, 410]), watch=st.sampled_from([None, True, False])),
    st.builds(Fault, lose=st.sampled_from(["request", "answer"]), watch=st.sampled_from([None, False])),
    st.builds(Fault, delay_s=st.just(0.02)),
)
STREAM_FAULTS = st.one_of(
    st.builds(StreamFault, cut_after=NUMBER, mid_line=st.booleans(), garbage=st.booleans()),
    st.builds(StreamFault, cut_after=NUMBER, error=st.sampled_from([410, 429, 500])),
    st.builds(StreamFault, twice=NUMBER),
    st.builds(StreamFault, swap=NUMBER),
)
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("compact"), st.just("")),
    st.tuples(st.just("cut"), st.just("")),
    st.tuples(st.just("wait"), st.just("")),
)


@settings(max_examples=times(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEPS, max_size=25),
    faults=st.lists(FAULTS, max_size=5),
    stream_faults=st.lists(STREAM_FAULTS, max_size=5),
)
def test_after_any_faults_the_consumer_knows_what_the_server_knows(steps: Any, faults: Any, stream_faults: Any) -> None:
    async def story() -> None:
        async with FakeApi() as api:
            for fault in faults:
                fault.retry_after = ""
            api.faults.extend(faults)
            api.stream_faults.extend(stream_faults)
            await api.put("pods", "a")
            await api.put("pods", "c")
            async with following(api, pace=Pace(Backoff(0.001, 0.01), idle_s=0.06, page=2)) as (reflector, consumer):
                for step, name in steps:
                    if step == "put":
                        await api.put("pods", name)
                    elif step == "remove":
                        await api.remove("pods", name)
                    elif step == "compact":
                        await api.compact()
                    elif step == "cut":
                        api.cut_streams()
                    else:
                        await asyncio.sleep(0.01)
                await reflector.synced.wait()
                await until(lambda: consumer.agrees_with(api))

    run(story())


@pytest.mark.parametrize("ahead", [1000, 2**40, 2**63])
def test_a_version_to_which_the_server_has_not_come_is_forgotten(ahead: int) -> None:
    async def story() -> None:
        for fault in (Fault(ahead=ahead, watch=False), StreamFault(ahead=ahead)):
            async with FakeApi() as api:
                if isinstance(fault, Fault):
                    api.faults.append(fault)
                else:
                    api.stream_faults.append(fault)
                await api.put("pods", "a")
                async with following(api) as (reflector, consumer):
                    await reflector.synced.wait()
                    for name in "bcad":
                        await api.put("pods", name)
                        if name != "a":  # changes of what is known come as long as the watch lasts
                            await until(lambda: consumer.agrees_with(api))
                    api.cut_streams()
                    await api.remove("pods", "b")
                    await until(lambda: consumer.agrees_with(api))

    run(story())


def test_a_version_that_is_no_number_of_64_bits_orders_nothing() -> None:
    view: KnownVersions[str] = KnownVersions()
    for text in ("", "x", "+5", "1_0", "-1", "٣", "9" * 21, "9" * 5000):
        with pytest.raises(OutOfOrder, match="is not a number") as caught:
            view.stands_at(text)
        assert len(str(caught.value)) < 100


def meta(name: str, version: int, uid: str = "u") -> Metadata:
    return Metadata(name=name, uid=uid, resource_version=str(version))


def test_an_unknown_object_that_comes_late_means_that_the_stream_is_out_of_order() -> None:
    view: KnownVersions[str] = KnownVersions()
    view.list_begins()
    view.list_ends("5")
    assert view.changed("b", meta("b", 7)) == [Added("b", "/b")]
    with pytest.raises(OutOfOrder):
        view.changed("a", meta("a", 6))


def test_what_was_heard_from_an_answer_has_its_end_told_by_the_list_that_lacks_it() -> None:
    view: KnownVersions[str] = KnownVersions()
    view.list_begins()
    view.list_ends("5")
    assert view.note_answer(meta("a", 7)) and view.changed("a", meta("a", 7)) == []
    view.list_begins()
    assert view.list_ends("9") == [Deleted("", "a", "u")]


def test_a_list_says_nothing_of_what_was_heard_of_after_it() -> None:
    view: KnownVersions[str] = KnownVersions()
    view.list_begins()
    assert view.note_answer(meta("a", 12))
    assert view.list_ends("9") == []
    assert view.deleted(meta("a", 13)) == [Deleted("", "a", "u")]


def test_an_answer_that_comes_after_the_end_of_its_object_is_not_believed() -> None:
    view: KnownVersions[str] = KnownVersions()
    view.list_begins()
    view.changed("b", meta("b", 8, uid="later"))
    view.list_ends("9")
    assert not view.note_answer(meta("a", 7))
    assert not view.note_answer(meta("b", 7)) and view.note_answer(meta("b", 8, uid="later"))


def test_a_list_older_than_what_was_told_is_refused() -> None:
    view: KnownVersions[str] = KnownVersions()
    view.list_begins()
    view.list_ends("9")
    view.list_begins()
    with pytest.raises(OutOfOrder):
        view.list_is_of("8")
