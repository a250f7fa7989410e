"""The API server: a store behind HTTP on one address. What must outlive the process is kept in one directory.

    server = Server(port=8443, data=Path("state"))
    await server.start()
    server.kubeconfig(Path("kubeconfig"))
    ...
    await server.stop()

It serves TLS with a certificate authority of its own, which the kubeconfig contains: kubectl and client-go send no token over plain HTTP.
On loopback it can serve plain HTTP instead, which our own clients use where speed counts. The token is required there too.
"""

import asyncio
import base64
import contextlib
import ipaddress
import random
import secrets
import ssl
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from pathlib import Path

import yaml

from pumice import garbage_collection
from pumice.api import InputError, Object, key_of
from pumice.api.times import instant_or
from pumice.client import certificates
from pumice.client.certificates import Authority
from pumice.cluster.apiserver.admission.attributes import AdmissionRule, UserInfo
from pumice.cluster.apiserver.aggregation import Aggregation
from pumice.cluster.apiserver.auth.access_control import AccessControl
from pumice.cluster.apiserver.auth.signing import Signer
from pumice.cluster.apiserver.auth.tokens import Tokens
from pumice.cluster.apiserver.bootstrap import bootstrap, own_endpoints
from pumice.cluster.apiserver.rest import RestHandler
from pumice.cluster.apiserver.status import StatusError, refusal
from pumice.cluster.apiserver.storage.group_commit import GroupCommit
from pumice.cluster.apiserver.storage.in_memory import Storage
from pumice.cluster.apiserver.storage.journal import GAP, FileJournal
from pumice.cluster.apiserver.storage.journal_files import JournalError
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams.remote import Containers, NoContainers
from pumice.http.messages import Request, Response, Stream
from pumice.http.parser import Malformed
from pumice.http.server import Connections, ServerConnection
from pumice.http.watchdog import Handler

EVENT_TTL_S = 3600.0  #: for so long Event objects are kept after their last write, as in every cluster: no client deletes them
HISTORY_S = 300.0  #: for so long a watch may begin in the past: so often an API server has etcd compacted
EVENTS = "events"
AT_ONCE = 1000  #: events that one call deletes at most


class EventExpiry:
    """Deletes Event objects some time after their last write. The store's clock may be any clock that does not go back."""

    def __init__(self, store: Store, ttl_s: float = EVENT_TTL_S) -> None:
        self._store = store
        self._ttl_s = ttl_s
        kept = ((key_of(event), min(_last_written(event), store.now())) for event in store.all(EVENTS))
        self._written: OrderedDict[tuple[str, str], float] = OrderedDict(sorted(kept, key=itemgetter(1)))  #: oldest first
        store.storage.listen(self._on_write, store.kind(EVENTS).storage)

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._written.pop(event.key, None)
        else:
            self._written[event.key] = self._store.now()
            self._written.move_to_end(event.key)

    def sweep(self) -> bool:
        """Delete some of the events that were not written for too long. Returns whether there may be more of them."""
        too_old = self._store.now() - self._ttl_s
        for _ in range(AT_ONCE):
            if not self._written or next(iter(self._written.values())) > too_old:
                return False
            (namespace, name), _ = self._written.popitem(last=False)
            with contextlib.suppress(StatusError):  # an admission rule may refuse it
                self._store.delete(EVENTS, name, namespace)
        return True


def _last_written(event: Object) -> float:
    """When an event that an earlier server has left was last told, as far as it says itself."""
    created, series = event["metadata"]["creationTimestamp"], event.get("series") or {}
    return max(instant_or(text, 0.0) for text in (created, event.get("lastTimestamp"), series.get("lastObservedTime")))


class HistoryExpiry:
    """Forgets what was written before the last but one compaction, and gives the memory back to the machine."""

    def __init__(self, storage: Storage, now: float) -> None:
        self._storage = storage
        self._noted = now, storage.version  #: when was compacted last, and what had been written then
        self._due: int | None = None  #: the version up to which is being forgotten

    def sweep(self, now: float) -> bool:
        """Forget some of what is due. Returns whether there may be more of it."""
        then, version = self._noted
        if now - then >= HISTORY_S:
            self._noted, self._due = (now, self._storage.version), version
        if self._due is None or self._storage.compact(self._due):
            return self._due is not None
        self._due = None
        garbage_collection.give_back()
        return False


