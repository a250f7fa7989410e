"""A bind, an eviction, a status: carried to a known end whatever is lost on the way, and never done to another pod of the name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aloop import run
from fakeapi import FakeApi, Fault
from hypothesis import given, settings, strategies as st

from pumice.api.kinds import ObjectRef
from pumice.client.access import Access, Fixed
from pumice.client.bind_and_evict import amend_status, bind, evict, eviction_conditions, set_conditions
from pumice.client.client import Backoff, Client, Retry
from pumice.client.failures import ApiError, KubeError
from tests.samples import times

KEY = ("pods", "default", "a")
AT = "2026-01-01T00:00:00Z"


def with_pod(story: Callable[[FakeApi, Client, ObjectRef], Coroutine[Any, Any, Any]]) -> Any:
    async def whole() -> Any:
        async with FakeApi() as api, Client(Access(api.url, Fixed()), retry=Retry(3, Backoff(0.001, 0.01))) as client:
            pod = await api.put("pods", "a", spec={})
            return await story(api, client, ObjectRef("a", "default", pod["metadata"]["uid"]))

    return run(whole())


def test_a_bind_says_which_pod_it_means() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        await bind(client, pod, "n1", {"gpu": "0"})
        metadata = {"name": "a", "namespace": "default", "uid": pod.uid, "annotations": {"gpu": "0"}}
        target = {"kind": "Node", "name": "n1"}
        body = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target}
        assert api.requests == [("POST", "/api/v1/namespaces/default/pods/a/binding", body)]

    with_pod(story)


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(lose=lost) for lost in ("answer", "half", "request")),
        *(Fault(500), Fault(504), Fault(429, retry_after="0")),
        *(Fault(says=no_object, lose=lost) for no_object in (b"[]", b"null", b'"ok"') for lost in ("", "request")),
    ],
)
def test_a_bind_whose_answer_was_lost_is_found_out_by_reading(fault: Fault) -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        api.faults.append(fault)
        await bind(client, pod, "n1")
        assert api.objects[KEY]["spec"]["nodeName"] == "n1"
        assert sum(1 for _, _, kind, _ in api.log if kind == "MODIFIED") == 1

    with_pod(story)


def test_a_pod_that_is_bound_elsewhere_stays_there() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        await api.put("pods", "a", spec={"nodeName": "n2"})
        with pytest.raises(ApiError, match="409"):
            await bind(client, pod, "n1")
        api.faults.append(Fault(lose="request", method="POST"))
        with pytest.raises(ApiError, match="already assigned to node n2"):
            await bind(client, pod, "n1")
        await bind(client, pod, "n2")

    with_pod(story)


def test_another_pod_of_the_name_is_neither_bound_nor_evicted() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        await api.remove("pods", "a")
        await api.put("pods", "a", spec={})
        with pytest.raises(ApiError, match="404 NotFound"):
            await bind(client, pod, "n1")
        await evict(client, pod, eviction_conditions("preempt", "volcano", AT))
        assert "nodeName" not in api.objects[KEY]["spec"] and "status" not in api.objects[KEY]

    with_pod(story)


def test_an_eviction_tells_why_and_then_deletes() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        await evict(client, pod, eviction_conditions("Pod is evicted, because of preempt", "volcano", AT))
        assert [(method, path) for method, path, _ in api.requests] == [
            ("GET", "/api/v1/namespaces/default/pods/a"),
            ("PUT", "/api/v1/namespaces/default/pods/a/status"),
            ("DELETE", "/api/v1/namespaces/default/pods/a"),
        ]
        ready, target = api.requests[1][2]["status"]["conditions"]
        assert (ready["type"], ready["reason"], ready["message"]) == ("Ready", "Evict", "Pod is evicted, because of preempt")
        assert target["message"] == "volcano: preempting to accommodate a higher priority pod"
        assert KEY not in api.objects
        await evict(client, pod, eviction_conditions("preempt", "volcano", AT))  # gone already: well

    with_pod(story)


def test_a_status_that_somebody_else_wrote_first_is_read_again() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        rivals = iter([True])

        def change(status: dict[str, Any]) -> bool:
            if next(rivals, False):
                stored = api.objects[KEY]
                stored["metadata"]["resourceVersion"] = "999"
                stored["status"] = {"phase": "Pending"}
            status["nominatedNodeName"] = "n1"
            return True

        assert await amend_status(client, pod, change)
        assert api.objects[KEY]["status"] == {"phase": "Pending", "nominatedNodeName": "n1"}

    with_pod(story)


def test_a_pod_that_changes_hands_between_status_and_deletion_is_left_alone() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        api.faults.append(Fault(409, "Conflict", method="DELETE"))
        changed = asyncio.create_task(evict(client, pod, eviction_conditions("preempt", "volcano", AT)))
        while not any(kind == "MODIFIED" for _, _, kind, _ in api.log):
            await asyncio.sleep(0)
        api.objects[KEY]["metadata"]["uid"] = "another"
        await changed
        assert KEY in api.objects

    with_pod(story)


def test_a_deletion_that_is_refused_is_no_eviction_while_the_pod_stands() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        api.faults.append(Fault(409, "Conflict", method="DELETE"))
        with pytest.raises(ApiError, match="409"):
            await evict(client, pod, eviction_conditions("preempt", "volcano", AT))

    with_pod(story)


def test_a_status_that_stands_as_wanted_is_not_written() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        assert not await amend_status(client, pod, lambda status: False)
        assert [method for method, _, _ in api.requests] == ["GET"]

    with_pod(story)


def test_a_status_that_is_refused_is_not_tried_again() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        api.faults.append(Fault(403, "Forbidden", method="PUT"))
        with pytest.raises(ApiError, match="403"):
            await evict(client, pod, eviction_conditions("preempt", "volcano", AT))
        assert KEY in api.objects and len(api.requests) == 2

    with_pod(story)


def test_a_status_that_conflicts_for_ever_is_given_up() -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        api.faults.extend([Fault(409, "Conflict", method="PUT")] * 9)
        with pytest.raises(ApiError, match="409"):
            await evict(client, pod, eviction_conditions("preempt", "volcano", AT))
        assert KEY in api.objects

    with_pod(story)


def test_conditions_change_only_with_their_words_and_keep_their_time_with_their_status() -> None:
    status: dict[str, Any] = {}
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room", "lastTransitionTime": AT}
    assert set_conditions(status, [told])
    later = told | {"lastTransitionTime": "2026-01-02T00:00:00Z"}
    assert not set_conditions(status, [later])
    assert set_conditions(status, [later | {"message": "still no room"}])
    assert status["conditions"] == [told | {"message": "still no room"}]
    assert set_conditions(status, [later | {"status": "True"}])
    assert status["conditions"][0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"


FAULTS = st.one_of(
    st.builds(Fault, code=st.sampled_from([409, 429, 500, 503]), method=st.sampled_from(["", "GET", "POST", "PUT", "DELETE"])),
    st.builds(Fault, lose=st.sampled_from(["request", "answer"]), method=st.sampled_from(["", "GET", "POST", "PUT", "DELETE"])),
)


@settings(max_examples=times(10), deadline=None)
@given(st.lists(FAULTS, max_size=6))
def test_a_bind_that_reports_success_took_place_and_one_that_did_not_happened_at_most_once(faults: list[Fault]) -> None:
    async def story(api: FakeApi, client: Client, pod: ObjectRef) -> None:
        for fault in faults:
            fault.retry_after = "0" if fault.code == 429 else ""
        api.faults.extend(faults)
        try:
            await bind(client, pod, "n1")
        except KubeError:
            pass
        else:
            assert api.objects[KEY]["spec"]["nodeName"] == "n1"
        assert sum(1 for _, _, kind, _ in api.log if kind == "MODIFIED") <= 1
        api.faults.clear()
        await evict(client, pod, eviction_conditions("reclaim", "volcano", AT))
        assert KEY not in api.objects

    with_pod(story)
