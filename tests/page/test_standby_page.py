"""Where another replica leads, its page is reached through the replica that waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pumice.client.access import Access, Fixed
from pumice.client.client import Client
from pumice.cluster.apiserver import PatchRequest
from pumice.http.listener import Listener
from pumice.http.messages import Request, Response
from pumice.page.standby_page import WaitingPage, address_of
from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.live_controllers.scene import Scene, play
from tests.live_controllers.test_controllers_command import page, pumice, wait_for
from tests.ports import free_port

LEADER = "volcano-scheduler-0_2f1c"


async def asked(host: str, port: int, path: str = "/") -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: page\r\nConnection: close\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def answer_of(port: int, path: str = "/") -> str:
    """What a replica answers; nothing while it does not listen yet."""
    try:
        return asyncio.run(asked("127.0.0.1", port, path)).decode()
    except OSError:
        return ""


def passed_on(where: str) -> bytes:
    """The answer of a replica that waits at a loopback address; the leader is at another one, with the same port."""

    async def story() -> bytes:
        port = free_port()

        async def locate(holder: str) -> str:
            assert holder == LEADER
            return where

        def answer(request: Request) -> Response:
            return Response.text(f"the leader answers {request.path}" + "x" * 200_000)

        async with Listener(f"127.0.0.2:{port}", {}, others=answer), WaitingPage(f"127.1.1.1:{port}", lambda: LEADER, locate):
            found = await asked("127.1.1.1", port, "/api/events")
        async with Listener(f"127.1.1.1:{port}", {}, others=answer):  # the address is free for the page of this replica
            return found

    return asyncio.run(story())


def test_a_connection_is_passed_on_to_the_leader_as_it_is() -> None:
    answer = passed_on("127.0.0.2")
    assert answer.startswith(b"HTTP/1.1 200") and b"the leader answers /api/events" in answer and answer.endswith(b"x" * 200_000)


def test_without_a_leader_that_answers_the_connection_ends() -> None:
    assert passed_on("") == b"" == passed_on("127.0.0.3")


def test_the_leader_is_found_by_its_pod() -> None:
    async def story(stage: Scene) -> None:
        stage.create("namespaces", {"metadata": {"name": "volcano-system"}}, "")
        pod = {"metadata": {"name": "volcano-scheduler-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        stage.create("pods", pod, "volcano-system")
        stage.store.patch(
            "pods", "volcano-scheduler-0", PatchRequest("merge", {"status": {"podIP": "10.1.2.3"}}), "volcano-system", "status"
        )
        async with Client(Access(stage.server.url, Fixed(f"Bearer {stage.server.token}"))) as client:
            locate = address_of(client, "volcano-system")
            assert [await locate(holder) for holder in (LEADER, "lost-1_2f1c", "")] == ["10.1.2.3", "", ""]

    play(story)


def test_of_two_programs_the_one_that_waits_says_who_leads(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(6)]
    with in_thread() as server:
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "volcano-system"}}))
        kubeconfig = kubeconfig_of(server, tmp_path)

        def flags(number: int) -> list[str]:
            probes = f"--healthz-address=127.0.0.1:{ports[2 + number]}"
            metrics = f"--listen-address=127.0.0.1:{ports[4 + number]}"
            return ["scheduler", f"--page-address=127.0.0.1:{ports[number]}", "--enable-healthz", probes, "--enable-metrics", metrics]

        with pumice(*flags(0), kubeconfig=kubeconfig):
            assert wait_for(lambda: "Pumice" in page(ports[0], "/"))
            with pumice(*flags(1), kubeconfig=kubeconfig):
                assert wait_for(lambda: page(ports[3], "/readyz") == "ok")
                leader = "leads, and serves the page: ask its pod, "
                told = wait_for(lambda: text if leader in (text := answer_of(ports[1])) else "")
                assert " 503 " in told
                for path in ("/debug/state", "/debug/pod?name=default/a"):
                    assert " leads, and this replica knows nothing of the cluster: ask it" in answer_of(ports[5], path)
                assert '"kind":"List"' in answer_of(ports[4], "/debug/state") and "# TYPE" in answer_of(ports[5], "/metrics")
