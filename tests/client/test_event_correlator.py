"""Events are counted, folded and spared as Kubernetes' own components do it, and never stop anybody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aloop import ended, run, until
from fakeapi import FakeApi, Fault

from pumice.client.access import Access, Fixed
from pumice.client.client import Backoff, Client, Retry
from pumice.client.event_correlator import FOLD_GAP_S, FOLDED, FOLDED_FROM, EventCorrelator, EventRecord, InvolvedObject
from pumice.client.event_recorder import EventRecorder, Flow

NOW = 1767225600.0
POD = InvolvedObject("Pod", "j3-w-1", "default", "uid-1", "v1", "331")


def happened(
    message: str = "Successfully assigned default/j3-w-1 to node-0", reason: str = "Scheduled", about: InvolvedObject = POD
) -> EventRecord:
    return EventRecord(about, "Normal", reason, message)


def test_a_first_event_is_written_whole() -> None:
    write = EventCorrelator("volcano").note(happened(), NOW)
    assert write is not None and write.patch is None
    assert write.event == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"j3-w-1.{int(NOW * 1e9):x}", "namespace": "default"},
        "involvedObject": POD,
        "reason": "Scheduled",
        "message": "Successfully assigned default/j3-w-1 to node-0",
        "source": {"component": "volcano"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "reportingComponent": "volcano",
        "reportingInstance": "",
    }


def test_a_repeat_is_a_patch_of_the_count() -> None:
    book = EventCorrelator("volcano")
    first = book.note(happened(), NOW)
    second = book.note(happened(), NOW + 61)
    assert first and second and second.name == first.name
    assert second.patch == {"count": 2, "lastTimestamp": "2026-01-01T00:01:01Z", "message": happened().message}
    assert second.event["count"] == 2 and second.event["firstTimestamp"] == "2026-01-01T00:00:00Z"


def test_an_object_has_25_events_and_then_one_each_five_minutes() -> None:
    book = EventCorrelator("volcano")
    sent = [book.note(happened(), NOW + second) is not None for second in range(40)]
    assert sent == [True] * 25 + [False] * 15
    write = book.note(happened(), NOW + 310)
    assert write is not None and write.patch is not None and write.patch["count"] == 41
    assert book.note(happened(), NOW + 320) is None
    assert book.note(happened(about=InvolvedObject("Pod", "other", "default")), NOW + 320) is not None


@pytest.mark.parametrize(("gap", "is_folded"), [(FOLD_GAP_S, True), (FOLD_GAP_S + 1, False)])
def test_messages_are_folded_unless_more_than_ten_minutes_passed_without_one(gap: float, is_folded: bool) -> None:
    book = EventCorrelator("volcano")
    for number in range(FOLDED_FROM - 1):
        book.note(happened(str(number)), NOW)
    write = book.note(happened("the last"), NOW + gap)
    assert write is not None and write.event["message"].startswith(FOLDED) == is_folded


def test_many_different_messages_become_one_event() -> None:
    book = EventCorrelator("volcano")
    writes = [book.note(happened(f"message {number}"), NOW + number) for number in range(12)]
    assert [write.event["message"].startswith(FOLDED) for write in writes if write] == [False] * 9 + [True] * 3
    last = writes[-1]
    assert last and last.patch and last.patch["message"] == "(combined from similar events): message 11" and last.patch["count"] == 3
    after_a_pause = book.note(happened("message 99"), NOW + 700)
    assert after_a_pause and after_a_pause.event["message"] == "message 99"


def test_names_never_stand_twice_and_cluster_wide_objects_have_theirs_in_default() -> None:
    book = EventCorrelator("volcano")
    writes = [book.note(happened(str(number), about=InvolvedObject("Queue", "q")), NOW) for number in range(3)]
    assert len({write.name for write in writes if write}) == 3
    assert {write.namespace for write in writes if write} == {"default"}


def with_recorder(story: Callable[[FakeApi, EventRecorder], Coroutine[Any, Any, Any]], **flow: Any) -> None:
    async def whole() -> None:
        async with FakeApi() as api, Client(Access(api.url, Fixed()), retry=Retry(1, Backoff(0.001, 0.01))) as client:
            recorder = EventRecorder(client, "volcano", flow=Flow(**{"pause_s": 0.01, **flow}))
            task = asyncio.create_task(recorder.run())
            await story(api, recorder)
            assert not task.done()
            await ended(task)

    run(whole())


def test_repeats_are_patched_on_the_server() -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        for _ in range(3):
            recorder.tell(happened())
        await recorder.drain(5.0)
        (event,) = api.objects.values()
        assert event["count"] == 3 and [method for method, _, _ in api.requests] == ["POST", "PATCH", "PATCH"]

    with_recorder(story)


def test_an_event_that_the_server_forgot_is_created_again() -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        recorder.tell(happened())
        await recorder.drain(5.0)
        api.objects.clear()
        recorder.tell(happened())
        await recorder.drain(5.0)
        assert next(iter(api.objects.values()))["count"] == 2

    with_recorder(story)


@pytest.mark.parametrize("fault", [Fault(500), Fault(429, retry_after="0"), Fault(lose="answer"), Fault(lose="request")])
def test_what_fails_for_a_while_is_tried_again(fault: Fault) -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        api.faults.extend([fault] * 3)
        recorder.tell(happened())
        await recorder.drain(5.0)
        assert len(api.objects) == 1 and recorder.dropped == 0

    with_recorder(story)


def test_what_the_server_refuses_is_dropped_at_once_and_the_rest_goes_on() -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        api.faults.append(Fault(403, "Forbidden"))
        recorder.tell(happened())
        recorder.tell(happened("another"))
        await recorder.drain(5.0)
        assert recorder.dropped == 1 and len(api.requests) == 2

    with_recorder(story)


def test_a_missing_right_is_told_once_and_a_namespace_that_ends_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        ending = "unable to create new content in namespace team because it is being terminated"
        api.faults.extend([Fault(403, ending), Fault(403, "Forbidden"), Fault(403, "Forbidden"), Fault(422, "Invalid")])
        for number in range(4):
            recorder.tell(happened(f"number {number}"))
        await recorder.drain(5.0)
        assert recorder.dropped == 4

    with caplog.at_level(logging.DEBUG):
        with_recorder(story)
    told = [record.getMessage() for record in caplog.records if record.name == "pumice.client.event_recorder"]
    assert [text.split()[0] for text in told] == ["events", "events", "event"]
    assert told[0].startswith("events are dropped for want of a right: 403 Forbidden")


def test_tries_and_queue_have_an_end() -> None:
    async def story(api: FakeApi, recorder: EventRecorder) -> None:
        api.faults.extend([Fault(500)] * 3)
        recorder.tell(happened("one"))
        recorder.tell(happened("two"))
        recorder.tell(happened("three"))
        assert recorder.dropped == 1
        await until(lambda: recorder.dropped == 2)
        await recorder.drain(5.0)
        assert [event["message"] for event in api.objects.values()] == ["two"]

    with_recorder(story, queue=2, tries=3)


def test_events_wait_while_there_is_something_better_to_do_but_not_for_ever() -> None:
    async def story(api: FakeApi) -> None:
        busy = True
        async with Client(Access(api.url, Fixed())) as client:
            recorder = EventRecorder(client, "volcano", flow=Flow(patience_s=60.0), busy=lambda: busy)
            running = asyncio.create_task(recorder.run())
            recorder.tell(happened())
            await asyncio.sleep(0.2)
            assert not api.requests
            busy = False
            await until(lambda: len(api.requests) == 1)
            await ended(running)
            recorder = EventRecorder(client, "volcano", flow=Flow(patience_s=0.2), busy=lambda: True)
            running = asyncio.create_task(recorder.run())
            recorder.tell(happened())
            await until(lambda: len(api.requests) == 2)
            await ended(running)
            recorder = EventRecorder(client, "volcano", flow=Flow(queue=8, senders=1, patience_s=60.0), busy=lambda: True)
            running = asyncio.create_task(recorder.run())
            for message in "abcdef":
                recorder.tell(happened(message=message))
            await until(lambda: len(api.requests) == 5)
            assert not recorder.dropped, "while the queue is half full nobody waits"
            await ended(running)

    async def whole() -> None:
        async with FakeApi() as api:
            await story(api)

    run(whole())
