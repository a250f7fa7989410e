"""A page beyond this machine: who may read it is asked of the API server, whose own reviews answer here."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from pumice.api.errors import InputError
from pumice.api.kinds import Kind
from pumice.cli.scheduler import page_at
from pumice.client.access import Access, Fixed
from pumice.client.certificates import Authority
from pumice.client.client import Client
from pumice.cluster.apiserver import Server
from pumice.http.messages import Request, Response
from pumice.live.scheduler.scheduler_replica import Beside
from pumice.page import reader_access
from pumice.page.reader_access import Readers
from pumice.page.server import PageServer
from pumice.testing.builders import node
from tests.page.desk import Desk
from tests.page.tab import Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROLES, BINDINGS = "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"


class Counted(Client):
    """Counts what it asks."""

    asked = 0

    async def create(self, resource: Kind, *rest: Any, **more: Any) -> bytes:
        self.asked += 1
        return await super().create(resource, *rest, **more)


class Office(Desk):
    """An API server that listens, and a page over TLS for those whose token it lets read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        authority = Authority(1_600_000_000.0, 10_000)
        pair = authority.issue("page", "127.0.0.1", "127.0.0.2")
        for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority.pem)):
            (folder / name).write_bytes(content)
        self.run(self._open())

    async def _open(self) -> None:
        self.api = Server(plain=True)
        await self.api.start()
        self.client = Counted(Access(self.api.url, Fixed(f"Bearer {self.api.token}")))
        await self.client.__aenter__()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        self.guarded = PageServer(self.scheduler, "127.0.0.1:0", readers=Readers(self.client), tls=tls)
        await self.guarded.__aenter__()
        self.address = self.guarded.url.split("/")[2]

    async def _close(self) -> None:
        await self.guarded.__aexit__()
        await self.client.__aexit__(None, None, None)
        await self.api.stop()

    def close(self) -> None:
        self.run(self._close())
        self.stop()
        self.end()

    def account(self, name: str) -> str:
        """Its token."""

        async def made() -> str:
            self.api.store.create("serviceaccounts", {"metadata": {"name": name}}, "default")
            head = {"authorization": f"Bearer {self.api.token}", "content-type": "application/json"}
            path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
            answer = await self.api.answer(Request("POST", path, head, b'{"spec": {}}'))
            assert isinstance(answer, Response)
            return str(json.loads(answer.body)["status"]["token"])

        return self.run(made())

    def reader(self, name: str) -> str:
        """The token of one who may read."""

        async def let() -> None:
            rules = [{"nonResourceURLs": ["/pumice/page"], "verbs": ["get"]}]
            self.api.store.create(ROLES, {"metadata": {"name": name}, "rules": rules}, "")
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
            self.api.store.create(BINDINGS, {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}, "")

        self.run(let())
        return self.account(name)

    def connection(self, address: str = "") -> http.client.HTTPSConnection:
        trust = ssl.create_default_context(cafile=self.folder / "ca.crt")
        return http.client.HTTPSConnection(address or self.address, timeout=30, context=trust)

    def ask(self, path: str = "/api/snapshot", token: str = "", **headers: str) -> tuple[int, bytes]:
        connection = self.connection()
        connection.request("GET", path, headers=headers | ({"Authorization": f"Bearer {token}"} if token else {}))
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pumice.page.server.STREAM_S", 0.5)
        made = Office(tmp_path_factory.mktemp("tls"))
        made.put([node("secret-node").cpu(8).build()])
        yield made
        made.close()


def test_who_may_read_reads_and_the_others_are_told_why_not(office: Office) -> None:
    told = {token: office.ask(token=token) for token in ("", "guess", office.account("guest"), office.reader("reader"))}
    assert [status for status, _ in told.values()] == [401, 401, 403, 200]
    lines = [json.loads(body).get("error", "") for _, body in told.values()]
    assert "shows a bearer token" in lines[0] and "does not know this token" in lines[1]
    assert lines[2].startswith('"system:serviceaccount:default:guest" may not read this page')
    assert lines[3] == "" and b"secret-node" in told.popitem()[1][1]


@pytest.mark.parametrize(
    "path", ["/api/snapshot", "/api/events", "/api/past", "/api/job", "/api/why", "/api/whatif", "/api/eta", "/api/lint"]
)
def test_nothing_of_the_cluster_is_told_without_a_token_and_files_are(office: Office, path: str) -> None:
    assert office.ask(path)[0] == 401
    assert office.ask(path, Host="page.example")[0] == 401
    assert office.ask("/main.js", Host="page.example")[0] == 200


