"""What `helm test` runs in the image: a program that serves its metrics is found, others are not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

SCRIPT = Path(__file__).parents[2] / "deploy/chart/files/serving.py"


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"# TYPE x gauge\npumice_leading 1\n" if self.path == "/metrics" else b"hello\n")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_it_ends_well_when_all_serve(server: str) -> None:
    command = [sys.executable, "-c", SCRIPT.read_text(), f"{server}/metrics"]  # as the pod runs it
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{server}/metrics serves\n")


def test_what_does_not_serve_is_told(server: str) -> None:
    spec = importlib.util.spec_from_file_location("serving", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.told(f"{server}/other") == "no metrics of Pumice"
    assert "refused" in module.told(f"http://127.0.0.1:{free_port()}/metrics")
    assert module.told(server.replace("http:", "https:")), "no TLS there"
    module.WITHIN_S = 0
    assert module.main([f"{server}/metrics", f"{server}/other"]) == 1
