"""What the page's server answers, to whom, and what it keeps for those who do not read."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pumice.api.errors import InputError
from pumice.cli.scheduler import page_at
from pumice.cluster.apiserver import Server
from pumice.http.messages import Request, Response
from pumice.page import answers, expected_starts
from pumice.page.expected_starts import Expected
from pumice.page.files import files
from pumice.page.server import PageServer
from pumice.page.server_sent_events import KEPT, RESET, Feed
from pumice.testing.builders import hypernode, node, queue
from tests.page.clusters import gang, large, pieces, small
from tests.page.desk import Desk, desk

ALL_FILES = 150_000
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def served() -> Iterator[Desk]:
    with desk() as made:
        made.put(small())
        made.cycle()
        yield made


def ask(desk: Desk, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", desk.port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def snapshot(desk: Desk) -> Any:
    return json.loads(ask(desk, "/api/snapshot")[2])


def test_everything_zipped_is_small() -> None:
    request = Request("GET", "/", {"accept-encoding": "gzip"})
    sent = [file.respond(request) for file in files().values()]
    assert sum(len(response.body) for response in sent) < ALL_FILES
    assert all(("Content-Encoding", "gzip") in response.headers for response in sent)


@pytest.mark.parametrize("path", ["/", "/main.js", "/base.css", "/api/snapshot", "/api/why?subject=job/huge"])
def test_every_answer_is_guarded_and_sets_no_cookie(served: Desk, path: str) -> None:
    status, headers, _ = ask(served, path)
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers


def test_a_file_that_has_not_changed_is_not_sent_again(served: Desk) -> None:
    tag = ask(served, "/main.js")[1]["etag"]
    assert ask(served, "/main.js", **{"If-None-Match": tag})[0] == 304


def test_a_stranger_s_name_leads_nowhere(served: Desk) -> None:
    assert ask(served, "/api/snapshot", Host="evil.example:80")[0] == 403
    assert ask(served, "/api/snapshot", Host=f"localhost:{served.port}")[0] == 200


def test_it_is_read_only(served: Desk) -> None:
    assert ask(served, "/api/snapshot", "POST")[0] == 405
    assert ask(served, "/nowhere")[0] == 404


def test_a_snapshot_tells_nodes_queues_jobs_cycles_and_the_policy(served: Desk) -> None:
    found = snapshot(served)
    assert found["nodes"]["gpu-7"] == {"group": "rack-1", "room": {"cpu": 64.0, "memory": 2**39, "gpu": 8.0}, "used": {}, "held": []}
    assert found["queues"]["vision"]["held"] == {"cpu": 8.0, "memory": 2**35, "gpu": 16.0}
    assert found["jobs"]["default/train"]["pods"] == {"Binding": 2}
    assert found["jobs"]["default/huge"]["why"].startswith("pod group is not ready, 9 Pending, 9 minAvailable")
    assert [(cycle["bound"], cycle["evicted"]) for cycle in found["cycles"]] == [(5, 0)]
    assert {bind[3] for bind in found["cycles"][0]["binds"]} == {"allocate"}
    assert "allocate" in [action["name"] for action in found["policy"]["actions"]]


def test_nodes_are_grouped_by_their_hypernode_as_soon_as_there_is_one() -> None:
    with desk() as made:
        rack = node("n1").cpu(8).label("topology.kubernetes.io/rack", "r1")
        made.put([rack.build(), node("n2").cpu(8).build()])
        assert {name: row["group"] for name, row in snapshot(made)["nodes"].items()} == {"n1": "r1", "n2": ""}
        made.put([hypernode("s1").holds("n1").build()])
        while (found := {name: row["group"] for name, row in snapshot(made)["nodes"].items()}) != {"n1": "s1", "n2": ""}:
            assert found["n2"] == ""


def test_a_snapshot_is_zipped_for_who_can_unzip(served: Desk) -> None:
    _, headers, body = ask(served, "/api/snapshot", **{"Accept-Encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(body))["nodes"]


def test_why_is_answered_and_who_is_not_there_is_told(served: Desk) -> None:
    status, _, body = ask(served, "/api/why?subject=job/huge")
    assert (status, json.loads(body)["answer"]["state"]) == (200, "waits")
    status, _, body = ask(served, "/api/why?subject=job/nobody")
    assert (status, json.loads(body)["error"][:12]) == (404, "there is no ")


def test_why_leaves_no_trace(served: Desk) -> None:
    before = snapshot(served)["jobs"]
    ask(served, "/api/why?subject=job/huge")
    served.run(served.scheduler.look(lambda cluster: cluster.check()))
    assert snapshot(served)["jobs"] == before


def test_what_would_help_is_found_and_nothing_is_left_of_the_search(served: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LONGEST_SEARCH_S", 60.0)
    status, _, body = ask(served, "/api/whatif?subject=job/huge")
    found = json.loads(body)
    assert (status, found["whole"]) == (200, True)
    assert any(option["change"].startswith("a gang of ") and option["then"].startswith("starts on gpu-") for option in found["options"])
    served.run(served.scheduler.look(lambda cluster: cluster.check()))


def test_when_it_starts_is_told_of_a_small_cluster(served: Desk) -> None:
    status, _, body = ask(served, "/api/eta?subject=podgroup/huge")
    assert (status, json.loads(body)["subject"]) == (200, "podgroup/huge")
    with desk() as made:
        made.put(large(nodes=101))
        assert "`pumice eta`" in json.loads(ask(made, "/api/eta?subject=podgroup/job-0")[2])["error"]


def test_a_plan_that_empties_nodes_is_made_for_clusters_that_are_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    with desk() as made:
        made.put(pieces())
        made.cycle()
        plan = json.loads(ask(made, "/api/defrag")[2])
        assert [move["share"] for move in plan["moves"]] == [[20.0, 2.0]] * 2 and {move["job"] for move in plan["moves"]} == {"default/web"}
        monkeypatch.setattr(answers, "MOST_WRITTEN", 1)
        assert "`pumice defrag` makes one" in json.loads(ask(made, "/api/defrag")[2])["error"]


def test_all_that_wait_are_told_when_they_start_by_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with desk() as made:
        made.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), queue("q").build()])
        made.put([*gang("first", "q", 1, 8, ("n1",)), *gang("second", "q", 1, 8), *gang("vast", "q", 1, 9)])
        made.cycle()
        told: dict[str, Any] = {}
        for line in events(made):
            told |= json.loads(line).get("jobs", {})
            if "expected" in told.get("default/second", {}):
                break
        p50, p90 = told["default/second"]["expected"]
        assert time.time() < p50 <= p90
        assert told["default/vast"]["expected"] == [None, None]
    monkeypatch.setattr(expected_starts, "MOST_WRITTEN", 1)
    with desk() as made:
        made.put([node("n1").cpu(8).build(), queue("q").build(), *gang("g", "q", 1, 8)])
        assert made.run(made.scheduler.look(Expected(made.scheduler, bool, told.update)._written)) == b""


def events(made: Desk) -> Iterator[bytes]:
    """The changes from now on."""
    place = snapshot(made)["place"]
    connection = http.client.HTTPConnection("127.0.0.1", made.port, timeout=60)
    connection.request("GET", f"/api/events?after={place}")
    answer = connection.getresponse()
    try:
        while True:
            line = answer.readline()
            if line.startswith(b"data: "):
                yield line[6:]
    finally:
        connection.close()


def test_lint_finds_what_can_never_run(served: Desk) -> None:
    with desk() as made:
        made.put([node("n1").cpu(8).gpu(8).build(), queue("q").build(), *gang("vast", "q", 2, 64)])
        made.cycle()
        found = json.loads(ask(made, "/api/lint")[2])
    assert [(each["level"], each["rule"]) for each in found if each["subject"] == "podgroup/default/vast"] == [("error", "never-fits")]


PODS = "/api/v1/namespaces/default/pods"


def test_the_cluster_s_api_is_for_who_has_its_token(served: Desk) -> None:
    token = served.server.token
    assert ask(served, PODS)[0] == 401
    assert ask(served, PODS, Authorization="Bearer guess")[0] == 401
    status, headers, body = ask(served, PODS, Authorization=f"Bearer {token}")
    assert (status, json.loads(body)["kind"]) == (200, "PodList")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert ask(served, "/pumice/archive", Authorization=f"Bearer {token}")[0] == 404


def test_rights_are_those_that_the_api_server_gives(served: Desk) -> None:
    async def made() -> str:
        served.server.store.create("serviceaccounts", {"metadata": {"name": "guest"}}, "default")
        asked = Request(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/guest/token",
            {"authorization": f"Bearer {served.server.token}", "content-type": "application/json"},
            b'{"spec": {}}',
        )
        answer = await served.server.answer(asked)
        assert isinstance(answer, Response)
        return str(json.loads(answer.body)["status"]["token"])

    token = served.run(made())
    status, _, body = ask(served, f"{PODS}/x", "DELETE", Authorization=f"Bearer {token}")
    assert (status, json.loads(body)["reason"]) == (403, "Forbidden")


def test_what_was_acted_is_on_disk_when_it_is_answered(tmp_path: Path) -> None:
    async def acted() -> int:
        server = Server(plain=True, data=tmp_path / "state")
        await server.start()
        token = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
        answer = await server.answer(Request("POST", "/api/v1/nodes", token, b'{"metadata": {"name": "made"}}'))
        shutil.copytree(tmp_path / "state", tmp_path / "killed")
        await server.stop()
        assert isinstance(answer, Response)
        return answer.status

    assert asyncio.run(acted()) == 201
    assert Server(plain=True, data=tmp_path / "killed", recover=True).store.find("nodes", "", "made") is not None


def test_another_site_s_page_is_refused_whatever_it_has(served: Desk) -> None:
    token = f"Bearer {served.server.token}"
    own = f"http://127.0.0.1:{served.port}"
    assert ask(served, PODS, Authorization=token, Origin="http://evil.example")[0] == 403
    assert ask(served, PODS, Authorization=token, Origin=f"http://localhost:{served.port}")[0] == 403
    assert ask(served, PODS, Authorization=token, Origin=own)[0] == 200


def test_a_scheduler_s_page_has_no_api_behind_it_and_its_address_no_token(served: Desk) -> None:
    async def alone() -> tuple[int, str, str]:
        async with PageServer(served.scheduler, "127.0.0.1:0") as page:
            request = Request("GET", PODS, {"host": "127.0.0.1"}, local=True)
            answer = await page.act(request)
            assert isinstance(answer, Response)
            return answer.status, page.url, page.acting_url

    status, url, acting_url = served.run(alone())
    assert status == 404
    assert url == acting_url


def test_who_asks_for_events_of_another_time_begins_anew(served: Desk) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("GET", "/api/events?after=other-3")
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream"
    assert [answer.readline() for _ in range(3)][2] == b"event: reset\n"
    connection.close()


def test_events_are_what_has_changed_and_no_more() -> None:
    with desk() as made:
        made.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), node("n2").cpu(8).build(), queue("q").build()])
        place = snapshot(made)["place"]
        connection = http.client.HTTPConnection("127.0.0.1", made.port, timeout=30)
        connection.request("GET", f"/api/events?after={place}")
        answer = connection.getresponse()
        made.put(gang("g", "q", 1, 4))
        made.cycle()
        told: dict[str, Any] = {}
        while told.get("jobs", {}).get("default/g", {}).get("held") != {"cpu": 4.0, "memory": 2**34, "gpu": 4.0} or "nodes" not in told:
            line = answer.readline()
            if line.startswith(b"data: "):
                told |= json.loads(line[6:])
        assert list(told["nodes"]) == ["n1"]
        assert told["nodes"]["n1"]["held"] == [["default/g", 4.0, 4.0]]
        connection.close()


@pytest.mark.parametrize("address", ["0.0.0.0:7480", ":7480", "10.0.0.1:7480", "127.0.0.1"])
def test_the_scheduler_s_page_is_for_this_machine_only(address: str) -> None:
    with pytest.raises(InputError, match=r"write 127\.0\.0\.1:7480"):
        page_at({"record": "", "prometheus": "", "page_address": address, "tls_cert_file": "", "tls_private_key_file": ""})


def test_a_new_policy_is_told() -> None:
    with desk() as made:
        changes = events(made)
        next(changes)
        policy = structs.replace(made.scheduler.policy, actions=made.scheduler.policy.actions[:1])
        made.scheduler.adopt(policy)
        told: dict[str, Any] = {}
        while "policy" not in told:
            told = json.loads(next(changes))
        assert [action["name"] for action in told["policy"]["actions"]] == [policy.actions[0].name]
        changes.close()


class Slow:
    """A pipe that is full after some messages."""

    def __init__(self, room: int) -> None:
        self.taken: list[bytes] = []
        self.room = room

    def send(self, *parts: bytes) -> None:
        self.taken.append(b"".join(parts))

    def finish(self) -> None:
        raise NotImplementedError

    def is_full(self) -> bool:
        return len(self.taken) >= self.room


async def _slow_reader(behind: int) -> list[bytes]:
    feed = Feed()
    pipe = Slow(room=2)
    reader = feed.reader(feed.place)
    reader.start(pipe)
    for number in range(behind):
        feed.publish(b"%d" % number)
    pipe.room += 3
    reader.resume()
    return pipe.taken[1:]


def test_a_slow_reader_goes_on_where_it_was_as_long_as_that_is_kept() -> None:
    taken = asyncio.run(_slow_reader(10))
    assert [message.split(b"data: ")[1] for message in taken] == [b"0\n\n", b"1\n\n", b"2\n\n", b"3\n\n"]


def test_a_reader_that_is_too_slow_begins_anew_and_costs_nothing() -> None:
    assert asyncio.run(_slow_reader(KEPT + 10))[1:] == [RESET]
