"""Valid objects with values put where they do not belong: wrong types, nothing, far too much, far too deep, odd letters."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

Object = dict[str, Any]
Steps = tuple[str | int, ...]
EXAMPLES = Path(__file__).parents[2] / "examples"


def deep(levels: int) -> Any:
    value: Any = "x"
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


JUNK: list[Any] = [
    *(None, 0, -1, 1.5, "x", "", [], {}, True, [None], ["x"], {"a": 1}, [{}], [[]], {"": None}),
    *(
        2**31,
        2**63,
        -(2**63) - 1,
        10**400,
        1e308,
        "9" * 5000,
        "1e400",
        "-5",
        "NaN",
        "1e" + "9" * 30,
        "0-99999999999",
        "99999999999999999999%",
    ),
    *(
        "\u0000",
        "\ud7ff\U0010ffff",
        "\u0661",
        "²",
        "a" * 70_000,
        "../..",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "-1h",
        "10000000000000h",
    ),
    *(deep(50), ["x"] * 3000, {str(number): number for number in range(3000)}),
]


def examples() -> list[Object]:
    """Everything that the examples hold."""
    texts = (path.read_text() for path in sorted(EXAMPLES.glob("*.yaml")))
    found = [document for text in texts for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    return [each for each in found if isinstance(each.get("metadata"), dict) and each["metadata"].get("name")]


def places(value: Any, above: Steps = ()) -> Iterator[Steps]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield (*above, step)
        yield from places(inner, (*above, step))


def replaced(subject: Object, place: Steps, value: Any) -> Object:
    changed = copy.deepcopy(subject)
    inner: Any = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


def mutated(subjects: list[Object], more: Sequence[Any] = ()) -> st.SearchStrategy[Object]:
    """One of the objects with one to three values replaced, by JUNK or one of `more`."""

    @st.composite
    def one(draw: st.DrawFn) -> Object:
        subject = draw(st.sampled_from(subjects))
        for _ in range(draw(st.integers(1, 3))):
            subject = replaced(subject, draw(st.sampled_from(list(places(subject)))), draw(st.sampled_from([*more, *JUNK])))
        return subject

    return one()
