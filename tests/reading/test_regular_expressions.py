"""Patterns that users write: RE2's syntax, and a time that is linear in the text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pumice.api.field_selectors import parse_field_selector
from pumice.api.regular_expressions import MOST_WORK, PatternError, pattern
from pumice.api.selectors import parse_selector
from pumice.api.times import duration
from pumice.cluster.apiserver.tables.table import parse_path

LONG = "a" * 30_000 + "!"


@pytest.mark.parametrize("text", ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(a*)*b", "(?:a{0,30}){0,30}b", "(.*)(.*)(.*)(.*)x$"])
def test_no_pattern_goes_back_over_a_text(text: str) -> None:
    assert not pattern(text).found_in(LONG)


@pytest.mark.parametrize(
    ("text", "found", "not_found"),
    [
        ("^a$", "a", "a\n"),
        (r"\pL+\z", "é", "1"),
        ("(?i)straße", "STRAßE", "x"),
        ("(?s)a.b", "a\nb", "ab"),
        ("a.b", "axb", "a\nb"),
        (r"^\d$", "1", "١"),
        (r"\Qa.b\E", "a.b", "axb"),
        ("(?P<x>a)(?<y>b)", "ab", "a"),
        (r"\x{e9}", "é", "e"),
        ("^.$", "\ud800", ""),
        ("a{1000}", "a" * 1000, "a" * 999),
    ],
)
def test_patterns_mean_what_they_mean_in_go(text: str, found: str, not_found: str) -> None:
    assert pattern(text).found_in(found)
    assert not pattern(text).found_in(not_found)


@pytest.mark.parametrize(
    "text", ["(", "a{1001}", "(a{100}){100}", r"(a)\1", "(?=a)", "(?<!a)b", r"\C", "a**", r"\Z", "[z-a]", r"\pL{1000}"]
)
def test_these_are_no_patterns(text: str) -> None:
    with pytest.raises(PatternError):
        pattern(text)


def test_matches_are_found_as_go_finds_them() -> None:
    assert pattern("a+").first("baac") == "aa"
    assert pattern("x").first("baac") is None
    assert pattern("a*").each("baac", -1) == ["", "aa", ""]
    assert pattern("é|b").each("ébé", 2) == ["é", "b"]
    assert pattern("a").each("aa", 0) == []


def test_a_pattern_of_many_instructions_takes_no_long_text() -> None:
    large = pattern("(a|b)*a(a|b){500}c")
    with pytest.raises(PatternError, match="too long"):
        large.found_in("a" * (MOST_WORK // large.size + 1))


def test_re2_comes_in_with_the_first_pattern_only() -> None:
    code = "import sys, pumice.api.regular_expressions, pumice.scheduler.framework.cycle, pumice.cli.main; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("text", ["1" * 100_000, "1" * 100_000 + "x", "1s" * 20_000 + "x", "."])
def test_a_long_duration_is_read_once(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        duration(text)


def test_a_long_selector_is_read_once() -> None:
    assert len(parse_selector("a," * 50_000 + "b")) == 50_001
    with pytest.raises(ValueError, match="field selector"):
        parse_field_selector("a" + " " * 200_000 + "b", ())
    assert len(parse_path("{" + "[?(" * 100_000 + "}")) == 100_000
