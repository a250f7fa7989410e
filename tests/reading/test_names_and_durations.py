"""Qualified names and Go's durations, at their edges."""

from __future__ import annotations

import pytest

from pumice.api.problems import NAME_RULE, PREFIX_RULE, qualified_name_fault
from pumice.api.times import duration


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("example.com/x", ""),
        ("a" * 253 + "/x", ""),
        ("a" * 254 + "/x", PREFIX_RULE),
        ("Example.com/x", PREFIX_RULE),
        ("/x", PREFIX_RULE),
        ("x" * 63, ""),
        ("x" * 64, NAME_RULE),
        ("-x", NAME_RULE),
    ],
)
def test_a_qualified_name_has_a_short_name_and_a_domain_before_it(name: str, fault: str) -> None:
    assert qualified_name_fault(name) == fault


@pytest.mark.parametrize(("text", "seconds"), [("-5s", -5.0), ("+5s", 5.0), ("5s", 5.0), ("-0", 0.0), ("0", 0.0), ("-1m0.5s", -60.5)])
def test_a_duration_may_have_a_sign(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "--5s", "5", "s", "5s-1s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        duration(text)
