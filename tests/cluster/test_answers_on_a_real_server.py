"""The stories of answers.yaml, asked of the API server that they were recorded from."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

import pytest
from realcluster import RealCluster

from tests.apiserver.answers import STORIES, Story

pytestmark = pytest.mark.cluster

#: what the server says of a custom kind that it does not serve yet, or at all
NOT_YET = (b"404 page not found", b"the server could not find the requested resource")
TRIES = 50


@pytest.mark.parametrize(("number", "told"), list(enumerate(STORIES)), ids=[told["story"] for told in STORIES])
def test_each_step_is_answered_as_recorded(cluster: RealCluster, number: int, told: dict[str, Any]) -> None:
    https = urllib.request.HTTPSHandler(context=cluster.tls())
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)

    def ask(method: str, path: str, body: Any = None, media: str = "application/json", **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(cluster.server + path, data, method=method)
        for name, value in {"Authorization": "Bearer admin-token", "Content-Type": media, **headers}.items():
            request.add_header(name.replace("_", "-"), value)
        for _ in range(TRIES):
            try:
                with direct.open(request, timeout=30) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as refused:
                code, text = refused.code, refused.read()
            if code != 404 or not any(words in text for words in NOT_YET):
                break
            time.sleep(0.1)
        return code, json.loads(text)

    story = Story(ask, number, f"-{uuid.uuid4().hex[:8]}")
    for step in told["steps"]:
        says = step.get("says", {})
        assert story.step(step, list(says)) == (step["code"], says), step
