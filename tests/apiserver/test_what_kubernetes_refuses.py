"""Objects and changes, right and wrong, of which Kubernetes' own API server said what it says here: ours says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire

CASES = yaml.load((Path(__file__).parent / "refused.yaml").read_text(), Loader=yaml.CSafeLoader)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread(plain=True) as server:
        yield server


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_is_wrong_is_said_as_kubernetes_says_it(wire: Wire, case: dict[str, Any]) -> None:
    path, name = case["path"], case["object"]["metadata"].get("name")
    if "change" in case:
        assert wire.ask("POST", path, case["object"])[0] == 201
        status, answer = wire.ask("PATCH", f"{path}/{name}", case["change"], "application/merge-patch+json")
        wire.ask("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
    else:
        status, answer = wire.ask("POST", f"{path}{'&' if '?' in path else '?'}dryRun=All", case["object"])
    assert status == case["code"], json.dumps(answer)
    if "says" in case:
        assert answer["message"] == case["says"]
