"""Extenders that filter, score, name victims and bind over HTTP; and dead, slow and lying ones."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pumice.client.certificates import Authority
from pumice.http.connection import Answer
from pumice.live.scheduler.http_extenders import HttpExtender
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.cycle import cycle
from tests.dripping import dripping
from tests.kube_scheduler.stage import KUBE_DEFAULT, NOW, Outcome, cluster, existing, machine, play, policy, waiting

Told = Callable[[dict[str, Any]], Any]
ZIPPED = b"\x1f\x8b"


class Quiet(ThreadingHTTPServer):
    """Clients that hang up are what is tested, not worth a trace."""

    def handle_error(self, *args: Any) -> None:
        pass


@contextmanager
def serving(tls: ssl.SSLContext | None = None, **answers: Told | Any) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """A server that answers verbs with a value or a function of the request; its URL, and what was asked."""
    asked: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            verb = self.path.rpartition("/")[2]
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((verb, request))
            answer = answers.get(verb, OSError("404"))
            answer = answer(request) if callable(answer) else answer
            if isinstance(answer, Exception):
                return self.send_error(int(str(answer)))
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            if body.startswith(ZIPPED):
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None

        def log_message(self, *args: Any) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/e", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def scheduled(url: str, settings: str, *objects: Any) -> Outcome:
    conf = f"{KUBE_DEFAULT}extenders: [{{urlPrefix: '{url}', httpTimeout: 300ms, {settings}}}]\n"
    return play(*(objects or (machine("a"), machine("b"), waiting("p"))), conf=conf, world=HttpWorld())


def keep(*names: str) -> Told:
    return lambda request: {"NodeNames": list(names)}


def test_names_or_objects_are_sent_as_it_can_take_them() -> None:
    with serving(filter=keep("b")) as (url, asked):
        assert scheduled(url, "filterVerb: filter, nodeCacheCapable: true").binds == {"p": "b"}
    sent = asked[0][1]
    assert (sent["NodeNames"], sent["Nodes"]) == (["a", "b"], None)
    assert sent["Pod"]["metadata"]["name"] == "p"
    assert sent["Pod"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"

    with serving(filter=lambda request: {"nodes": {"items": request["Nodes"]["items"][1:]}}) as (url, asked):
        assert scheduled(url, "filterVerb: filter").binds == {"p": "b"}
    assert asked[0][1]["NodeNames"] is None


FAILURES = {
    "it answers 500": OSError("500"),
    "it answers no JSON": b"<html>",
    "it answers a list": [],
    "it answers a node that it was not asked about": {"NodeNames": ["z"]},
    "it says that it failed": {"Error": "backend is down"},
}


@pytest.mark.parametrize("why", FAILURES)
def test_a_failure_ends_the_attempt_and_is_said(why: str) -> None:
    with serving(filter=FAILURES[why]) as (url, _):
        outcome = scheduled(url, "filterVerb: filter, nodeCacheCapable: true")
    assert outcome.binds == {}
    assert outcome.waiting["p"].startswith("extender/e: ")


@pytest.mark.parametrize("why", FAILURES)
def test_a_failure_of_an_ignorable_one_is_passed_over(why: str) -> None:
    with serving(filter=FAILURES[why]) as (url, _):
        assert scheduled(url, "filterVerb: filter, nodeCacheCapable: true, ignorable: true").binds == {"p": "a"}


def test_a_dead_one_is_said_to_be_dead() -> None:
    assert "no connection" in scheduled("http://127.0.0.1:9/e", "filterVerb: filter").waiting["p"]
    assert scheduled("http://127.0.0.1:9/e", "filterVerb: filter, ignorable: true").binds == {"p": "a"}


def test_a_slow_one_is_given_up() -> None:
    started = time.monotonic()
    with serving(filter=lambda request: time.sleep(1)) as (url, _):
        outcome = scheduled(url, "filterVerb: filter")
    assert "no answer in 0.3 s" in outcome.waiting["p"]
    assert time.monotonic() - started < 3


def test_without_a_world_that_reaches_extenders_the_reason_says_so() -> None:
    conf = f"{KUBE_DEFAULT}extenders: [{{urlPrefix: 'http://x/e', filterVerb: filter}}]\n"
    assert "no connection to extenders" in play(machine("a"), waiting("p"), conf=conf).waiting["p"]


ODD = ("much", "nan", 1.5, 10**400, [1])


@pytest.mark.parametrize(
    "answer", [OSError("500"), b"<", {"a": 1}, *([{"Host": "b", "Score": odd}] for odd in ODD), [{"Host": "z", "Score": 10}], None]
)
def test_scores_that_cannot_be_used_do_not_count(answer: Any) -> None:
    with serving(prioritize=answer) as (url, _):
        assert scheduled(url, "prioritizeVerb: prioritize, weight: 3").binds == {"p": "a"}


def test_scores_count_by_weight() -> None:
    with serving(prioritize=[{"Host": "b", "Score": 1}]) as (url, _):
        assert scheduled(url, "prioritizeVerb: prioritize, weight: 1").binds == {"p": "b"}


# -- preemption


FULL = (machine("a"), machine("b"), existing("x", "a", 2), existing("y", "b", 2, 5), waiting("high", 2, 9))


def victims(violations: Any = 0, **named: list[str]) -> Told:
    return lambda request: {
        "NodeNameToMetaVictims": {n: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations} for n, uids in named.items()}
    }


@pytest.mark.parametrize(("cacheable", "key"), [("true", "NodeNameToMetaVictims"), ("false", "NodeNameToVictims")])
def test_it_is_shown_the_victims_and_may_drop_nodes(cacheable: str, key: str) -> None:
    with serving(preempt=victims(b=["default-y"])) as (url, asked):
        assert scheduled(url, f"preemptVerb: preempt, nodeCacheCapable: {cacheable}", *FULL).evictions == ["y"]
    assert sorted(asked[0][1][key]) == ["a", "b"]


LIES = {
    "a victim that is not there": victims(a=["default-zz"]),
    "a node that is no candidate": victims(z=["default-x"]),
    "no victims": victims(a=[]),
    "a list as a number": victims([1], a=["default-x"]),
    "nonsense": b"?",
}


@pytest.mark.parametrize("lie", LIES)
def test_nobody_is_evicted_on_a_lie(lie: str) -> None:
    with serving(preempt=LIES[lie]) as (url, _):
        outcome = scheduled(url, "preemptVerb: preempt, nodeCacheCapable: true", *FULL)
    assert outcome.evictions == []
    assert "preemption: " in outcome.waiting["high"]


def test_a_victim_that_is_named_twice_is_evicted_once() -> None:
    with serving(preempt=victims(a=["default-x", "default-x"])) as (url, _):
        assert scheduled(url, "preemptVerb: preempt, nodeCacheCapable: true", *FULL).evictions == ["x"]


def test_an_ignorable_liar_is_passed_over() -> None:
    with serving(preempt=LIES["nonsense"]) as (url, _):
        assert scheduled(url, "preemptVerb: preempt, ignorable: true", *FULL).evictions == ["x"]


def test_who_lets_no_node_through_ends_it_and_the_next_is_not_asked() -> None:
    with serving(preempt={}) as (first, _), serving(preempt=victims(a=["default-x"])) as (second, asked):
        both = ", ".join(f"{{urlPrefix: '{url}', preemptVerb: preempt, nodeCacheCapable: true}}" for url in (first, second))
        outcome = play(*FULL, conf=f"{KUBE_DEFAULT}extenders: [{both}]\n", world=HttpWorld())
    assert (outcome.evictions, asked) == ([], [])
    assert outcome.waiting["high"].endswith("preemption: no candidate node for preemption")


APART = {"labelSelector": {"matchLabels": {"app": "foe"}}, "topologyKey": "kubernetes.io/hostname"}


@pytest.mark.parametrize("apart", [[], [APART]], ids=["by resources", "by every rule"])
def test_who_is_refused_by_an_extender_alone_evicts_nobody(apart: list[Any]) -> None:
    """Taking pods away cannot help: not one of them is in the way."""
    path = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    high = waiting("high", 1, 9).having(*path, value=apart) if apart else waiting("high", 1, 9)
    with serving(filter={"NodeNames": [], "FailedNodes": {"a": "not today"}}) as (url, _):
        outcome = scheduled(url, "filterVerb: filter, nodeCacheCapable: true", machine("a"), existing("x", "a"), high)
    assert outcome.evictions == []
    assert outcome.waiting["high"] == ('0/1 nodes are available: 1 not today. preemption: expected at least one victim pod on node "a"')


NO_SCORES = "profiles: [{plugins: {score: {disabled: [{name: '*'}]}, preScore: {disabled: [{name: '*'}]}}}]"


def test_without_scores_the_first_of_the_nodes_that_it_keeps_is_taken() -> None:
    with serving(filter=keep("b", "c")) as (url, _):
        conf = f"{KUBE_DEFAULT}extenders: [{{urlPrefix: '{url}', filterVerb: filter, nodeCacheCapable: true}}]\n{NO_SCORES}\n"
        assert play(*(machine(name) for name in "abc"), waiting("p"), conf=conf, world=HttpWorld()).binds == {"p": "b"}


# -- binding


def test_a_cycle_decides_that_it_binds_and_asks_it_for_nothing() -> None:
    """A cycle leaves no trace: `why`, `whatif` and shadows make them of live states."""
    with serving(bind={}) as (url, asked):
        chosen = policy(f"{KUBE_DEFAULT}extenders: [{{urlPrefix: '{url}', bindVerb: bind}}]\n")
        decided = cycle(cluster(chosen, machine("a"), waiting("p")), chosen, NOW, HttpWorld())
    assert asked == []
    assert [(bind.node, bind.binder.name) for bind in decided.binds if bind.binder] == [("a", "extender/e")]


def test_only_whom_it_is_interested_in_is_left_to_it() -> None:
    managed = "bindVerb: bind, managedResources: [{name: example.com/gpu}]"
    chosen = policy(f"{KUBE_DEFAULT}extenders: [{{urlPrefix: http://127.0.0.1:1/e, {managed}}}]\n")
    special = waiting("p", 2, 9).request("example.com/gpu", 1)
    made = cluster(chosen, machine("a", cpu=9).resource("example.com/gpu", 1), special, waiting("q", 2))
    assert {bind.task.name: bind.binder is not None for bind in cycle(made, chosen, NOW, HttpWorld()).binds} == {"p": True, "q": False}


# -- TLS


@contextmanager
def secured(folder: Path, authority: Authority) -> Iterator[str]:
    """The same over TLS, for clients that the authority vouches for."""
    pair = authority.issue("extender", "127.0.0.1")
    for name, content in (("server.pem", pair.certificate + pair.key), ("ca.pem", authority.pem)):
        (folder / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(tls=context, ping={"fine": True}) as (url, _):
        yield url.replace("http:", "https:")


def test_both_sides_show_their_certificates(tmp_path: Path) -> None:
    authority = Authority(time.time(), 1)
    client = authority.issue("scheduler")
    data = {
        name: base64.b64encode(part).decode()
        for name, part in zip(("cert_data", "key_data", "ca_data"), (client.certificate, client.key, authority.pem), strict=True)
    }
    (tmp_path / "client.pem").write_bytes(client.certificate)
    (tmp_path / "client.key").write_bytes(client.key)
    with secured(tmp_path, authority) as url:
        assert HttpExtender(url, 2.0, {"tls": data}).call("ping", {}) == {"fine": True}
        files = {"cert_file": str(tmp_path / "client.pem"), "key_file": str(tmp_path / "client.key"), "insecure": True}
        assert HttpExtender(url.replace("https", "http"), 2.0, {"https": True, "tls": files}).call("ping", {}) == {"fine": True}
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            HttpExtender(url, 2.0, {"tls": {}}).call("ping", {})


def test_certificates_are_read_once_and_again_when_they_have_been_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, read = Authority(time.time(), 1), list[str]()
    made = ssl.create_default_context
    files = {"cert_file": str(tmp_path / "client.pem"), "insecure": True}

    def renew(issuer: Authority) -> None:
        client = issuer.issue("scheduler")
        (tmp_path / "new.pem").write_bytes(client.certificate + client.key)
        (tmp_path / "new.pem").rename(tmp_path / "client.pem")

    renew(Authority(time.time(), 1))  # one whom the server does not know
    with secured(tmp_path, authority) as url:
        monkeypatch.setattr(ssl, "create_default_context", lambda **given: (read.append(""), made(**given))[1])
        extender = HttpExtender(url, 2.0, {"tls": files})
        with pytest.raises(OSError):
            extender.call("ping", {})
        renew(authority)
        assert [extender.call("ping", {}) for _ in range(3)] == [{"fine": True}] * 3
    assert len(read) == 2


def test_an_answer_without_end_is_cut_off() -> None:
    with serving(ping=b" " * 5000) as (url, _), pytest.raises(ValueError, match="more than 1000 bytes"):
        HttpExtender(url, 2.0, {"max_bytes": 1000}).call("ping", {})


def test_an_answer_that_unzips_without_end_is_cut_off() -> None:
    with serving(ping=gzip.compress(b" " * 5000)) as (url, _), pytest.raises(ValueError, match="more than 1000 bytes"):
        HttpExtender(url, 2.0, {"max_bytes": 1000}).call("ping", {})


# -- no answer


def test_one_that_drips_has_its_time_out_in_all() -> None:
    with dripping() as url, pytest.raises(OSError, match=r"no answer in 0\.3 s"):
        HttpExtender(url, 0.3, {}).call("ping", {})


class Unsteady(HttpExtender):
    """Gives no answer while it is `away`, after as long as its time-out is."""

    away = True
    tries = 0

    def __init__(self, *arguments: Any) -> None:
        self.now, self.told = 100.0, list[tuple[str, str]]()
        super().__init__(*arguments, on_failure=lambda *what: self.told.append(what), clock=lambda: self.now)

    async def post(self, verb: str, arguments: dict[str, Any]) -> Any:
        self.tries += 1
        if not self.away:
            return Answer(200, "", b"{}")
        self.now += self._timeout_s
        raise TimeoutError


def fails(extender: HttpExtender, why: str) -> None:
    with pytest.raises(OSError, match=why):
        extender.call("ping", {})


def test_one_that_never_answers_is_only_tried_now_and_then_and_that_is_told_once() -> None:
    extender = Unsteady("http://user:secret@host/e", 1.0, {})
    for _ in range(1000):
        extender.begin()
        with suppress(OSError):
            extender.call("ping", {})
    assert extender.tries == 3
    extender.now += 2.0
    fails(extender, "no answer in 1 s")
    fails(extender, "POST /e/ping: not asked for now, it does not answer .no answer in 1 s.")
    extender.now += 3.9
    fails(extender, "not asked for now")
    extender.now, extender.away = extender.now + 0.2, False
    assert extender.call("ping", {}) == {}
    assert extender.told == [("extender http://host/e", "no answer in 1 s"), ("extender http://host/e", "")]


def test_one_that_answers_now_and_then_costs_a_cycle_only_so_much() -> None:
    extender = Unsteady("http://host/e", 5.0, {})
    fails(extender, "no answer")
    extender.away = False
    extender.call("ping", {})
    extender.away = True
    fails(extender, "no answer")
    extender.away = False
    fails(extender, "not asked for now")
    extender.begin()
    assert extender.call("ping", {}) == {}


def test_extenders_are_known_from_cycle_to_cycle() -> None:
    world = HttpWorld()
    assert world.extender("http://host/e", 1.0, {}) is world.extender("http://host/e", 1.0, {})
    assert world.extender("http://host/e", 1.0, {}) is not world.extender("http://host/e", 1.0, {"https": True})


def test_one_that_answers_that_it_failed_is_asked_again() -> None:
    with serving(ping=OSError("500")) as (url, asked):
        extender = HttpExtender(url, 2.0, {})
        for _ in range(10):
            with pytest.raises(ValueError, match="answered 500"):
                extender.call("ping", {})
    assert len(asked) == 10


@pytest.mark.parametrize(("ignorable", "binds"), [("true", 8), ("false", 0)])
def test_a_thousand_pods_do_not_wait_for_one_that_hangs(ignorable: str, binds: int) -> None:
    never = threading.Event()
    with serving(filter=lambda _: never.wait(10) or {}) as (url, asked):
        pods = waiting("p", "1m").times(8)
        outcome = scheduled(url, f"filterVerb: filter, nodeCacheCapable: true, ignorable: {ignorable}", machine("a"), *pods)
        never.set()
    assert len(asked) == 3 and len(outcome.binds) == binds
    if not binds:
        assert outcome.waiting["p-7"] == "extender/e: POST /e/filter: not asked for now, it does not answer (no answer in 0.3 s)"
