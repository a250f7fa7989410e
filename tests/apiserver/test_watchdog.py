"""What holds the event loop is named, and a long piece of work is done in steps between which others are answered."""

from __future__ import annotations

import logging
import time

import pytest

from pumice.cluster.apiserver import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.http.watchdog import HELD_S
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire


def _slowly(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    until = time.thread_time() + 1.5 * HELD_S
    while time.thread_time() < until:
        pass
    return None


@pytest.mark.holds_the_loop
def test_a_handler_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rule = AdmissionRule(("configmaps",), ("CREATE",), validate=_slowly)
    path = "/api/v1/namespaces/default/configmaps"
    with caplog.at_level(logging.WARNING, "pumice.http.watchdog"), in_thread(plain=True, rules=[rule]) as running, Wire(running) as wire:
        assert wire.ask("POST", path, {"metadata": {"name": "slow"}})[0] == 201
        assert wire.ask("GET", f"{path}/slow")[0] == 200
    (told,) = (record.getMessage() for record in caplog.records if "POST" in record.getMessage())
    assert told.startswith(f"POST {path} held the event loop for ")
    assert not any("GET" in record.getMessage() for record in caplog.records)
