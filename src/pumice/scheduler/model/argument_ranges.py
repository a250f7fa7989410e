"""What an argument may sensibly be: declared at the field of `Args`, shown by `pumice plugins`, and searched by `pumice tune`.

    class CalmArgs(Struct):
        most_pods: Annotated[int, Range(1, 200, log=True)] = field(name="calm.mostPods", default=50)
        tie_break: Annotated[str, OneOf("name", "random")] = field(name="calm.tieBreak", default="name")

A range restricts nothing: any value of the argument's type may be configured. An argument without a range is never changed by a search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import structs


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False  #: whether steps near `low` matter more, so that a search draws on a logarithmic scale

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', logarithmic' if self.log else ''}"


class OneOf(tuple[Any, ...]):
    """A few values."""

    def __new__(cls, *values: Any) -> OneOf:
        return super().__new__(cls, values)

    def __str__(self) -> str:
        return ", ".join(map(repr, self))


def range_of(field: structs.FieldInfo) -> Range | OneOf | None:
    """The range that a field of `Args` declares."""
    return next((each for each in getattr(field.type, "__metadata__", ()) if isinstance(each, Range | OneOf)), None)


def type_of(field: structs.FieldInfo) -> Any:
    """The type of a field, without what is declared beside it."""
    return field.type.__origin__ if hasattr(field.type, "__metadata__") else field.type
