"""The method `format`, as in `"%s has %d".format([...])`."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import by_size, method
from pumice.api.cel.library.operators import bool_to_text, bytes_to_text, double_to_text
from pumice.api.cel.library.text import quote
from pumice.api.cel.library.times import instant_text, span_text
from pumice.api.cel.values import Instant, Optional, Span, Type, kind_of

_CLAUSE = re.compile(r"%(?:%|(?:\.([0-9]{0,9}))?(.?))", re.DOTALL)
_RAISED = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_TEXTS = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_INT = "%s clause can only be used on integers, was given %s"


@method("format(string, list<dyn>) string", price=by_size, pays=True)
def format_(budget: CostBudget, text: str, values: list[Any]) -> str:
    found: list[str] = []
    position = used = 0
    for clause in _CLAUSE.finditer(text):
        found.append(text[position : clause.start()])
        position = clause.end()
        if clause[0] == "%%":
            found.append("%")
            continue
        if not clause[2]:
            raise EvaluationError("unexpected end of string")
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        found.append(_Writer(budget).clause(clause[1], clause[2], values[used]))
        used += 1
    if used < len(values):
        raise EvaluationError(f"too many arguments supplied to string.format (expected {used}, got {len(values)})")
    return "".join([*found, text[position:]])


class _Writer:
    def __init__(self, budget: CostBudget) -> None:
        self.budget = budget

    def clause(self, precision: str | None, letter: str, value: Any) -> str:
        if precision == "":
            raise EvaluationError("could not parse formatting clause: error while parsing precision")
        match letter:
            case "s":
                return self.text(value, 0)
            case "d":
                return self.paid(self.decimal(value))
            case "f":
                return self.fixed(value, int(precision or 6))
            case "e":
                return self.scientific(value)
            case "b":
                return self.paid(f"{int(self.integer(value, 'binary', bool)):b}")
            case "o":
                return self.paid(f"{self.integer(value, 'octal'):o}")
            case "x" | "X":
                found = self.hexadecimal(value)
                return self.paid(found.upper() if letter == "X" else found)
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')

    def paid(self, text: str) -> str:
        self.budget.pay(len(text) // 10)
        return text

    def text(self, value: Any, level: int) -> str:
        """A value as %s shows it; strings within lists and maps are quoted."""
        match value:
            case str():
                return self.paid(quote(value) if level else value)
            case bytes():
                return self.paid(f'b"{value.decode(errors="replace")}"' if level else bytes_to_text(value))
            case bool():
                return bool_to_text(value)
            case None:
                return "null"
            case float():
                return double_to_text(value) if not level else self.fixed(value, 6) if isfinite(value) else f'"{_endless(value)}"'
            case int():
                return str(int(value))
            case Type():
                return value.name
            case Instant() | Span():
                plain = instant_text(value) if isinstance(value, Instant) else span_text(value)
                return f'{"timestamp" if isinstance(value, Instant) else "duration"}("{plain}")' if level else plain
            case list():
                return self.paid(f"[{', '.join(self.text(item, level + 1) for item in value)}]")
            case Mapping():
                texts = sorted((self.text(key, level + 1), self.text(one, level + 1)) for key, one in value.items())
                mark = ", " if not level else ","
                return self.paid("{" + mark.join(f"{key}:{one}" for key, one in texts) + "}")
        raise EvaluationError(f"error during formatting: {_TEXTS}, was given {_name(value)}")

    def decimal(self, value: Any) -> str:
        if isinstance(value, float) and not isfinite(value):
            return double_to_text(value)
        return str(self.integer(value, "decimal"))

    def integer(self, value: Any, clause: str, other: type = int) -> int:
        if not isinstance(value, int) or (isinstance(value, bool) and other is not bool):
            raise EvaluationError(f"error during formatting: {_INT % (clause, _name(value))}")
        return int(value)

    def fixed(self, value: Any, precision: int) -> str:
        if not isinstance(value, float):
            raise EvaluationError(f"error during formatting: fixed-point clause can only be used on doubles, was given {_name(value)}")
        if not isfinite(value):
            return _endless(value)
        self.budget.pay(precision // 10)
        return self.paid(f"{value:.{precision}f}")

    def scientific(self, value: Any) -> str:
        if not isinstance(value, float):
            raise EvaluationError(f"error during formatting: scientific clause can only be used on doubles, was given {_name(value)}")
        if not isfinite(value):
            return _endless(value)
        digits, _, power = f"{value:.6e}".partition("e")
        return f"{digits}×10{power.removeprefix('+').translate(_RAISED)}"

    def hexadecimal(self, value: Any) -> str:
        if isinstance(value, str | bytes):
            self.budget.pay(len(value) // 5)
            return (value.encode(errors="replace") if isinstance(value, str) else value).hex()
        if not isinstance(value, int) or isinstance(value, bool):
            problem = "only integers, byte buffers, and strings can be formatted as hex"
            raise EvaluationError(f"error during formatting: {problem}, was given {_name(value)}")
        return f"{int(value):x}"


def _endless(value: float) -> str:
    return "NaN" if value != value else "∞" if value > 0 else "-∞"


def _name(value: Any) -> str:
    return "optional_type" if isinstance(value, Optional) else kind_of(value)