def test_another_site_s_script_is_refused_even_if_it_has_a_token(office: Office) -> None:
    token = office.reader("misled")
    assert office.ask(token=token, Origin="https://evil.example")[0] == 403
    assert office.ask(token=token, Host="page.example", Origin="https://page.example")[0] == 200


def test_an_answer_is_asked_once_for_many_requests_and_anew_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    token = office.reader("often")
    before = office.client.asked
    for _ in range(5):
        assert office.ask(token=token)[0] == 200
    assert office.client.asked == before + 2
    monkeypatch.setattr(reader_access, "HELD_S", 0.0)
    office.ask(token="first")
    before = office.client.asked
    office.ask(token="first")
    assert office.client.asked == before + 1


def test_strangers_are_looked_at_a_few_at_a_time_and_little_is_kept_of_them(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_access, "MOST_UNDER_WAY", 0)
    status, body = office.ask(token="one too many")
    assert (status, json.loads(body)["error"][:8]) == (429, "too many")
    monkeypatch.undo()
    monkeypatch.setattr(reader_access, "HELD", 1)
    token = office.reader("forgotten")
    assert office.ask(token=token)[0] == 200
    assert office.ask(token="another")[0] == 401
    before = office.client.asked
    assert office.ask(token=token)[0] == 200
    assert office.client.asked == before + 2


def test_a_server_that_cannot_say_who_it_is_lets_nobody_in(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(self: Client, *_: Any, **__: Any) -> bytes:
        return b"[]"

    token = office.reader("unlucky")
    monkeypatch.setattr(Counted, "create", refused)
    assert office.ask(token=token)[0] == 503
    monkeypatch.undo()
    assert office.ask(token=token)[0] == 200


def test_a_stream_ends_so_that_its_reader_is_looked_at_again(office: Office) -> None:
    status, body = office.ask("/api/events", token=office.reader("r"))
    assert (status, body[:5]) == (200, b"retry")


async def without_a_token(beside: Beside, office: Office) -> int:
    async with beside(office.scheduler, office.client) as page:
        assert isinstance(page, PageServer)
        connection = office.connection(page.url.split("/")[2])
        await asyncio.to_thread(connection.request, "GET", "/api/snapshot")
        status = (await asyncio.to_thread(connection.getresponse)).status
        connection.close()
    return status


FLAGS = {"record": "", "prometheus": "", "page_address": ":7480", "tls_cert_file": "", "tls_private_key_file": ""}


def test_beyond_loopback_it_speaks_tls_or_not_at_all(office: Office) -> None:
    with pytest.raises(InputError, match=r"in the clear; write 127\.0\.0\.1:7480, or give --tls-cert-file"):
        page_at(FLAGS)
    files = {"tls_cert_file": str(office.folder / "tls.crt"), "tls_private_key_file": str(office.folder / "tls.key")}
    status = office.run(without_a_token(page_at(FLAGS | files | {"page_address": "127.0.0.2:0"}), office))
    assert status == 401
    with pytest.raises(InputError, match="cannot be used"):
        page_at(FLAGS | files | {"tls_cert_file": str(office.folder / "none")})


@pytest.mark.page
def test_a_browser_asks_for_the_token_and_says_who_is_not_let_in(office: Office, browser: Browser, request: pytest.FixtureRequest) -> None:
    context = browser.new_context(ignore_https_errors=True, reduced_motion="reduce")
    tab = Tab(context.new_page(), request.node.name, "https://127.0.0.1:")
    tab.tolerate("status of 40[13]")
    tab.page.goto(f"https://{office.address}/#/cluster")
    tab.page.wait_for_selector("text=shows a bearer token")
    tab.screenshots("who")
    tab.check_accessible()
    for token, seen in (
        (office.account("visitor"), "text=may not read this page"),
        (office.reader("watcher"), "a.node[aria-label^=secret]"),
    ):
        tab.page.get_by_label("Bearer token").fill(token)
        tab.page.get_by_role("button", name="Look").click()
        tab.page.wait_for_selector(seen)
    expect(tab.page.locator("#acting")).to_be_hidden()
    for name in ("later-1", "later-2"):  # by streams that have ended since
        tab.page.wait_for_event("requestfinished", lambda request: "api/events" in request.url)
        office.put([node(name).cpu(8).build()])
        tab.page.wait_for_selector(f"a.node[aria-label^={name}]")
    expect(tab.page.locator("#connection")).to_have_text("live")
    context.close()
    assert tab.complaints == []