def write_kubeconfig(path: Path, url: str, token: str, authority: bytes | None, name: str = "pumice") -> None:
    """The kubeconfig of a server: its URL, the authority to trust, and the administrator's token. Only the file's owner may read it."""
    cluster = {"server": url} | ({"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    certificates.write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


_SWEEP_EVERY_S = 5.0
_PAUSE_S = 0.1  #: until the next sweep, if one was not enough


def _random_uid() -> str:
    """A UUID of version 4. This is several times faster than the module `uuid`; nothing secret depends on it."""
    bits = random.getrandbits(122)
    first, last = f"{bits >> 90:08x}-{bits >> 74 & 0xFFFF:04x}", f"{bits & 0xFFFFFFFFFFFF:012x}"
    return f"{first}-4{bits >> 62 & 0xFFF:03x}-{0x8000 | bits >> 48 & 0x3FFF:04x}-{last}"


class Server:
    """One API server. The directory `data` belongs to it alone; without `data`, all objects are gone when it stops."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        plain: bool = False,
        data: Path | None = None,
        recover: bool = False,
        clock: Callable[[], float] = time.time,
        new_uid: Callable[[], str] = _random_uid,
        rules: Iterable[AdmissionRule] = (),
        users: dict[str, UserInfo] | None = None,
        containers: Containers | None = None,
        event_ttl_s: float = EVENT_TTL_S,
        gates: frozenset[str] = frozenset(),
    ) -> None:
        """Raises JournalError if `data` is damaged; with `recover`, the server goes on without the damaged part."""
        if plain and not _is_loopback(host):
            raise ValueError(f"plain HTTP is for loopback only; listen on 127.0.0.1, or speak TLS on {host}")
        self.gates = gates
        self.host = host
        self.port = port
        self._plain = plain
        self._data = data
        self._journal = FileJournal(data, recover) if data else None
        recovered = self._journal.version() if self._journal else 0
        version = recovered + GAP if recovered else 0
        self.store = Store(clock=clock, new_uid=new_uid, rules=rules, journal=self._journal, version=version, gates=gates)
        if self._journal is not None:
            for storage, key, obj in self._journal.objects():
                self.store.restore(storage, key, obj)
        bootstrap(self.store)
        tokens = Tokens(self._secret("token", 32).decode(), self._secret("signing-key", 32), users)
        self._aggregation = Aggregation(self.store, self._own_authority)
        self._rest = RestHandler(self.store, AccessControl(self.store, tokens), containers or NoContainers(), self._aggregation)
        self.token = tokens.admin_token
        self.documents = self._rest.documents
        self.renewed: list[Callable[[], None]] = []  #: called when there is another `certificate`
        self._authority: Authority | None = None
        self._kubeconfigs: list[tuple[Path, str]] = []  #: which are kept up to date
        self._server: asyncio.Server | None = None
        self._broken = asyncio.Event()
        self._why_broken: Exception | None = None
        self._event_ttl_s = event_ttl_s
        self._sweeper: asyncio.TimerHandle | None = None
        self._commits = GroupCommit(self.store.storage, self._journal, self._fail)
        self._door = Connections(time.monotonic, refuse=_refusal, durable=self._commits.durable, when_durable=self._commits.when_durable)

    @property
    def certificate(self) -> str:
        """The certificate of the authority that clients must trust, in PEM; empty if the server speaks plain HTTP."""
        return "" if self._plain else self._own_authority().pem.decode()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return f"{'http' if self._plain else 'https'}://{host}:{self.port}"

    def kubeconfig(self, path: Path, name: str = "pumice") -> None:
        """Write a kubeconfig for the administrator of this server. Call this only after `start`."""
        write_kubeconfig(path, self.url, self.token, self.certificate.encode() or None, name)
        self._kubeconfigs.append((path, name))

    async def start(self) -> None:
        """Start to serve. Raises OSError if the address is in use."""
        loop = asyncio.get_running_loop()
        self._door.tls = None if self._plain else self._tls_context()
        connection = partial(ServerConnection, self._rest.respond, self._door)
        self._server = await loop.create_server(connection, self.host, self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        own_endpoints(self.store, "127.0.0.1" if self.host in ("0.0.0.0", "localhost") else self.host, self.port)
        self.store.collector.wake = self._collect_soon
        self._collect_soon()
        if self._journal is not None:
            self.store.storage.listen(lambda storage, event: self._commits.begin())
        self._commits.begin()
        Signer(self.store, self._own_authority).sign_all()
        self._aggregation.start()
        self._sweep(EventExpiry(self.store, self._event_ttl_s), HistoryExpiry(self.store.storage, loop.time()))

    async def answer(self, request: Request) -> Response | Stream:
        """The answer that a client of the server's address would get, once it is durable: for another HTTP server of this process."""
        answer = self._rest.respond(request)
        if isinstance(answer, asyncio.Future):
            answer = await answer
        if not self._commits.durable(answer.version):
            durable = asyncio.Event()
            self._commits.when_durable(answer.version, durable.set)
            await durable.wait()
        return answer

    async def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._aggregation.stop()
        self.store.caller.close()
        await self.store.expressions.close()
        if self._server is not None:
            self._server.close()
            self._door.close()
            await self._server.wait_closed()
        self.store.collector.wake = None
        await self._commits.close()

    async def until_broken(self) -> None:
        """Raise JournalError once the journal cannot be written any more. From then on the server answers no request: stop it."""
        await self._broken.wait()
        text = f"{self._data} cannot be written: {self._why_broken}; what was acknowledged is kept, the server has ended"
        raise JournalError(text) from self._why_broken

    def _fail(self, error: Exception) -> None:
        self._why_broken = error
        self._broken.set()
        if self._server is not None:
            self._server.close()
        self._door.close()

    def _collect_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._collect)

    def _collect(self) -> None:
        """Run a small step of the garbage collector, and schedule the next one: between the steps, requests are answered."""
        with Handler("the garbage collector"):
            left = self.store.collector.step()
        if left:
            self._collect_soon()

    def _sweep(self, events: EventExpiry, history: HistoryExpiry) -> None:
        loop = asyncio.get_running_loop()
        with Handler("the removal of old events"):
            self._door.sweep()
            self.renew(time.time())
            left = [events.sweep(), history.sweep(loop.time())]
        self._sweeper = loop.call_later(_PAUSE_S if any(left) else _SWEEP_EVERY_S, self._sweep, events, history)

    def _secret(self, name: str, size: int) -> bytes:
        """A secret of this server. It is kept in the data directory, so that a kubeconfig stays valid over a restart.

        Raises InputError if the kept secret is too short.
        """
        path = self._data / name if self._data else None
        if path is not None and path.exists():
            kept = path.read_bytes()
            if len(kept) < size:
                raise InputError(
                    f"it is too short for what it keeps secret; remove it, and a new one of {size} bytes is made", where=str(path)
                )
            return kept
        made = secrets.token_urlsafe(size).encode()
        if path is not None:
            certificates.write_private(path, made)
        return made

    def _own_authority(self) -> Authority:
        if self._authority is None:
            now = time.time()
            self._authority = certificates.kept_authority(self._data, now) if self._data else certificates.make_authority(now)
        return self._authority

    def renew(self, now: float) -> None:
        """Serve another certificate if the one in force ends soon, of an authority with the same key: no client notices."""
        if self._authority is None or not self._authority.ends_soon(now):
            return
        kept = self._authority.pair
        self._authority = certificates.kept_authority(self._data, now) if self._data else certificates.make_authority(now, kept)
        self._door.tls = self._tls_context()
        for path, name in [each for each in self._kubeconfigs if each[0].exists()]:
            write_kubeconfig(path, self.url, self.token, self.certificate.encode(), name)
        for call in self.renewed:
            call()

    def _tls_context(self) -> ssl.SSLContext:
        hosts = dict.fromkeys([self.host, "127.0.0.1", "localhost"])
        with tempfile.TemporaryDirectory() as directory:
            authority = self._own_authority()
            return certificates.server_context(authority.issue("pumice", *hosts), Path(directory), authority.pem)


def _refusal(error: Malformed) -> Response:
    return refusal(StatusError(error.code, "RequestEntityTooLarge" if error.code == 413 else "BadRequest", str(error)))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
