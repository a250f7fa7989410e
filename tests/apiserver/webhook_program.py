"""A program that answers webhooks over HTTPS, on a thread: what it is asked, and what it answers, are the test's."""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pumice.client.certificates import Authority, server_context
from pumice.client.tls import KeyPair

Object = dict[str, Any]
Answer = Callable[[str, Object], Object]  #: from a path and a request to the response

NAME = "hooks.test.svc"


class Program:
    """`answer` may be replaced at any time. `asked` are the paths and requests so far."""

    def __init__(self, server: ThreadingHTTPServer, authority: bytes) -> None:
        self.address = f"127.0.0.1:{server.server_address[1]}"
        self.authority = base64.b64encode(authority).decode()
        self.answer: Answer = lambda path, request: {"allowed": True}
        self.asked: list[tuple[str, Object]] = []

    def client(self, path: str) -> Object:
        return {"service": {"namespace": "test", "name": "hooks", "path": path}, "caBundle": self.authority}

    def hook(self, path: str, *rules: Object, **spec: Any) -> Object:
        needed = {"name": f"{path.strip('/')}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
        return {**needed, "clientConfig": self.client(path), "rules": list(rules), **spec}

    def service(self) -> Object:
        metadata = {"name": "hooks", "namespace": "test", "annotations": {"pumice.io/program-address": self.address}}
        return {"metadata": metadata, "spec": {"ports": [{"port": 443}]}}

    def take(self, path: str, body: Object) -> Object:
        field = "request"
        request = body[field]
        self.asked.append((path.partition("?")[0], request))
        return {**body, "response": {"uid": request["uid"], **self.answer(path.partition("?")[0], request)}}


def issued(authority: Authority) -> KeyPair:
    return authority.issue("hooks", NAME)


@contextlib.contextmanager
def serving(issued: Callable[[Authority], KeyPair] = issued) -> Iterator[Program]:
    made: list[Program] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(made[0].take(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    authority = Authority(time.time(), 1, "hooks")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with tempfile.TemporaryDirectory() as folder:
        server.socket = server_context(issued(authority), Path(folder)).wrap_socket(server.socket, server_side=True)
    made.append(Program(server, authority.pem))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def patch(*operations: Object, **more: Any) -> Object:
    """A response that changes the object."""
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode(), **more}
