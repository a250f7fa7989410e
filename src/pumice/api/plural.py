"""The form of a word that goes with a number, for all sentences that count something: 1 pod waits, 2 pods wait."""


def plural(count: float, one: str, more: str = "") -> str:
    """`one` for exactly one, else `more`; without it, `one` with an s."""
    return one if count == 1 else more or f"{one}s"


def counted(count: int, one: str, more: str = "") -> str:
    """The number, and the word that goes with it."""
    return f"{count} {plural(count, one, more)}"


def part_of(count: int, total: int, one: str) -> str:
    """2 of its 3 pods; its only pod."""
    return f"its only {one}" if count == total == 1 else f"{count} of its {counted(total, one)}"
