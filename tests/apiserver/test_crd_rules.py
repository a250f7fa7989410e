"""Rules of custom kinds in CEL: they hold at every depth, compare with what was, say what is wrong, and cost little."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.api.cel.check import Environment
from pumice.api.cel.errors import CelError
from pumice.api.cel.program import Program
from pumice.api.cel.values import DYN, Optional
from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from tests.apiserver.made import store
from tests.apiserver.test_custom_kinds import CRDS

DAWN, HOUR = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def ruled(*rules: dict[str, Any], **properties: Any) -> Store:
    """A store with a kind whose spec has these rules."""
    spec = {
        "type": "object",
        "x-kubernetes-validations": list(rules),
        "properties": {
            "least": NUMBER,
            "most": NUMBER,
            "name": TEXT,
            "labels": {"type": "object", "additionalProperties": TEXT},
            "port": {"x-kubernetes-int-or-string": True},
            "since": {"type": "string", "format": "date-time"},
            "until": {"type": "string", "format": "date-time"},
            "max-size": NUMBER,
            "names": {"type": "array", "items": TEXT},
        }
        | properties,
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    names = {"kind": "Box", "plural": "boxes"}
    made = store()
    made.create(
        CRDS,
        {
            "metadata": {"name": "boxes.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        },
    )
    return made


def box(made: Store, **spec: Any) -> dict[str, Any]:
    return made.create("boxes.example.com", {"metadata": {"name": "b"}, "spec": spec}, "default")


def change(made: Store, **spec: Any) -> dict[str, Any]:
    return made.patch("boxes.example.com", "b", PatchRequest("merge", {"spec": spec}), "default")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("self.least <= self.most", {"least": 1, "most": 2}, {"least": 3, "most": 2}),
        ("!has(self.most) || self.most > 0", {"least": 1}, {"most": 0}),
        ("has(self.name) != has(self.least)", {"name": "x"}, {"name": "x", "least": 1}),
        ("self.labels.all(k, k.startsWith('a') && self.labels[k].size() < 3)", {"labels": {"ab": "xy"}}, {"labels": {"b": "x"}}),
        ("self.names.exists_one(n, n == 'main')", {"names": ["main", "x"]}, {"names": ["main", "main"]}),
        ("self.names.filter(n, n.matches('^[a-z]+$')).size() == self.names.size()", {"names": ["a"]}, {"names": ["A"]}),
        ("self.names.map(n, n.size()).sum() < 5", {"names": ["ab", "c"]}, {"names": ["abc", "de"]}),
        ("self.names.isSorted() && self.names.indexOf('a') == 0", {"names": ["a", "b"]}, {"names": ["b", "a"]}),
        ("type(self.port) == int ? self.port < 10 : self.port == 'http'", {"port": "http"}, {"port": 11}),
        ("self.port == 5 || self.port == '5'", {"port": "5"}, {"port": 6}),
        ("self.since < self.until", {"since": DAWN, "until": "2026-01-01T02:00:00+01:00"}, {"since": DAWN, "until": DAWN}),
        ("self.until - self.since <= duration('1h')", {"since": DAWN, "until": HOUR}, {"since": DAWN, "until": "2026-01-01T01:00:01Z"}),
        ("self.max__dash__size > 1", {"max-size": 2}, {"max-size": 1}),
        ("self.?name.orValue('none') == 'none'", {}, {"name": "x"}),
        ("self.name.split(',').size() == 2 && self.name.replace(',', '').lowerAscii() == 'ab'", {"name": "A,B"}, {"name": "A"}),
        ("self.name in {'a': 1, 'b': 2} && [1, 2].min() == 1", {"name": "a"}, {"name": "c"}),
        ("isURL(self.name) && !isIP(self.name)", {"name": "https://example.com/x"}, {"name": "10.0.0.1"}),
        ("quantity(self.name).isLessThan(quantity('2Gi'))", {"name": "1Gi"}, {"name": "3Gi"}),
        ("sets.contains(['a', 'b'], self.names)", {"names": ["a"]}, {"names": ["c"]}),
    ],
)
def test_a_rule_admits_and_refuses(rule: str, good: dict[str, Any], bad: dict[str, Any]) -> None:
    made = ruled({"rule": rule, "message": "no good"})
    with pytest.raises(StatusError, match=r'spec: Invalid value: "object": no good') as refusal:
        box(made, **bad)
    assert refusal.value.code == 422
    box(made, **good)


def test_what_is_said_comes_from_the_rule() -> None:
    made = ruled(
        {"rule": "self.least > 1"},
        {"rule": "self.most < 9", "messageExpression": "'most is ' + string(self.most) + ', not below 9'"},
        {"rule": "self.name != 'x'", "message": "not x", "reason": "FieldValueForbidden", "fieldPath": ".name"},
    )
    with pytest.raises(StatusError) as refusal:
        box(made, least=1, most=9, name="x")
    assert [(one["field"], one["message"]) for one in (refusal.value.details or {})["causes"]] == [
        ("spec", 'Invalid value: "object": failed rule: self.least > 1'),
        ("spec", 'Invalid value: "object": most is 9, not below 9'),
        ("spec.name", "Forbidden: not x"),
    ]


def test_a_rule_without_a_value_refuses() -> None:
    with pytest.raises(StatusError, match=r"no such key: most evaluating rule: self\.least < self\.most"):
        box(ruled({"rule": "self.least < self.most"}), least=1)


def test_transition_rules_are_for_changes() -> None:
    made = ruled({"rule": "self.least >= oldSelf.least", "message": "may only grow"})
    box(made, least=3)
    assert change(made, least=4)["spec"]["least"] == 4
    with pytest.raises(StatusError, match="may only grow"):
        change(made, least=2)
    made.patch("boxes.example.com", "b", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")


def test_a_field_may_be_immutable_and_a_first_value_optional() -> None:
    made = ruled(
        {"rule": "!oldSelf.hasValue() || !has(oldSelf.value().name) || has(self.name)", "optionalOldSelf": True, "message": "kept"},
        name=TEXT | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]},
    )
    box(made, name="a")
    with pytest.raises(StatusError, match=r"spec\.name: .*is immutable"):
        change(made, name="b")
    with pytest.raises(StatusError, match="kept"):
        change(made, name=None)


def test_items_are_compared_by_their_keys() -> None:
    item = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": TEXT, "n": NUMBER},
        "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n", "message": "shrinks"}],
    }
    made = ruled(parts={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]})
    box(made, parts=[{"id": "a", "n": 1}, {"id": "b", "n": 5}])
    change(made, parts=[{"id": "b", "n": 6}, {"id": "a", "n": 1}, {"id": "c", "n": 0}])
    with pytest.raises(StatusError, match=r"spec\.parts\[0\]: .*shrinks"):
        change(made, parts=[{"id": "b", "n": 2}])


def test_what_is_left_as_it_was_is_not_judged_again() -> None:
    made = ruled()
    box(made, least=9)
    crd = made.get(CRDS, "boxes.example.com")
    with_rule = ruled({"rule": "self.least < 5", "message": "too much"}).get(CRDS, "boxes.example.com")
    made.update(CRDS, crd | {"spec": with_rule["spec"]})
    made.patch("boxes.example.com", "b", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")
    made.patch("boxes.example.com", "b", PatchRequest("merge", {"status": {"x": 1}}), "default", "status")
    with pytest.raises(StatusError, match="too much"):
        change(made, least=8)


@pytest.mark.parametrize("rule", ["self.least <", "self.foo(1)", "nonsense(self)", "self." + "a." * 20_000, "(" * 5000])
def test_rules_that_cannot_be_read_are_refused_with_their_definition(rule: str) -> None:
    with pytest.raises(StatusError, match=r"x-kubernetes-validations\[0\]\.rule: Invalid value: .*compilation failed"):
        ruled({"rule": rule})


def test_a_rule_may_not_cost_much() -> None:
    made = ruled({"rule": "self.names.all(a, self.names.all(b, a + b != 'x'))"})
    text = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit"
    with pytest.raises(StatusError, match=text):
        box(made, names=["y" * 10] * 1000)


def test_all_rules_of_an_object_share_what_they_may_cost() -> None:
    made = ruled(*[{"rule": "self.names.all(a, self.names.all(b, a != b + 'x'))"}] * 4)
    with pytest.raises(StatusError, match="running out of cost budget, no further validation rules will be run"):
        box(made, names=["y" * 10] * 330)


@pytest.mark.parametrize("rule", ["self.nothing == 1", "self.name > 1", "self.least + 1", "has(self.labels.a.b)", "self.since == 'x'"])
def test_rules_whose_kinds_do_not_agree_with_the_schema_are_refused_with_their_definition(rule: str) -> None:
    with pytest.raises(StatusError, match=r"x-kubernetes-validations\[0\]\.rule: Invalid value: .*compilation failed"):
        ruled({"rule": rule})


WORDS = st.sampled_from(
    [
        "self",
        "oldSelf",
        ".",
        "a",
        "b",
        "(",
        ")",
        "[",
        "]",
        "1",
        "'x'",
        "+",
        "==",
        "&&",
        "||",
        "!",
        "?",
        ":",
        ",",
        "in",
        "{",
        "}",
        "all",
        "map",
        "size",
        "has",
        ".?",
        "-",
        "0x1",
        "1e9",
    ]
)


UNKNOWN = Environment({"self": DYN, "oldSelf": DYN}, {})


@given(st.lists(WORDS, max_size=25), st.text(max_size=20))
def test_any_text_is_an_expression_or_refused(words: list[str], text: str) -> None:
    for expression in (" ".join(words), text, f"self.{text}"):
        with contextlib.suppress(CelError):
            Program(expression, UNKNOWN).value({"self": {"a": [1, {"b": "x"}], "b": None}, "oldSelf": Optional(False)})


@pytest.mark.parametrize("field", ["self.namespace", "self.__namespace__"])
def test_a_field_named_as_a_reserved_word_may_be_written_with_its_escape_and_without(field: str) -> None:
    made = ruled({"rule": f"!has({field}) || {field} == 'right'"}, namespace=TEXT)
    box(made, namespace="right")
    with pytest.raises(StatusError, match="failed rule"):
        change(made, namespace="wrong")
