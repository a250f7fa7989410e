"""Extenders over HTTP: the edge of what `framework.world` calls an Extender. One request at a time, JSON there and back.

A connection is opened for each request, as extenders are few and slow beside it. TLS as `tlsConfig` says.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pumice.api.codec import encode

MAX_BYTES = 64 * 1024 * 1024  #: a longer answer counts as a failure


class HttpExtender:
    """See the module. `options`: `https`, `tls` with the fields of tlsConfig, `max_bytes` of an answer."""

    def __init__(self, url: str, timeout_s: float, options: dict[str, Any]) -> None:
        self._url = urlsplit(url)
        self._timeout_s = timeout_s
        self._tls = options.get("tls") or {}
        self._max_bytes = options.get("max_bytes", MAX_BYTES)
        self._secure = bool(options.get("https")) or self._url.scheme == "https"

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        """POST to the verb. Raises OSError or ValueError."""
        path = f"{self._url.path.rstrip('/')}/{verb.strip('/')}"
        connection = self._connection()
        try:
            connection.request("POST", path, encode(arguments), {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = self._body(response, connection, time.monotonic() + self._timeout_s)
        except http.client.HTTPException as error:
            raise ValueError(f"POST {path}: {type(error).__name__}: {error}") from None
        except TimeoutError:
            raise OSError(f"POST {path}: no answer in {self._timeout_s:g} s") from None
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ValueError(f"POST {path}: answered {response.status} {response.reason}")
        if len(body) > self._max_bytes:
            raise ValueError(f"POST {path}: answered more than {self._max_bytes} bytes")
        try:
            return json.loads(body)
        except ValueError:
            raise ValueError(f"POST {path}: the answer is not JSON") from None

    def _body(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float) -> bytes:
        """The answer, as far as it comes in time."""
        body = b""
        while chunk := response.read1(1 << 16):
            body += chunk
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            if len(body) > self._max_bytes:
                break
            if connection.sock is not None:
                connection.sock.settimeout(left_s)
        return body

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=self._context())

    def _context(self) -> ssl.SSLContext:
        tls = self._tls
        authority = base64.b64decode(tls["ca_data"]).decode() if tls.get("ca_data") else None
        context = ssl.create_default_context(cafile=tls.get("ca_file") or None, cadata=authority)
        if tls.get("insecure"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._present_certificate(context)
        return context

    def _present_certificate(self, context: ssl.SSLContext) -> None:
        tls = self._tls
        if tls.get("cert_file"):
            context.load_cert_chain(tls["cert_file"], tls.get("key_file") or None)
        elif tls.get("cert_data"):
            with tempfile.TemporaryDirectory() as folder:
                pem = Path(folder, "pair.pem")
                pem.touch(mode=0o600)
                pem.write_bytes(base64.b64decode(tls["cert_data"]) + b"\n" + base64.b64decode(tls.get("key_data") or ""))
                context.load_cert_chain(pem)
