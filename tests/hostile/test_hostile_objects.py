"""No object, however odd, brings an exception to the top: reader, model and cycle, API server, controllers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.api import yaml
from pumice.api.errors import InputError
from pumice.api.manifests import Objects, read_stream
from pumice.cluster.apiserver import StatusError
from pumice.inputs.cluster_from_files import complete
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.testing.scene import policy
from tests.apiserver.made import store
from tests.hostile.mutations import JUNK, Object, examples, mutated, places, replaced
from tests.samples import times

VALID = examples()
ORDINARY = policy(
    "enqueue, allocate, backfill, preempt, reclaim", ("priority", "gang", "drf", "proportion", "predicates", "nodeorder", "sla")
)


def as_json(value: Any) -> bytes:
    return json.dumps(value, default=str).encode()


def read(objects: list[Object]) -> Objects | str:
    """What the reader makes of them, one by one as a stream of JSON, or its words."""
    found = Objects()
    try:
        read_stream(as_json({"apiVersion": "v1", "kind": "List", "items": objects}), "x", found)
    except InputError as error:
        assert len(str(error).splitlines()[0]) < 2000
        return str(error)
    return found


@settings(max_examples=times(15), deadline=None)
@given(st.lists(mutated(VALID), min_size=1, max_size=3))
def test_reader_model_and_cycle_take_whatever_comes(odd: list[Object]) -> None:
    found = Objects()
    try:
        read_stream(as_json({"apiVersion": "v1", "kind": "List", "items": odd}), "x", found)
    except InputError as error:
        assert len(str(error).splitlines()[0]) < 2000
    made = Cluster()
    for kind, item in complete(found.items):
        try:
            made.put(kind, item)
        except ValueError:  # a time that is none: who feeds the model tells it and passes the object over
            continue
    made.check()
    assert not cycle(made, ORDINARY, 1_767_225_600.0).failures
    made.check()


@settings(max_examples=times(15), deadline=None)
@given(mutated(VALID))
def test_the_api_server_takes_it_or_refuses_it(odd: Object) -> None:
    made = store()
    served = {kind.kind: kind.storage for kind in made.kinds}
    resource = served.get(odd["kind"], "pods") if isinstance(odd.get("kind"), str) else "nodes"
    try:
        made.create(resource, json.loads(as_json(odd)), "default")
    except StatusError as error:
        assert 400 <= error.code < 500


@pytest.mark.parametrize("subject", VALID[:4], ids=lambda subject: f"{subject['kind']}-{subject['metadata']['name']}")
def test_every_place_of_the_first_examples_with_every_odd_value(subject: Object) -> None:
    """Read one by one: what is refused is refused in a line."""
    for place in places(subject):
        for junk in JUNK[:18]:
            read([replaced(subject, place, junk)])


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


ENDLESS = {
    "brackets": "[" * 100_000,
    "braces": "{a: " * 50_000,
    "dashes": "- " * 3000,
    "indents": "\n".join(" " * number + "a:" for number in range(3000)),
    "bomb": BOMB,
    "circle": "a: &a [*a]",
    "circle-map": "a: &a {b: *a}",
    "nul": "\x00",
    "tag": "!!python/object:os.system x",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
def test_text_that_would_exhaust_a_reader_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        list(yaml.documents(text, "x"))
    assert len(str(caught.value)) < 300
