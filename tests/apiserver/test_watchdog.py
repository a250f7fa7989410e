"""What holds the event loop is named, and a long piece of work is done in steps between which others are answered."""

from __future__ import annotations

import gc
import json
import logging
import threading
import time

import pytest

from pumice.cluster.apiserver import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.cluster.apiserver.archive import export_cluster
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH
from pumice.http.watchdog import HELD_S, Handler, Watchdog
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire


def _slowly(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    until = time.thread_time() + 1.5 * HELD_S
    while time.thread_time() < until:
        pass
    return None


def test_a_handler_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rule = AdmissionRule(("secrets",), ("CREATE",), validate=_slowly)
    path = "/api/v1/namespaces/default/secrets"
    with caplog.at_level(logging.WARNING, "pumice.http.watchdog"), in_thread(plain=True, rules=[rule]) as running, Wire(running) as wire:
        assert wire.ask("POST", path, {"metadata": {"name": "slow"}})[0] == 201
        assert wire.ask("GET", f"{path}/slow")[0] == 200
    (told,) = (record.getMessage() for record in caplog.records if "POST" in record.getMessage())
    assert told.startswith(f"POST {path} held the event loop for ")
    assert not any("GET" in record.getMessage() for record in caplog.records)


def test_a_handler_leaves_no_cycle_for_the_collector_of_garbage() -> None:
    """There is one for each request."""
    handler = Handler("GET")
    with handler:
        assert handler.turn is handler
    assert handler not in gc.get_referents(handler)


class Heard(logging.Handler):
    """Sets an event at the first record, and keeps all."""

    def __init__(self) -> None:
        super().__init__()
        self.first = threading.Event()
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())
        self.first.set()


def test_a_handler_that_does_not_end_is_named_while_it_holds_the_loop() -> None:
    on_failure, log = Heard(), logging.getLogger("pumice.http.watchdog")
    patience_s = 60.0
    ended: list[bool] = []

    def until_named(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
        ended.append(on_failure.first.wait(patience_s))
        return None

    rule = AdmissionRule(("secrets",), ("CREATE",), validate=until_named)
    path = "/api/v1/namespaces/default/secrets"
    log.addHandler(on_failure)
    try:
        with Watchdog(look_s=0.02), in_thread(plain=True, rules=[rule]) as running, Wire(running) as wire:
            assert wire.ask("POST", path, {"metadata": {"name": "endless"}})[0] == 201
    finally:
        log.removeHandler(on_failure)
    assert ended == [True]
    (told,) = (each for each in on_failure.records if "POST" in each and "has been holding" in each)
    assert told.startswith(f"POST {path} has been holding the event loop for more than 0.02 s, in wait (") and "until_named" in told


def test_a_cluster_is_exported_in_pieces_between_which_others_are_answered() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        body = {"data": {"text": "x" * 1000}}
        running.call(lambda store: [store.create("configmaps", body | {"metadata": {"name": f"c{n}"}}, "default") for n in range(250)])
        pieces = running.call(lambda store: [len(piece) for piece in export_cluster(store)])
        assert max(pieces) < sum(pieces) / 2
        wire.watch(ARCHIVE_PATH)
        archive = json.loads(b"".join(iter(wire.piece, b"")))
    assert len(archive["objects"]["configmaps"]) >= 250
