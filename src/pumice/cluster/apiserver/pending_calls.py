"""What a request waits for: answers of webhooks, objects converted by the webhook of their definition, expressions that cost much.

The store works synchronously. A write that needs an answer which is not there yet stops with `Pending`. `until_done` gets the answer and
begins the write again: it then finds the answer in its `Attempt`, in the place in which it asked for it. Before the last answer is there, a
write changes nothing, so it may be begun any number of times. Whoever writes without `until_done` sees a refusal with the code 503.

Expressions of rules, policies and conditions are evaluated at once as long as all of a write cost little. What costs more is evaluated on a
thread, so that nobody waits for it but the write; who writes without `attempted` evaluates it at once.

A `Caller` makes the calls. A service is called where its annotation says that its program listens, or at its endpoints.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from posixpath import normpath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from pumice.api import InputError, Object
from pumice.api.annotations import PROGRAM_ADDRESS
from pumice.api.cel.cost import CostBudget
from pumice.client.certificates import signed_by
from pumice.client.tls import KeyPair, Trust, context
from pumice.cluster.apiserver.admission.expressions import Outcome, Work, done, outcome
from pumice.cluster.apiserver.status import StatusError
from pumice.http.connection_pool import ConnectionPool, NotConnected
from pumice.http.messages import head_of

if TYPE_CHECKING:
    from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes
    from pumice.cluster.apiserver.store import Store

MOST_CALLS = 100  #: of one request
AT_ONCE = 10_000  #: the cost of the expressions of a write that are evaluated on the event loop: at most some 60 ms
LARGEST_ANSWER = 8 * 1024 * 1024
MOST_POOLS = 100
_SELF_SIGNED = 18  #: OpenSSL's code for a first certificate that signs itself
SLICE_OF = "kubernetes.io/service-name"  #: the label of an EndpointSlice: its service
_HEAD = head_of([("Content-Type", "application/json"), ("Accept", "application/json"), ("User-Agent", "kube-apiserver-admission")])

Done = TypeVar("Done")


class Unanswered(Exception):
    """A call has no usable answer. Its text says why."""


class OutsideCall(NamedTuple):
    """A call that a write waits for. `about` says what it asks, so that an answer is used only for the same question."""

    about: tuple[Any, ...]
    make: Callable[[], Awaitable[Any]]
    uid: str = ""  #: of the object that the write creates, which has been told to the program


class Pending(StatusError):
    """A write cannot go on before a call is answered."""

    def __init__(self, call: OutsideCall) -> None:
        super().__init__(503, "ServiceUnavailable", f"the answer of {call.about[0]} is not there yet")
        self.call = call


class Attempt:
    """One write, as often as it is begun: the answers so far, in the order in which it asks for them."""

    __slots__ = ("_answers", "_at", "_budget", "uid")

    def __init__(self) -> None:
        self.uid = ""
        self._answers: list[tuple[tuple[Any, ...], Any]] = []
        self._at = 0
        self._budget: CostBudget | None = None  #: made when it is needed: few writes are about expressions

    def begin(self) -> None:
        self._at, self._budget = 0, None

    def answer(self, call: OutsideCall) -> Any:
        """The answer to a call. Raises Pending."""
        if self._is_known(call.about):
            self._at += 1
            return self._answers[self._at - 1][1]
        del self._answers[self._at :]
        raise Pending(call)

    def _is_known(self, about: tuple[Any, ...]) -> bool:
        return self._at < len(self._answers) and self._answers[self._at][0] == about

    def evaluated(self, call: OutsideCall, work: Work[Done]) -> Done:
        """What the work returns, or raises as a CelError. Raises Pending if it costs much."""
        budget = self._budget = self._budget or CostBudget(AT_ONCE)
        if not self._is_known(call.about) and budget.left > 0:
            found: Outcome[Done] = outcome(work, budget)
            if budget.left > 0:
                return done(found)
        found = self.answer(call)
        return done(found)

    async def wait_for(self, call: OutsideCall) -> None:
        answer = await call.make()
        self._answers.append((call.about, answer))
        self.uid = self.uid or call.uid


def attempted(store: Store, work: Callable[[], Done], attempt: Attempt | None = None) -> Done:
    """The result of work on the store for which the caller can wait with `until_done`. Raises what the work raises, and Pending."""
    before, store.attempt = store.attempt, attempt or Attempt()
    try:
        return work()
    finally:
        store.attempt = before


async def until_done(store: Store, work: Callable[[], Done], pending: Pending) -> Done:
    """The result of work on the store that has stopped with `pending`. Raises what the work raises."""
    attempt = Attempt()
    for _ in range(MOST_CALLS):
        await attempt.wait_for(pending.call)
        attempt.begin()
        try:
            return attempted(store, work, attempt)
        except Pending as another:
            pending = another
    raise StatusError(500, "InternalError", f"a request may need {MOST_CALLS} answers of webhooks at most")


def call_about(what: str, review: AdmissionAttributes, make: Callable[[], Awaitable[Any]], *more: Any) -> OutsideCall:
    """A call that asks something of a write."""
    before = review.old["metadata"].get("resourceVersion") if review.old else ""
    about = (what, review.operation, review.kind.resource, review.subresource, review.namespace, review.name, before, *more)
    uid = str((review.obj.get("metadata") or {}).get("uid", "")) if review.operation == "CREATE" else ""
    return OutsideCall(about, make, uid)


class Caller:
    """Makes calls to programs outside, over connections that are kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._namesakes: dict[tuple[str, bytes], bytes] = {}  #: by server and authority: a certificate that has the authority's name
        self._pools: dict[tuple[str, str, Trust, KeyPair | None], tuple[ConnectionPool, ssl.SSLContext | None]] = {}

    async def post(self, client: Object, query: str, body: Object, timeout_s: float) -> Object:
        """The answer to a body at a `clientConfig`. Raises Unanswered."""
        service, authority = client.get("service"), base64.b64decode(client.get("caBundle") or "")
        if service:
            host, name = self._address(service), f"{service['name']}.{service['namespace']}.svc"
            server, path, shown = f"https://{host}", service.get("path") or "", f"https://{name}:{service.get('port', 443)}"
        else:
            scheme, _, rest = str(client.get("url") or "").partition("://")
            host, _, path = rest.partition("/")
            server = shown = f"{scheme}://{host}"
            name = ""
        target = normpath(f"/{path.lstrip('/')}")  # client-go cleans paths: some frameworks write two slashes
        where = f'Post "{shown}{target}?{query}"'
        asked = ("POST", f"{target}?{query}", _HEAD, msgspec.json.encode(body))
        try:
            pool, tls = self._pool(server, name, Trust(self._namesakes.get((server, authority), authority)))
            try:
                answer = await pool.ask(*asked, tls, timeout_s, LARGEST_ANSWER)
            except NotConnected as error:
                if not _is_namesake(error.__cause__):
                    raise
                self._namesakes[server, authority] = leaf = await _certificate_of(server, authority, timeout_s)
                pool, tls = self._pool(server, name, Trust(leaf))
                answer = await pool.ask(*asked, tls, timeout_s, LARGEST_ANSWER)
            if answer.status != 200:
                raise Unanswered(f"{where}: the server answered {answer.status}: {bytes(answer.body)[:200].decode(errors='replace')}")
            found = msgspec.json.decode(answer.body)
        except (NotConnected, OSError, InputError, ValueError) as error:  # a timeout is an OSError, too
            raise Unanswered(f"{where}: {str(error) or 'no answer in time'}") from None
        if not isinstance(found, dict):
            raise Unanswered(f"{where}: the answer is not an object")
        return found

    def reach(self, service: Object, trust: Trust, pair: KeyPair) -> tuple[ConnectionPool, ssl.SSLContext | None]:
        """Connections to the program behind a service, to which the pair is presented. Raises Unanswered or InputError."""
        return self._pool(f"https://{self._address(service)}", f"{service['name']}.{service['namespace']}.svc", trust, pair)

    def _pool(self, server: str, name: str, trust: Trust, pair: KeyPair | None = None) -> tuple[ConnectionPool, ssl.SSLContext | None]:
        key = (server, name, trust, pair)
        if key not in self._pools:
            if len(self._pools) > MOST_POOLS:
                self.close()
            tls = context(trust, pair) if server.startswith("https:") else None
            self._pools[key] = ConnectionPool(server, name), tls
        return self._pools[key]

    def close(self) -> None:
        for pool, _ in self._pools.values():
            pool.close()
        self._pools.clear()

    def _address(self, service: Object) -> str:
        """Host and port of the program behind a service. Raises Unanswered."""
        namespace, name, port = service["namespace"], service["name"], service.get("port", 443)
        found = self._store.find("services", namespace, name)
        if found is None:
            raise Unanswered(f'service "{name}" not found')
        stated = (found["metadata"].get("annotations") or {}).get(PROGRAM_ADDRESS)
        if stated:
            return str(stated)
        for one in self._store.all("endpointslices.discovery.k8s.io", namespace):
            if (one["metadata"].get("labels") or {}).get(SLICE_OF) == name:
                for endpoint in one.get("endpoints") or ():
                    if "targetRef" not in endpoint:  # that of a pod is simulated, too
                        return f"{endpoint['addresses'][0]}:{_port_of(found, one, port)}"
        remedy = f"annotate the service with {PROGRAM_ADDRESS}=HOST:PORT, where its program listens"
        raise Unanswered(f'no endpoints available for service "{name}": its containers are simulated; {remedy}')


def _is_namesake(error: BaseException | None) -> bool:
    """Whether OpenSSL takes a certificate for one that signs itself, because its authority has the same name. Go looks at signatures."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code == _SELF_SIGNED


async def _certificate_of(server: str, authority: bytes, timeout_s: float) -> bytes:
    """The certificate that a server presents, if the authority has signed it. Raises OSError or ValueError."""
    url, unverified = urlsplit(server), context(Trust(insecure=True), None)
    async with asyncio.timeout(timeout_s):
        _, writer = await asyncio.open_connection(url.hostname, url.port or 443, ssl=unverified)
    try:
        return signed_by(authority, writer.get_extra_info("ssl_object").getpeercert(True))
    finally:
        writer.transport.abort()  # a farewell of TLS would last longer than the server may


def _port_of(service: Object, found: Object, port: int) -> int:
    name = next((one.get("name", "") for one in service["spec"].get("ports") or () if one.get("port") == port), None)
    ports = found.get("ports") or ()
    return next((one["port"] for one in ports if one.get("name", "") == name), ports[0]["port"] if ports else port)
