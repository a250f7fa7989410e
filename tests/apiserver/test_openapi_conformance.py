"""schemathesis against the documents that the server serves: no request makes it fail, and every answer is as declared.

Every night each operation of each document is tried with many examples; by day some documents are, of which each kind is created, and of
what the server does alike for all kinds (reads, replacements, patches, deletions) one operation of a sort stands for the others.

Names and namespaces are drawn from few, so that objects are also found, changed and deleted. Two answers of the 5xx kind are Kubernetes'
own, and left alone: 504 with the cause ResourceVersionTooLarge for a version yet to come, and 500 for a new object that states a version.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the client forgets sockets that were closed
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
NAMES = ("a", "b")
KUBERNETES_OWN = ("ResourceVersionTooLarge", "resourceVersion should not be set on objects to be created")
TIMEOUT_S = 300  #: schemathesis waits for ten seconds, in which a machine with much to do may answer nothing


def documents() -> dict[str, Any]:
    with in_thread(plain=True) as running, Wire(running) as wire:
        index = wire.ask("GET", "/openapi/v3")[1]["paths"]
        return {name: wire.ask("GET", entry["serverRelativeURL"])[1] for name, entry in index.items()}


SCHEMAS = {name: schemathesis.openapi.from_dict(document) for name, document in documents().items()}


def test_the_documents_are_of_all_group_versions() -> None:
    assert {"api/v1", "apis/apps/v1", "apis/batch.volcano.sh/v1alpha1"} <= set(SCHEMAS)


#: Kubernetes' kinds that are used most, and Volcano's
BY_DAY = (
    "api/v1",
    "apis/apps/v1",
    "apis/batch/v1",
    "apis/policy/v1",
    "apis/batch.volcano.sh/v1alpha1",
    "apis/scheduling.volcano.sh/v1beta1",
)


@pytest.mark.parametrize("name", BY_DAY)
def test_every_answer_is_as_declared(name: str) -> None:
    explore(name, Sorts().is_new, examples=2, chance=0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_answer_is_as_declared_in_many_tries(name: str) -> None:
    explore(name, lambda operation: True, examples=25, chance=int(os.environ.get("PUMICE_SEED", "0")) or random.randrange(2**32))


class Sorts:
    """Tells apart operations that differ in more than their kind."""

    def __init__(self) -> None:
        self._met: set[tuple[str, str]] = set()

    def is_new(self, operation: Any) -> bool:
        """Whether this one creates a kind, or is the first of its sort."""
        sort = operation.method, re.sub(r"[a-z]+(?=$|/\{name\})", "KIND", operation.path, count=1)
        known = sort in self._met
        self._met.add(sort)
        return not known or operation.method == "post"


def explore(name: str, wanted: Callable[[Any], bool], examples: int, chance: int) -> None:
    """Try operations of a document against a server of its own, since some of them take away what others need."""
    with in_thread(plain=True) as running, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {running.server.token}"
        schema = SCHEMAS[name]
        for found in schema.get_all_operations():
            if wanted(operation := found.ok()):
                _try(operation, running, session, examples, chance)


def _try(operation: Any, running: Running, session: requests.Session, examples: int, chance: int) -> None:
    @given(case=operation.as_strategy(), aimed=st.booleans())
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def run(case: Any, aimed: bool) -> None:
        if aimed:
            _aim(case)
        answer = case.call(running.url, session=session, timeout=TIMEOUT_S)
        assert not _has_failed(answer), f"seed {chance}: {case.as_curl_command()}\n{answer.text}"
        case.validate_response(answer, checks=CHECKS)

    seed(chance)(run)()


def _aim(case: Any) -> None:
    """Make it a request about an object that there may well be."""
    name = NAMES[len(str(case.query)) % len(NAMES)]
    places = {"namespace": "default", "name": name}
    case.path_parameters = {key: places[key] for key in case.path_parameters or {}}
    if isinstance(case.body, dict) and case.method in ("POST", "PUT"):
        metadata = case.body.get("metadata")
        kept = metadata if isinstance(metadata, dict) else {}
        body = {key: value for key, value in case.body.items() if key not in ("apiVersion", "kind")}
        case.body = body | {"metadata": kept | {"name": name, "namespace": "default"}}


def _has_failed(answer: Any) -> bool:
    return answer.status_code >= 500 and not any(text in answer.text for text in KUBERNETES_OWN)
