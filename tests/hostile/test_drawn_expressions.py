"""Expressions and patterns drawn over their grammars, whole and spoiled: each has an end within its budget, or is refused in one line.

The budget of an expression is counted in lines of Python: so many for each character that is compiled, and for each unit of cost.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.api.cel import values
from pumice.api.cel.check import Environment
from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CompileError, EvaluationError
from pumice.api.cel.functions import FUNCTIONS, METHODS
from pumice.api.cel.library import lists
from pumice.api.cel.program import Program
from pumice.api.cel.syntax import _EACH
from pumice.api.cel.values import DYN
from pumice.api.regular_expressions import MOST_WORK, PatternError, pattern
from pumice.cluster.apiserver import StatusError
from tests.apiserver.made import store
from tests.apiserver.test_crd_rules import box, ruled
from tests.apiserver.test_policies import config_map, mutating, validating
from tests.hostile.test_cost import lines
from tests.samples import times

SELF = {"a": 1, "d": 1.5, "s": "a" * 300, "l": list(range(30)), "t": ["x", "", "1.2.3", "10.0.0.1"], "m": {"k": "v", "n": {}}, "z": None}
ANYTHING = Environment({"self": DYN}, {}, frozenset({"cel.bind", "includes"}))
COST, EACH_CHARACTER, EACH_COST = 3_000, 2_500, 60

# Patterns: as many ways to repeat, nest and choose as RE2 knows, and some that it does not.

CLASSES = ["a", "b", ".", "é", r"\d", r"\pL", r"\W", "[a-z]", "[^a]", "[[:alpha:]]", "^", "$", r"\b", r"\z", r"\x{1F600}", r"\Qa.\E", ""]
NOT_OF_RE2 = [r"\1", "(?=a)", "(?<!a)", r"\C", "[z-a]", "(", ")", "[", "\\", "\ud800", "\x00", "(?P<", "\n"]


def _repeated(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.one_of(st.sampled_from(["*", "+", "?", "*?", "{0,}", "{1000}", "{1001}", "{2,1}"]), st.integers(0, 60).map("{{{}}}".format))
    group = st.tuples(st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?P<n>"]), inner, st.just(")")).map("".join)
    return st.one_of(
        st.tuples(st.one_of(group, st.sampled_from(CLASSES)), counts).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("({})".format),
    )


PATTERNS = st.recursive(st.sampled_from([*CLASSES, *NOT_OF_RE2]), _repeated, max_leaves=8)

# Expressions: what stands for itself, and what is made of others.

NUMBERS = ["0", "1", "-1", "3", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1u", "18446744073709551615u"]
REALS = ["0.0", "-0.5", "1e308", "1e-320", "0x7f", "1e999"]
TEXTS = ["", "a", "%s%d%e", "%.999999999f", "1h", "-9999999h", "2026-01-01T00:00:00Z", "1Gi", "1.2.3", "::1", "10.0.0.0/8", "http://a/%zz"]
NAMES = ["self", "self.a", "self.s", "self.l", "self.t", "self.m", "self.z", "self.none", "self.?none", "x", "y", "in", "__result__"]
SHORT = st.one_of(
    st.sampled_from([*NUMBERS, *REALS, *NAMES, "true", "null", "[]", "{}", "b'\\xff'", "int", "optional.none()", "'\\q'", '"', "r'\\'"]),
    st.sampled_from(TEXTS).map(repr),
    PATTERNS.map(json.dumps),
)
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||", "&", "."]
CALLED = [*sorted(name for name in FUNCTIONS if name[0].isalpha()), "has", "undeclared", "cel.bind"]
ASKED = [*sorted(name for name in METHODS if name[0].isalpha()), *_EACH, "optMap", "optFlatMap", "undeclared"]


def _made_of(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=3)
    variables = st.sampled_from(["x", "y", "x, y", "x, x", "1"])
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join),
        st.tuples(st.sampled_from(["!", "-", "--", "!-"]), inner).map("".join),
        inner.map("({})".format),
        st.builds("{} ? {} : {}".format, inner, inner, inner),
        st.builds("{}{}{}]".format, inner, st.sampled_from(["[", "[?"]), inner),
        arguments.map(", ".join).map("[{}]".format),
        st.lists(st.tuples(inner, inner).map(": ".join), max_size=2).map(", ".join).map("{{{}}}".format),
        st.builds(lambda name, given: f"{name}({', '.join(given)})", st.sampled_from(CALLED), arguments),
        st.builds(lambda target, name, given: f"{target}.{name}({', '.join(given)})", inner, st.sampled_from(ASKED), arguments),
        st.builds("{}.{}({}, {})".format, inner, st.sampled_from(sorted(_EACH)), variables, inner),
        st.builds("cel.bind(x, {}, {})".format, inner, inner),
    )


WHOLE = st.recursive(SHORT, _made_of, max_leaves=12)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """An expression; of some, a character is missing or another one came in."""
    text = draw(WHOLE)
    at = draw(st.integers(-20, len(text)))
    return text if at < 0 else text[:at] + draw(st.sampled_from(["", "(", "'", "\\", "\x00", "é", "\n", "?"])) + text[at + 1 :]


def in_one_line(error: Exception) -> None:
    assert str(error) and not {"\n", "\r"} & {*str(error)}, repr(str(error))


@settings(max_examples=times(120))
@given(expressions())
def test_an_expression_has_an_end_within_its_budget_or_is_refused_in_a_line(text: str) -> None:
    budget = CostBudget(COST)

    def work() -> None:
        try:
            Program(text, ANYTHING).value({"self": SELF}, budget)
        except (CompileError, EvaluationError) as error:
            in_one_line(error)

    assert lines(work) <= EACH_CHARACTER * (len(text) + 10) + EACH_COST * COST, text


def nested(held: str, last: str) -> str:
    """Forty values of which each holds the one before twice: what is written here in a thousand characters has a trillion parts."""
    found = last.format("v40")
    for number in range(40, 0, -1):
        found = f"cel.bind(v{number}, {held.format(f'v{number - 1}' if number > 1 else '1')}, {found})"
    return found


TWICE = ["[{0}, {0}]", "{{'a': {0}, 'b': {0}}}", "optional.of([{0}, {0}])", "{{{0}: {0}}}"]
ASKED_OF_IT = ["{0} == {0}", "{0} != 1", "{0} in [{0}]", "[{0}, {0}].distinct()", "[{0}].indexOf({0})", "'%s'.format([{0}])", "{0} + {0}"]
ASKED_OF_IT += ["sets.equivalent([{0}], [{0}])", "sets.intersects([{0}], [{0}])", "[{0}].lastIndexOf(1)", "dyn({0}).max()", "{0}"]


@pytest.mark.parametrize("held", TWICE)
@pytest.mark.parametrize("last", ASKED_OF_IT)
def test_a_value_that_holds_another_very_often_costs_no_more_than_the_budget(held: str, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_STEPS", 5_000)
    monkeypatch.setattr(lists, "EACH_EXPRESSION", COST)

    def work() -> None:
        with contextlib.suppress(CompileError, EvaluationError):
            Program(nested(held, last), ANYTHING).value({"self": SELF}, CostBudget(COST))

    assert lines(work) <= 100 * 5_000 + EACH_COST * COST


@pytest.mark.parametrize("part", ["[]", "{}", "{[]: []}", "[] + []", "{}.size()", "[[]].map(x, x)", "optional.none()"])
def test_the_types_of_many_parts_are_compared_once(part: str) -> None:
    """Each part has a type of which nothing is known yet: they are all one type."""

    def compiled(count: int) -> None:
        Program(f"[{', '.join([part] * count)}]", ANYTHING)

    few, many = lines(lambda: compiled(100)), lines(lambda: compiled(200))
    assert many < 2.5 * few


@pytest.mark.parametrize("sort", ["ApplyConfiguration", "JSONPatch"])
def test_a_change_in_which_one_value_stands_very_often_is_refused(sort: str) -> None:
    made = store()
    twice = [{"name": f"v{number}", "expression": f"[variables.v{number - 1}, variables.v{number - 1}]"} for number in range(1, 40)]
    mutating(made, change(sort, "variables.v39"), variables=[{"name": "v0", "expression": "1"}, *twice])
    with pytest.raises(StatusError, match="cost limit exceeded"):
        config_map(made, a="1")


def change(sort: str, expression: str) -> dict[str, Any]:
    """A mutation of a policy that writes the value of the expression into a ConfigMap."""
    if sort == "JSONPatch":
        return {"patchType": sort, "jsonPatch": {"expression": f"[JSONPatch{{op: 'add', path: '/data/x', value: {expression}}}]"}}
    return {"patchType": sort, "applyConfiguration": {"expression": f"Object{{data: {{'k': {expression}}}}}"}}


@settings(max_examples=times(60))
@given(PATTERNS, st.sampled_from(["a" * 2_000, "ab" * 500 + "!", "", "é\ud800\x00\n"]))
def test_a_pattern_does_bounded_work_or_is_refused_in_a_line(text: str, subject: str) -> None:
    paid: list[int] = []
    try:
        read = pattern(text)
        assert not read.found_in(subject) or read.size * len(subject) <= MOST_WORK
        found = read.each(subject, -1, paid.append)
    except PatternError as error:
        in_one_line(error)
    else:
        assert sum(map(len, found)) <= len(subject) and len(paid) == len(found) <= len(subject) + 1


@settings(max_examples=times(15))
@given(expressions(), PATTERNS)
def test_a_rule_and_a_pattern_of_a_custom_kind_are_taken_or_refused(text: str, told: str) -> None:
    text, told = sent(text), sent(told)
    try:
        made = ruled({"rule": text, "messageExpression": text}, name={"type": "string", "pattern": told})
        box(made, least=1, most=2, name="a" * 5000, names=["a", "b"], labels={"a": "b"})
    except StatusError as error:
        refused(error)


@settings(max_examples=times(15))
@given(expressions(), st.sampled_from(["ApplyConfiguration", "JSONPatch"]))
def test_policies_are_taken_or_refused(text: str, sort: str) -> None:
    made, expression = store(), sent(text).replace("self", "object")
    puts: list[Callable[[], object]] = [
        lambda: validating(made, {"expression": expression, "messageExpression": expression}),
        lambda: mutating(made, change(sort, expression)),
        lambda: config_map(made, a="1", s="a" * 300),
    ]
    for put in puts:
        try:
            put()
        except StatusError as error:
            refused(error)


def sent(text: str) -> str:
    """The text as it can be sent: without half characters."""
    return text.encode(errors="replace").decode()


def refused(error: StatusError) -> None:
    assert 400 <= error.code < 500, (error.code, error)
