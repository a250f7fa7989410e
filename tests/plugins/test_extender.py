"""extender: what the service is asked, what its answers do, and what happens when it fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from scene import Thing, binds, cycle_on, only, opened as open_session

from pumice.api.structs import encode
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import Nowhere
from pumice.scheduler.plugins.volcano.extender.client import LONGEST_REASON, MAX_BYTES
from pumice.testing import Builder, cluster, node, pod, podgroup, refusals, scores, task_of

Answer = Any
DOWN = OSError("connection refused")


class Service(Nowhere):
    """A world with one extender that answers by verb: a value, a function of the body, or an exception."""

    acts = True

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Thing]] = []
        self.connection: tuple[str, float, Thing] | None = None

    def extender(self, url: str, timeout_s: float, options: Thing) -> Service:
        self.connection = (url, timeout_s, options)
        return self

    def call(self, verb: str, arguments: Thing) -> Any:
        self.asked.append((verb, json.loads(encode(arguments))))
        answer = self.answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer(arguments) if callable(answer) else answer


VERBS = {
    "open": "onSessionOpenVerb",
    "close": "onSessionCloseVerb",
    "predicate": "predicateVerb",
    "prioritize": "prioritizeVerb",
    "preempt": "preemptableVerb",
    "reclaim": "reclaimableVerb",
    "overused": "queueOverusedVerb",
    "enqueue": "jobEnqueueableVerb",
    "enqueued": "jobEnqueuedVerb",
    "ready": "jobReadyVerb",
    "allocate": "allocateFuncVerb",
    "deallocate": "deallocateFuncVerb",
}


def rules(*verbs: str, actions: str = "allocate", **arguments: Any) -> Policy:
    named = {f"extender.{VERBS[verb]}": verb for verb in verbs}
    return only(
        "extender", named | {f"extender.{key}": value for key, value in arguments.items()} | {"extender.urlPrefix": "http://x/"}, actions
    )


def things() -> tuple[Builder, ...]:
    return (node("a").cpu(8), node("b").cpu(8), podgroup("g").admitted(), pod("p").gang("g").cpu(1))


def opened(service: Nowhere, *verbs: str, **arguments: Any) -> Session:
    return open_session(cluster(*things()), rules(*verbs, **arguments), world=service)


def by_node(**answers: Answer) -> Callable[[Thing], Answer]:
    return lambda body: answers.get(body["node"]["Name"], {})


def test_without_verbs_nothing_is_asked_and_nothing_changes() -> None:
    service = Service()
    assert binds(cycle_on(cluster(*things()), rules(), world=service)) == {"p": "a"}
    assert service.asked == []


@pytest.mark.parametrize(("timeout", "seconds"), [("250ms", 0.25), ("2s", 2), ("0s", 1)])
def test_the_connection_is_made_as_configured(timeout: str, seconds: float) -> None:
    service = Service()
    opened(service, httpTimeout=timeout)
    assert service.connection == ("http://x/", seconds, {"max_bytes": MAX_BYTES})


# -- predicate


@pytest.mark.parametrize(
    ("answer", "reason", "final"),
    [
        ({}, None, None),
        ({"status": ""}, None, None),
        ({"status": "too hot"}, "too hot", True),
        ({"status": "too hot", "code": 2}, "too hot", False),
        ({"status": "too hot", "code": 3}, "too hot", True),
        ({"status": []}, None, None),
        ({"status": None}, None, None),
        ({"status": [{"Code": 0, "Reason": "fine"}, {"Code": 2, "Reason": "too hot"}, 7]}, "too hot", False),
        ({"status": [{"Code": 1}]}, "refused by the extender with code 1", True),
        ({"status": [{"Code": "x"}]}, "extender failed: predicate: 'x' is no number", True),
        ({"status": "x", "code": True}, "extender failed: predicate: True is no number", True),
        ([], "extender failed: predicate: the answer is no mapping", True),
        (DOWN, "extender failed: connection refused", True),
    ],
)
def test_a_node_is_refused_if_the_service_says_so_or_fails(answer: Answer, reason: str | None, final: bool | None) -> None:
    service = Service(
        predicate=lambda body: _raise(answer) if body["node"]["Name"] == "a" and isinstance(answer, Exception) else by_node(a=answer)(body)
    )
    session = opened(service, "predicate")
    assert refusals(session, "p") == ({} if reason is None else {"a": reason})
    if reason is not None:
        evaluation = session.evaluation(session.cluster.tasks["default/p"])
        assert evaluation.resolvable.tolist() == [not final, True]


def _raise(error: Exception) -> Any:
    raise error


def test_a_failing_service_that_is_ignorable_refuses_nobody() -> None:
    assert refusals(opened(Service(predicate=DOWN), "predicate", ignorable=True), "p") == {}


def test_without_a_connection_every_question_fails() -> None:
    assert refusals(opened(Nowhere(), "predicate"), "p")["a"] == "extender failed: there is no connection to extenders here"
    assert refusals(opened(Nowhere(), "predicate", ignorable=True), "p") == {}


def test_a_node_is_asked_about_again_only_when_something_on_it_changed() -> None:
    service = Service(predicate={})
    session = opened(service, "predicate")
    for _ in range(2):
        assert refusals(session, "p") == {}
    assert [body["node"]["Name"] for _, body in service.asked] == ["a", "b"]
    with session.statement() as statement:
        statement.allocate(session.cluster.tasks["default/p"], 1)
        assert refusals(session, "p") == {}
        assert service.asked[-1][1]["node"]["Tasks"].keys() == {"default/p"}
    assert [body["node"]["Name"] for _, body in service.asked] == ["a", "b", "b"]


def test_dead_nodes_are_not_asked_about() -> None:
    service = Service(predicate={})
    made = cluster(*things())
    made.remove("Node", "a")
    assert refusals(open_session(made, rules("predicate"), world=service), "p") == {}
    assert [body["node"]["Name"] for _, body in service.asked] == ["b"]


def test_bodies_tell_what_volcano_s_tell() -> None:
    service = Service(predicate={}, open={})
    labelled = node("z").cpu(8).volcano(gpu_number=2).label("volcano.sh/revocable-zone", "rz")
    made = cluster(labelled, podgroup("g", 2).admitted(), pod("p").gang("g").asks(cpu=1, memory="1Gi").role("w"), pod("q").on("z").cpu(1))
    session = open_session(made, rules("predicate", "open"), world=service)
    session.evaluation(made.tasks["default/p"])
    (_, everything), (_, question) = service.asked
    task, where = question["task"], question["node"]
    request = {"MilliCPU": 1000, "Memory": 2**30, "ScalarResources": {"pods": 1}}
    assert (task["UID"], task["Job"], task["TaskRole"], task["Status"], task["Resreq"]) == ("default-p", "default/g", "w", 1, request)
    assert task["Pod"]["spec"]["schedulerName"] == "volcano"
    assert where["Allocatable"]["ScalarResources"] == {"pods": 110, "volcano.sh/gpu-number": 2000}
    assert where["Idle"]["MilliCPU"] == 7000
    assert where["Node"]["metadata"]["name"] == "z"
    assert everything.keys() == {"Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes"}
    assert everything["Jobs"]["default/g"]["MinAvailable"] == 2
    assert everything["Jobs"]["default/g"]["TotalRequest"]["MilliCPU"] == 1000
    assert everything["RevocableNodes"].keys() == {"z"}
    assert everything["Queues"]["default"]["Weight"] == 1
    assert everything["Nodes"]["z"]["Tasks"]["default/q"]["Job"] == ""


# -- prioritize


def test_nodes_are_rated_all_at_once_and_strangers_passed_over() -> None:
    service = Service(prioritize={"nodeScore": {"b": 7.5, "stranger": 9}})
    session = opened(service, "prioritize")
    assert scores(session, "p") == {"a": 0, "b": 7.5}
    (body,) = [body for _, body in service.asked]
    assert [each["Name"] for each in body["nodes"]] == ["a", "b"]
    assert binds(cycle_on(cluster(*things()), rules("prioritize"), world=service)) == {"p": "b"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (DOWN, "connection refused"),
        ({"errorMessage": "no idea"}, "no idea"),
        ({"nodeScore": {"a": "high"}}, "prioritize: 'high' is no number"),
        ({"nodeScore": {"a": 10**400}}, f"prioritize: {10**39} is no number"),
        ({"nodeScore": [1]}, "prioritize: nodeScore is no mapping"),
    ],
)
def test_without_ratings_there_is_no_best_node_unless_the_service_is_ignorable(answer: Answer, why: str) -> None:
    session = opened(Service(prioritize=answer), "prioritize")
    assert refusals(session, "p") == dict.fromkeys("ab", f"extender failed: {why}")
    assert binds(cycle_on(cluster(*things()), rules("prioritize", ignorable=True), world=Service(prioritize=answer))) == {"p": "a"}


# -- victims


@pytest.mark.parametrize(
    ("answer", "ignorable", "victims"),
    [
        ({"status": 1, "victims": [{"UID": "default-v"}, {"UID": "default-stranger"}]}, False, ["v"]),
        ({"status": 1, "victims": ["default-w", "default-v"]}, False, ["v", "w"]),
        ({"status": 1, "victims": None}, False, []),
        ({"status": 0, "victims": ["default-v"]}, False, None),
        ({"status": -1, "victims": ["default-v"]}, False, Vote.REJECT),
        ({"status": 1, "victims": "default-v"}, False, Vote.REJECT),
        (DOWN, False, Vote.REJECT),
        (DOWN, True, []),
    ],
)
def test_victims_are_those_that_the_service_names(answer: Answer, ignorable: bool, victims: list[str] | Vote | None) -> None:
    made = cluster(*things(), pod("v").gang("g").on("a").cpu(1), pod("w").gang("g").on("a").cpu(1))
    service = Service(preempt=answer, reclaim=answer)
    plugin = open_session(made, rules("preempt", "reclaim", ignorable=ignorable), world=service).plugin("extender")
    evictor, *candidates = (task_of(made, name) for name in ("p", "v", "w"))
    for method in (plugin.preemptable, plugin.reclaimable):
        found = method(evictor, candidates)
        assert ([task.name for task in found] if isinstance(found, list) else found) == victims
    assert [each["Name"] for each in service.asked[0][1]["evictees"]] == ["v", "w"]


# -- jobs and queues


@pytest.mark.parametrize(
    ("answer", "ignorable", "vote"),
    [
        ({"status": 1}, False, Vote.PERMIT),
        ({"status": 5}, False, Vote.PERMIT),
        ({"status": 0}, False, Vote.ABSTAIN),
        ({"status": -1}, False, Vote.REJECT),
        (DOWN, False, Vote.REJECT),
        (DOWN, True, Vote.PERMIT),
        ({"status": "yes"}, True, Vote.PERMIT),
    ],
)
def test_the_service_votes_on_who_is_let_in(answer: Answer, ignorable: bool, vote: Vote) -> None:
    session = opened(Service(enqueue=answer), "enqueue", ignorable=ignorable)
    assert session.plugin("extender").job_enqueueable(session.cluster.jobs["default/g"]) is vote


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"status": -1}, "does not let it in"),
        ({"status": -1, "reason": "the budget of the month is spent"}, "does not let it in: the budget of the month is spent"),
        ({"status": -1, "reason": "x" * 9999}, "does not let it in: " + "x" * LONGEST_REASON),
        (DOWN, "does not let it in: it could not be asked: "),
    ],
)
def test_a_job_that_is_kept_out_hears_why(answer: Answer, told: str) -> None:
    waiting = podgroup("g").needs(cpu=1)
    decided = cycle_on(
        cluster(node("a").cpu(8), waiting, pod("p").gang("g").cpu(1)), rules("enqueue", actions="enqueue"), world=Service(enqueue=answer)
    )
    (message,) = (event.message for event in decided.events)
    assert told in message and len(message) < 500


@pytest.mark.parametrize(
    ("answer", "ignorable", "yes"),
    [({"status": True}, False, True), ({"status": False}, False, False), ({}, False, False), (DOWN, False, False), (DOWN, True, True)],
)
def test_a_job_is_ready_if_the_service_says_so_and_an_ignorable_one_that_fails_does_not_hold_it_up(
    answer: Answer, ignorable: bool, yes: bool
) -> None:
    conf = rules("ready", ignorable=ignorable)
    assert binds(cycle_on(cluster(*things()), conf, world=Service(ready=answer))) == ({"p": "a"} if yes else {})


@pytest.mark.parametrize(
    ("answer", "ignorable", "served"),
    [({"overused": True}, False, False), ({"overused": False}, False, True), (DOWN, False, False), (DOWN, True, True)],
)
def test_a_queue_is_served_unless_the_service_calls_it_overused(answer: Answer, ignorable: bool, served: bool) -> None:
    conf = rules("overused", ignorable=ignorable)
    assert bool(binds(cycle_on(cluster(*things()), conf, world=Service(overused=answer)))) is served


def test_the_service_is_told_what_happens_and_may_be_deaf() -> None:
    service = Service(open={}, close=DOWN, enqueued=DOWN, allocate={}, deallocate={}, enqueue={"status": 1}, ready={"status": False})
    waiting = podgroup("g").needs(cpu=1)
    conf = rules("open", "close", "enqueue", "enqueued", "allocate", "deallocate", "ready", actions="enqueue, allocate")
    cluster_of = partial(cluster, node("a").cpu(8), waiting, pod("p").gang("g").cpu(1))
    cycle_on(cluster_of(), conf, world=service)
    verbs = [verb for verb, _ in service.asked]
    assert verbs[:3] == ["open", "enqueue", "enqueued"]
    assert "close" in verbs
    assert verbs.index("allocate") < verbs.index("deallocate")
    assert service.asked[verbs.index("allocate")][1]["task"]["NodeName"] == "a"
    service.asked, service.acts = [], HttpWorld().acts  # a question, or a shadow
    cycle_on(cluster_of(), conf, world=service)
    assert {verb for verb, _ in service.asked} == {"enqueue", "ready"}


@pytest.mark.parametrize("ignorable", [False, True])
def test_a_service_that_must_be_heard_and_fails_at_the_opening_is_not_asked_in_that_session(ignorable: bool) -> None:
    verbs = ("open", "predicate", "prioritize", "preempt", "overused", "enqueue", "ready", "allocate", "close")
    service = Service(**dict.fromkeys(verbs, DOWN))
    found = binds(cycle_on(cluster(*things()), rules(*verbs, ignorable=ignorable), world=service))
    assert found == {"p": "a"}
    assert (len(service.asked) == 1) is not ignorable


# -- managed resources


def test_with_managed_resources_only_those_who_name_one_are_asked_about() -> None:
    limits = pod("limits").gang("g").containers({"name": "c", "resources": {"limits": {"x.io/gpu": "1"}}})
    init = pod("init").gang("g").cpu(1)
    init = init.having("spec", "initContainers", value=[{"name": "i", "resources": {"requests": {"x.io/gpu": "1"}}}])
    bare = pod("bare").gang("h").containers({"name": "c"})
    made = cluster(node("a").cpu(8), podgroup("g").admitted(), podgroup("h").admitted(), limits, init, pod("plain").gang("h").cpu(1), bare)
    verbs = ("predicate", "prioritize", "preempt", "enqueue", "enqueued", "ready", "allocate", "deallocate")
    service = Service(**dict.fromkeys(verbs, DOWN))
    session = open_session(made, rules(*verbs, managedResources=["x.io/gpu", "x.io/fpga"]), world=service)
    assert [name for name in ("limits", "init", "plain", "bare") if refusals(session, name)] == ["limits", "init"]
    asked, plugin = len(service.asked), session.plugin("extender")
    stranger, (plain, wanted) = made.jobs["default/h"], (task_of(made, name) for name in ("plain", "limits"))
    assert plugin.job_enqueueable(stranger) is Vote.ABSTAIN
    assert plugin.job_ready(stranger)
    assert plugin.preemptable(plain, [wanted]) is None
    plugin.job_enqueued(stranger)
    plugin.on_allocate(plain)
    plugin.on_deallocate(plain)
    assert len(service.asked) == asked
    assert not plugin.job_ready(made.jobs["default/g"])
    assert plugin.preemptable(wanted, [plain]) is Vote.REJECT


# -- over HTTP


@contextmanager
def served(answer: bytes) -> Iterator[str]:
    """A server on the loopback that answers every POST with this; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path == "/x/predicate" else 404)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/x/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def over_http(answer: bytes) -> dict[str, str]:
    with served(answer) as url:
        conf = only("extender", {"extender.urlPrefix": url, "extender.predicateVerb": "predicate"})
        return refusals(
            open_session(cluster(node("a").cpu(8), podgroup("g").admitted(), pod("p").gang("g").cpu(1)), conf, world=HttpWorld()), "p"
        )


def test_over_http_the_verb_is_a_path_below_the_prefix() -> None:
    assert over_http(b'{"status": "no"}') == {"a": "no"}


def test_an_answer_of_more_than_ten_megabytes_is_none() -> None:
    assert over_http(b" " * MAX_BYTES + b"{}")["a"].endswith(f"answered more than {MAX_BYTES} bytes")
