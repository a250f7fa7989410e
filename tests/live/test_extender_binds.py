"""Pods that an extender binds in our place: it is asked once, behind the fence, and what it refuses frees its room."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import PODS, ObjectRef
from pumice.api.pod import Pod
from pumice.client.certificates import Authority
from pumice.client.failures import Fenced, KubeError
from pumice.live.clock import WallClock
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.requests import BindPod, ReadPod, Request, Requests
from pumice.live.scheduler.sender import Sender
from pumice.scheduler.framework.profiles import ExtenderSpec
from pumice.scheduler.model import status
from tests.kube_scheduler.test_extenders_over_http import serving
from tests.live.memory import MemoryServer

QUESTION = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "a"}


class Server(MemoryServer):
    leads = True

    def check_fence(self) -> None:
        if not self.leads:
            raise Fenced("not sent")


class Outcomes:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def is_there(self, pod: ObjectRef) -> bool:
        return True

    def reached(self, request: BindPod, stage: str) -> None:
        pass

    def took(self, stage: str, seconds: float) -> None:
        pass

    def done(self, request: Request, answer: bytes) -> None:
        self.told.append("done")

    def failed(self, request: Request, error: KubeError) -> None:
        self.told.append(str(error))

    def fenced(self) -> None:
        self.told.append("fenced")

    async def pod_read(self, request: ReadPod, pod: Pod | None) -> bool:
        self.told.append(status.NAMES[request.assumed])
        return True


def bound(url: str, *names: str, leads: bool = True, **options: Any) -> tuple[Outcomes, Server]:
    """What comes of binds of pods that are left to the extender at this URL."""
    server, outcomes = Server(), Outcomes()
    server.leads = leads
    binder = ExtenderSpec(url, bind_verb="bind", timeout_s=30.0, options=options)

    async def story() -> None:
        refs = [ObjectRef(name, "default", server.pod(name)["metadata"]["uid"]) for name in names or ("p",)]
        sender = Sender(server, outcomes, {}, WallClock(), Options())  # type: ignore[arg-type]
        running = asyncio.create_task(sender.run())
        sender.send(Requests([], [BindPod(ref, "a", {}, binder) for ref in refs], [], [], [], [], [], [], []))
        await asyncio.wait_for(sender.drained(), 60)
        running.cancel()

    asyncio.run(story())
    return outcomes, server


def test_it_is_asked_once_and_nothing_is_written_besides() -> None:
    with serving(bind={}) as (url, asked):
        outcomes, server = bound(url)
    assert [(verb, question | {"PodUID": "uid-p"}) for verb, question in asked] == [("bind", QUESTION)]
    assert (outcomes.told, server.writes) == (["done"], [])


@pytest.mark.parametrize(("answer", "why"), [({"Error": "no"}, "no"), (OSError("500"), "POST bind: answered 500")])
def test_a_refusal_is_told_and_its_room_is_free_again(answer: Any, why: str) -> None:
    with serving(bind=answer) as (url, asked):
        outcomes, server = bound(url)
    assert len(asked) == 1
    assert outcomes.told == [f"extender/e: {why}", "Binding"]
    (condition,) = server.found(PODS, "p")["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", f"binding to a failed: extender/e: {why}")


def test_certificates_are_not_read_for_each_bind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, read, made = Authority(time.time(), 1).issue("extender", "127.0.0.1"), list[str](), ssl.create_default_context
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    monkeypatch.setattr(ssl, "create_default_context", lambda **given: (read.append(""), made(**given))[1])
    with serving(tls=context, bind={}) as (url, asked):
        outcomes, _ = bound(url, "p", "q", "r", https=True, tls={"insecure": True})
    assert (len(asked), outcomes.told, len(read)) == (3, ["done"] * 3, 1)


def test_who_does_not_lead_any_more_asks_nobody() -> None:
    with serving(bind={}) as (url, asked):
        outcomes, _ = bound(url, leads=False)
    assert (asked, outcomes.told) == ([], ["fenced"])
