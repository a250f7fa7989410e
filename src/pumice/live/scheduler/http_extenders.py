"""Extenders over HTTP: an `ExtenderService` of `framework.world`. One request at a time, JSON in both directions.

The time-out of a call covers all of it, from connecting to the last byte. An extender that does not answer must not cost that for each pod
for ever: once it has cost a cycle LOST_S seconds, it counts as failed for the rest of the cycle, without being called. After some failures
in a row it counts as failed for a while that grows, and then one call tries it. Any answer counts as one, even that the extender failed.
"""

import asyncio
import base64
import logging
import ssl
import tempfile
import time
import weakref
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pumice.api.kinds import ObjectRef
from pumice.api.structs import encode
from pumice.client.failures import KubeError
from pumice.http.connection import Answer, TooLong
from pumice.http.connection_pool import LARGEST_ANSWER, fetch
from pumice.scheduler.framework.profiles import ExtenderSpec
from pumice.scheduler.kube.extenders import fields_of

FAILURES = 3  #: in a row, until an extender is left alone
LOST_S = 10.0  #: the most that an extender may cost a cycle by not answering
LONGEST_PAUSE_S = 60.0
log = logging.getLogger(__name__)

OnFailure = Callable[[str, str], object]


class HttpExtender:
    """An extender of kube-scheduler or Volcano, called over HTTP.

    `options`: `https`, `tls` with the fields of tlsConfig, `max_bytes` of an answer.
    `on_failure` is called with the name of an extender that is left alone and the reason, and with an empty reason when it answers again.
    """

    def __init__(
        self,
        url: str,
        timeout_s: float,
        options: dict[str, Any],
        on_failure: OnFailure = lambda url, why: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(url)
        scheme = "https" if options.get("https") or parts.scheme == "https" else "http"
        self._url = parts._replace(scheme=scheme, path=parts.path.rstrip("/"), query="", fragment="").geturl()
        self._path = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._tls_config = options.get("tls") or {}
        self._max_bytes = options.get("max_bytes", LARGEST_ANSWER)
        self._on_failure = on_failure
        self._clock = clock
        self._failures = 0  #: in a row
        self._why = ""  #: the reason of the last failure
        self._asked_again_at = 0.0
        self._lost_s = 0.0  #: in this cycle
        self._made: tuple[list[tuple[int, int]], ssl.SSLContext] | None = None

    def begin(self) -> None:
        """Begin a new cycle."""
        self._lost_s = 0.0

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        """The decoded answer to a POST to the verb. Raises OSError if there is no answer, ValueError if it cannot be used."""
        path = f"{self._path}/{verb.strip('/')}"
        if self._lost_s >= LOST_S or self._clock() < self._asked_again_at:
            raise OSError(f"POST {path}: not asked for now, it does not answer ({self._why})")
        began = self._clock()
        try:
            answer = self._loop.run_until_complete(self.post(verb, arguments))
        except TooLong as error:
            self._answered()
            raise ValueError(f"POST {path}: answered {error}") from None
        except OSError as error:
            why = f"no answer in {self._timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
            self._failed(why, self._clock() - began)
            raise OSError(f"POST {path}: {why}") from None
        self._answered()
        return _content(path, answer)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """Cycles run beside the loop of the process, or without one."""
        loop = asyncio.new_event_loop()
        weakref.finalize(self, loop.close)
        return loop

    async def post(self, verb: str, arguments: dict[str, Any]) -> Answer:
        headers, body = {"Content-Type": "application/json"}, encode(arguments)
        target, tls = f"{self._url}/{verb.strip('/')}", self._context() if self._url.startswith("https:") else None
        return await fetch(target, headers=headers, body=body, tls=tls, timeout_s=self._timeout_s, max_bytes=self._max_bytes)

    # ---- whether it is called

    def _failed(self, why: str, took_s: float) -> None:
        self._failures += 1
        self._why = why
        self._lost_s += took_s
        beyond = self._failures - FAILURES
        if beyond >= 0:
            pause_s = min(max(1.0, 2 * self._timeout_s) * 2.0 ** min(beyond, 10), LONGEST_PAUSE_S)
            self._asked_again_at = self._clock() + pause_s
        if beyond == 0:
            log.warning("%s does not answer and counts as failed without being asked, but for a try now and then: %s", self.name, why)
            self._on_failure(self.name, why)

    def _answered(self) -> None:
        if self._failures >= FAILURES:
            log.info("%s answers again", self.name)
            self._on_failure(self.name, "")
        self._failures, self._asked_again_at = 0, 0.0

    @property
    def name(self) -> str:
        """The name of the extender in logs and events: its URL without user and password."""
        parts = urlsplit(self._url)
        return "extender " + parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    # ---- TLS

    def _context(self) -> ssl.SSLContext:
        """It is made anew when its files have been renewed."""
        files = [Path(path).stat() for field in ("ca_file", "cert_file", "key_file") if (path := self._tls_config.get(field))]
        read = [(file.st_ino, file.st_mtime_ns) for file in files]
        if self._made is None or self._made[0] != read:
            self._made = read, self._new_context()
        return self._made[1]

    def _new_context(self) -> ssl.SSLContext:
        tls = self._tls_config
        authority = base64.b64decode(tls["ca_data"]).decode() if tls.get("ca_data") else None
        context = ssl.create_default_context(cafile=tls.get("ca_file") or None, cadata=authority)
        if tls.get("insecure"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._present_certificate(context)
        return context

    def _present_certificate(self, context: ssl.SSLContext) -> None:
        tls = self._tls_config
        if tls.get("cert_file"):
            context.load_cert_chain(tls["cert_file"], tls.get("key_file") or None)
        elif tls.get("cert_data"):
            with tempfile.TemporaryDirectory() as folder:
                pem = Path(folder, "pair.pem")
                pem.touch(mode=0o600)
                pem.write_bytes(base64.b64decode(tls["cert_data"]) + b"\n" + base64.b64decode(tls.get("key_data") or ""))
                context.load_cert_chain(pem)


async def bind_by(extender: HttpExtender, spec: ExtenderSpec, pod: ObjectRef, node: str) -> None:
    """Let the extender bind a pod. Raises KubeError; it is not asked again then, as kube-scheduler does not."""
    arguments = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    try:
        answer = fields_of(_content(spec.bind_verb, await extender.post(spec.bind_verb, arguments)) or {})
    except (OSError, ValueError) as error:
        raise KubeError(f"{spec.name}: {error or 'no answer in time'}") from None
    if answer.get("error"):
        raise KubeError(f"{spec.name}: {answer['error']}")


def _content(path: str, answer: Answer) -> Any:
    if answer.status != 200:
        raise ValueError(f"POST {path}: answered {answer.status}")
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(f"POST {path}: the answer is not JSON") from None
