"""Which calls are made again, after how long, and what never leaves."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aloop import run, until
from fakeapi import FakeApi, Fault
from msgspec.structs import replace

from pumice.api.kinds import LEASES, PODS, QUEUES, ObjectRef
from pumice.client.access import Access, Fixed, TokenFile
from pumice.client.certificates import Authority
from pumice.client.client import Backoff, Client, Retry
from pumice.client.failures import ApiError, Fenced, KubeError, NoAnswer, NoCredentials
from pumice.client.in_cluster_config import in_cluster
from pumice.client.rate_limit import ClientLimits, TokenBucket
from pumice.client.renewed_files import LOOK_AGAIN_S, RenewedFiles
from pumice.client.tls import KeyPair, Trust, usable
from pumice.client.transport import ListScope, PatchType, as_dict

QUICK = Retry(4, Backoff(0.001, 0.01))
A = ObjectRef("a", "default")


def with_client(story: Callable[[FakeApi, Client], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def whole() -> Any:
        async with FakeApi() as api, Client(Access(api.url, Fixed("Bearer t")), retry=QUICK, **options) as client:
            await api.put("pods", "a")
            return await story(api, client)

    return run(whole())


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "subresource", "path"),
    [
        (PODS, "", "", "", "/api/v1/pods"),
        (PODS, "", "ns", "", "/api/v1/namespaces/ns/pods"),
        (PODS, "a", "ns", "binding", "/api/v1/namespaces/ns/pods/a/binding"),
        (QUEUES, "q", "", "status", "/apis/scheduling.volcano.sh/v1beta1/queues/q/status"),
        (LEASES, "a/b", "ns", "", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a%2Fb"),
    ],
)
def test_paths(resource: Any, name: str, namespace: str, subresource: str, path: str) -> None:
    assert resource.path(name, namespace, subresource) == path


def test_verbs_do_what_they_say() -> None:
    async def story(api: FakeApi, client: Client) -> None:
        created = as_dict(await client.create(PODS, {"metadata": {"name": "b", "namespace": "default"}}, "default"))
        assert created["metadata"]["resourceVersion"]
        await client.update(PODS, ObjectRef("b", "default"), created | {"spec": {"x": 1}})
        await client.patch(PODS, ObjectRef("b", "default"), {"kind": "Pod"}, PatchType.MERGE)
        assert as_dict(await client.get(PODS, ObjectRef("b", "default")))["spec"] == {"x": 1}
        await client.delete(PODS, A)
        pages = [page async for page in client.pages(ListScope(PODS), limit=1)]
        assert [len(page.items) for page in pages] == [1] and {key[2] for key in api.objects} == {"b"}
        assert {headers["Authorization"] for headers in api.headers} == {"Bearer t"}
        assert next(headers for headers in api.headers if headers["Content-Type"] == "application/merge-patch+json")

    with_client(story)


# Each row: what goes wrong once, a call that may not be repeated blindly, and whether it is made again.
@pytest.mark.parametrize(
    ("fault", "repeatable", "again"),
    [
        (Fault(429, "TooManyRequests", retry_after="0"), False, True),
        (Fault(503, retry_after="0"), False, True),
        (Fault(503), False, False),
        (Fault(503), True, True),
        (Fault(500), True, True),
        (Fault(504), False, False),
        (Fault(lose="answer"), False, False),
        (Fault(lose="answer"), True, True),
        (Fault(409, "Conflict"), True, False),
        (Fault(403, "Forbidden"), True, False),
        (Fault(422, "Invalid"), True, False),
        (Fault(delay_s=0.5), False, False),
        (Fault(lose="half"), True, True),
        (Fault(lose="half"), False, False),
    ],
)
def test_a_failed_write_is_made_again_only_where_that_is_safe(fault: Fault, repeatable: bool, again: bool) -> None:
    async def story(api: FakeApi, client: Client) -> None:
        api.faults.append(fault)
        call = client.patch(PODS, A, {}, PatchType.MERGE, repeatable=repeatable)
        if again:
            await call
        else:
            with pytest.raises(KubeError):
                await call
        assert len(api.requests) == 1 + again

    with_client(story, limits=ClientLimits(timeout_s=0.2))


@pytest.mark.parametrize(
    ("fault", "ours"), [(Fault(lose="answer"), True), (Fault(lose="half"), True), (Fault(429, retry_after="0"), False), (None, False)]
)
def test_a_deletion_whose_answer_was_lost_is_told_from_one_by_somebody_else(fault: Fault | None, ours: bool) -> None:
    async def story(api: FakeApi, client: Client) -> None:
        if not ours:
            await api.remove("pods", "a")
        if fault is not None:
            api.faults.append(fault)
        if ours:
            await client.delete(PODS, A)
        else:
            with pytest.raises(ApiError, match="404"):
                await client.delete(PODS, A)
        assert [method for method, _, _ in api.requests] == ["DELETE"] * (1 + (fault is not None))
        assert not api.objects

    with_client(story)


def test_reads_are_made_again_until_the_tries_are_used_up() -> None:
    async def story(api: FakeApi, client: Client) -> None:
        api.faults.extend([Fault(500), Fault(lose="request"), Fault(lose="half")])
        assert as_dict(await client.get(PODS, A))["metadata"]["name"] == "a"
        api.faults.extend([Fault(500, "InternalError")] * 4)
        with pytest.raises(ApiError, match="500 InternalError: made to fail"):
            await client.get(PODS, A)

    with_client(story)


def test_retry_after_is_obeyed() -> None:
    async def story(api: FakeApi, client: Client) -> float:
        api.faults.append(Fault(429, "TooManyRequests", retry_after="1"))
        begun = asyncio.get_running_loop().time()
        await client.get(PODS, A)
        return asyncio.get_running_loop().time() - begun

    assert with_client(story) >= 0.99


def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    async def story() -> None:
        async with Client(Access("http://127.0.0.1:1", Fixed()), retry=QUICK) as client:
            with pytest.raises(NoAnswer) as failed:
                await client.create(PODS, {}, "default")
            assert not failed.value.sent

    run(story())


def test_an_answer_from_something_that_is_no_api_server_is_told_as_it_is() -> None:
    async def story() -> None:
        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\nConnection: close\r\n\r\ngo away!\n")
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Client(Access(f"http://127.0.0.1:{port}", Fixed()), retry=QUICK) as client:
            with pytest.raises(ApiError, match="403: go away!"):
                await client.get(PODS, A)

    run(story())


def test_a_write_that_waited_while_the_lease_was_lost_does_not_leave() -> None:
    async def story(api: FakeApi, client: Client) -> None:
        leading = True
        fenced = client.fenced(lambda: leading)
        await fenced.update(PODS, A, api.objects["pods", "default", "a"])
        api.faults.append(Fault(429, retry_after="1"))
        write = asyncio.create_task(fenced.update(PODS, A, {"metadata": {"name": "a"}}))
        await asyncio.sleep(0.1)
        leading = False
        with pytest.raises(Fenced):
            await write
        assert [method for method, _, _ in api.requests] == ["PUT", "PUT"]
        await fenced.get(PODS, A)
        await client.update(PODS, A, api.objects["pods", "default", "a"])

    with_client(story)


def test_no_more_writes_are_under_way_than_allowed() -> None:
    async def story(api: FakeApi, client: Client) -> None:
        answered = asyncio.Event()
        api.faults.extend([Fault(until=answered, method="PATCH")] * 6)
        writes = [asyncio.create_task(client.patch(PODS, A, {}, PatchType.MERGE)) for _ in range(6)]
        await until(lambda: len(api.requests) == 3)
        await client.get(PODS, A)  # reads pass by
        assert [method for method, _, _ in api.requests] == ["PATCH"] * 3 + ["GET"]
        answered.set()
        await asyncio.gather(*writes)
        assert [method for method, _, _ in api.requests].count("PATCH") == 6

    with_client(story, limits=ClientLimits(in_flight=3))


def test_a_bucket_lets_its_burst_through_and_then_keeps_its_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3, now=100.0)
    assert [round(bucket.reserve(100.0), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    assert bucket.reserve(101.0) == 0
    assert bucket.take(200.0) and bucket.take(200.0) and bucket.take(200.0) and not bucket.take(200.0)


def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    async def story() -> None:
        file = tmp_path / "token"
        file.write_text("old")
        async with FakeApi() as api, Client(Access(api.url, TokenFile(file, lambda: 0.0)), retry=QUICK) as client:
            await api.put("pods", "a")
            await client.get(PODS, A)
            file.write_text("new\n")
            await client.get(PODS, A)
            api.faults.append(Fault(401, "Unauthorized"))
            await client.get(PODS, A)
            assert [headers["Authorization"] for headers in api.headers] == ["Bearer old", "Bearer old", "Bearer old", "Bearer new"]
            api.faults.append(Fault(401, "Unauthorized"))
            with pytest.raises(ApiError, match="401"):
                await client.get(PODS, A)

    run(story())


def test_a_watch_whose_token_is_refused_has_it_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        file = tmp_path / "token"
        file.write_text("old")
        async with FakeApi() as api, Client(Access(api.url, TokenFile(file, lambda: 0.0)), retry=QUICK) as client:
            scope, how = ListScope(PODS), {"resource_version": "1", "timeout_s": 1, "idle_s": 5.0}
            await api.put("pods", "a")
            await client.get(PODS, A)
            file.write_text("new")
            api.faults.append(Fault(401, "Unauthorized"))
            with pytest.raises(ApiError, match="401"):
                async for _ in client.watch(scope, **how):
                    pass
            async for _ in client.watch(scope, **how):
                break
            assert [headers["Authorization"] for headers in api.headers] == ["Bearer old", "Bearer old", "Bearer new"]

    run(story())


def test_credentials_that_fail_are_told_and_may_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        file = tmp_path / "token"
        async with FakeApi() as api, Client(Access(api.url, TokenFile(file, lambda: 0.0)), retry=QUICK) as client:
            await api.put("pods", "a")
            with pytest.raises(NoCredentials, match="No such file"):
                await client.get(PODS, A)
            file.write_text("t")
            await client.get(PODS, A)

    run(story())


def test_a_token_that_would_break_out_of_its_header_is_refused() -> None:
    async def story() -> None:
        async with FakeApi() as api, Client(Access(api.url, Fixed("Bearer a\r\nX-Evil: b")), retry=QUICK) as client:
            with pytest.raises(NoCredentials, match="the header Authorization has a line break"):
                await client.get(PODS, A)

    run(story())


def test_a_proxy_is_gone_through() -> None:
    async def story() -> None:
        async with FakeApi() as api:
            await api.put("pods", "a")
            async with Client(Access("http://kubernetes.example", Fixed(), proxy=api.url), retry=QUICK) as client:
                assert as_dict(await client.get(PODS, A))["metadata"]["name"] == "a"
                await client.delete(PODS, A)
                with pytest.raises(ApiError, match="404"):
                    await client.get(PODS, A)
            assert api.headers[0]["Host"] == "kubernetes.example"

    run(story())


def test_impersonation_headers_are_sent_with_every_group() -> None:
    async def story() -> None:
        headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
        async with FakeApi() as api:
            async with Client(Access(api.url, Fixed(), headers=headers)) as client:
                await api.put("pods", "a")
                await client.get(PODS, A)
            assert api.headers[0]["Impersonate-User"] == "jane" and api.headers[0].getall("Impersonate-Group") == ["a", "b"]

    run(story())


@asynccontextmanager
async def serving(folder: Path, authority: Authority, pair: KeyPair) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that wants a certificate: its URL, and the names of those who came, one for each connection."""
    names: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        peer = writer.get_extra_info("peercert")
        names.append(dict(part[0] for part in peer["subject"])["commonName"])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    tls.verify_mode = ssl.CERT_REQUIRED
    file = folder / "server.pem"
    file.write_bytes(pair.certificate + pair.key)
    tls.load_cert_chain(file)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", names


