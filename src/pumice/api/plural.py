"""The form of a word that goes with a number, for all sentences that count something: 1 pod waits, 2 pods wait."""


def plural(count: float, one: str, more: str = "") -> str:
    """`one` for exactly one, else `more`; without it, `one` with an s."""
    return one if count == 1 else more or f"{one}s"


def counted(count: int, one: str, more: str = "") -> str:
    """The number, and the word that goes with it."""
    return f"{count} {plural(count, one, more)}"
