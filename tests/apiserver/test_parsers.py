"""Whatever comes in, the parsers read it or refuse it with a reason: bodies in JSON, YAML and protobuf, selectors, deep nesting."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.api.selectors import Requirement, matches, parse_selector
from pumice.cluster.apiserver import StatusError, requests
from pumice.cluster.apiserver.deletion import read_delete_options
from pumice.cluster.apiserver.requests import MAX_DEPTH
from pumice.cluster.apiserver.scheme import protobuf
from tests.apiserver.made import store

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
MEDIA = st.sampled_from(["application/json", "application/yaml", "application/apply-patch+yaml", protobuf.CONTENT_TYPE, "text/plain", ""])
YAMLISH = st.text(st.sampled_from("ab: -\n{}[]&*!|>\"'#,0.\t~%@`?"), max_size=60)


def read(body: bytes, media: str) -> Any:
    """None if it was refused."""
    try:
        return requests.read(body, media)
    except StatusError as refusal:
        assert refusal.code in (400, 415), refusal
        return None


@given(st.binary(max_size=80), MEDIA)
def test_any_bytes_are_a_body_or_refused(body: bytes, media: str) -> None:
    read(body, media)


@given(YAMLISH)
def test_any_text_is_yaml_or_refused(text: str) -> None:
    read(text.encode(), "application/yaml")


@given(JSONS)
def test_what_json_writes_is_read_again(value: Any) -> None:
    text = json.dumps(value)
    if "NaN" in text or "Infinity" in text:
        return
    with contextlib.suppress(StatusError):
        assert requests.read(text.encode(), "application/json") == json.loads(text)


@given(st.text(st.sampled_from("ab=!,() innotx.-/\\"), max_size=30), st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")))
def test_any_text_is_a_label_selector_or_refused(text: str, labels: dict[str, str]) -> None:
    try:
        selector = parse_selector(text)
    except ValueError as refusal:
        assert str(refusal)
        return
    assert matches(selector, labels) in (True, False)


def test_a_label_selector_may_compare_numbers() -> None:
    assert parse_selector("a>5,b<-7") == (Requirement("a", "Gt", ("5",)), Requirement("b", "Lt", ("-7",)))


@given(JSONS, st.dictionaries(st.sampled_from(["gracePeriodSeconds", "propagationPolicy"]), st.text(max_size=5)))
def test_any_body_of_a_delete_is_read_or_refused(body: Any, query: dict[str, str]) -> None:
    if isinstance(body, dict):
        with contextlib.suppress(StatusError):
            read_delete_options(body | {"preconditions": body}, query)


@given(st.sampled_from(["pods", "nodes", "jobs.batch.volcano.sh", "configmaps", "deployments.apps"]), JSONS, JSONS, JSONS)
def test_any_object_is_kept_or_refused(resource: str, metadata: Any, spec: Any, other: Any) -> None:
    made = store()
    body = {"metadata": metadata, "spec": spec, "status": other, "data": other}
    try:
        made.create(resource, json.loads(json.dumps(body)), "default")
    except StatusError as refusal:
        assert 400 <= refusal.code < 500, refusal


@pytest.mark.parametrize("opening", ["[", '{"a":', "- ", "{a: "])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 10_000, 200_000])
def test_deep_bodies_are_refused_soon(opening: str, depth: int) -> None:
    media = "application/json" if opening in ("[", '{"a":') else "application/yaml"
    closing = {"[": "]", '{"a":': "1}", "- ": "x", "{a: ": "}"}[opening]
    tail = closing * depth if opening != '{"a":' else "1" + "}" * depth
    begun = time.process_time()
    with pytest.raises(StatusError) as refusal:
        requests.read((opening * depth + (tail if opening != "- " else "x")).encode(), media)
    assert refusal.value.code == 400
    assert time.process_time() - begun < 5


def test_a_few_aliases_do_not_become_a_large_body() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"] + [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    begun = time.process_time()
    read("\n".join(lines).encode(), "application/yaml")
    assert time.process_time() - begun < 5