def test_a_renewed_certificate_is_presented_on_new_connections(tmp_path: Path) -> None:
    authority, now = Authority(time.time(), days=1), 0.0
    server_pair = authority.issue("server", "localhost")
    files = tmp_path / "c.pem", tmp_path / "k.pem"

    def issue(name: str) -> None:
        pair = authority.issue(name)
        for path, content in zip(files, (pair.certificate, pair.key), strict=True):
            path.write_bytes(content)

    async def story() -> None:
        nonlocal now
        async with serving(tmp_path, authority, server_pair) as (url, names):
            issue("jane")

            def read() -> KeyPair:
                return KeyPair(files[0].read_bytes(), files[1].read_bytes())

            keys = RenewedFiles("client certificate", files, read, usable, lambda: now)
            trust = Trust(authority.pem, server_name="localhost")
            async with Client(Access(url, Fixed("", keys), trust), retry=QUICK) as client:
                await client.get_path("/version")
                issue("mary")
                await client.get_path("/version")
                now = LOOK_AGAIN_S
                await client.get_path("/version")
            assert names == ["jane", "jane", "mary"]

    run(story())


def test_a_renewed_authority_is_trusted_on_new_connections(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the pod's own folder, as the kubelet renews it: first the old and the new one together."""
    old, new, now = Authority(time.time(), days=1), Authority(time.time(), days=1), 0.0
    for name, content in (("token", b"t"), ("namespace", b"volcano-system"), ("ca.crt", old.pem)):
        (tmp_path / name).write_bytes(content)

    async def story() -> None:
        nonlocal now
        async with serving(tmp_path, new, new.issue("server", "127.0.0.1")) as (url, names):
            environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": url.rpartition(":")[2]}
            access = in_cluster(environ, tmp_path, lambda: now)
            async with Client(replace(access, credentials=Fixed("", new.issue("jane"))), retry=QUICK) as client:
                for content in (old.pem, b"no PEM", old.pem + new.pem):
                    assert not names
                    with pytest.raises(NoAnswer, match="certificate verify failed"):
                        await client.get_path("/version")
                    (tmp_path / "ca.crt").write_bytes(content)
                    now += LOOK_AGAIN_S
                await client.get_path("/version")
                assert names == ["jane"]

    run(story())
    assert "the changed certificate authority is not used" in caplog.text


def test_tls_trusts_the_given_authority_and_presents_the_certificate(tmp_path: Path) -> None:
    authority = Authority(time.time(), days=1)
    server_pair, client_pair = authority.issue("server", "localhost"), authority.issue("jane")

    async def story() -> None:
        async with serving(tmp_path, authority, server_pair) as (url, names):
            fixed = Fixed("", client_pair)
            async with Client(Access(url, fixed, Trust(authority.pem, server_name="localhost")), retry=QUICK) as client:
                assert await client.get_path("/version") == b"{}"
            async with Client(Access(url, fixed, Trust(authority.pem)), retry=QUICK) as client:
                with pytest.raises(NoAnswer, match="certificate verify failed"):
                    await client.get_path("/version")
            async with Client(Access(url, fixed, Trust(insecure=True)), retry=QUICK) as client:
                await client.get_path("/version")
            assert names == ["jane", "jane"]

    run(story())
