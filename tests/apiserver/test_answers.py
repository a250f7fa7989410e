"""Stories of requests of which Kubernetes' own API server gave the answers that are recorded here: ours gives the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.answers import STORIES, Story
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread(plain=True) as server:
        yield server


@pytest.mark.parametrize(("number", "told"), list(enumerate(STORIES)), ids=[told["story"] for told in STORIES])
def test_each_step_is_answered_as_by_kubernetes(wire: Wire, number: int, told: dict[str, Any]) -> None:
    story = Story(wire.ask, number)
    for step in told["steps"]:
        says = step.get("says", {})
        assert story.step(step, list(says)) == (step["code"], says), step
