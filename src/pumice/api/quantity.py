"""Kubernetes quantities, read exactly and without floats: "1500m", "2Gi", "1e3", 2.

A quantity is used in one of two units, each rounded up to an integer as Kubernetes does: `milli` (CPU, extended resources) or `whole`
(bytes, counts). No quantity is greater than MOST: a greater one is read as MOST, but stored as it is up to 1e40, unless its suffix is
binary, as in Kubernetes. Digits beyond a billionth only round up. So the cost of reading is linear in the length of the text. Texts that
were read lately share one `Quantity`.
"""

import re
from functools import lru_cache

MOST = 2**63 - 1  #: the greatest amount, in whole units
SHORT = 4  #: an amount with at most this many characters is shown exactly
LONGEST_KEPT = 64  #: a text with at most this many characters is kept as written
READ_LATELY = 1024  #: so many texts are not read again

_FORM = re.compile(r"([+-]?)(?:(\d++)(?:\.(\d*+))?|\.(\d++))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d++))?\Z", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {letter + "i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_LETTERS = {power: letter for letter, power in _DECIMAL.items()}
_FINEST = 9  #: decimal places that count: billionths
_MOST_NANO = MOST * 1_000_000_000
_MOST_DIGITS = 40 + _FINEST  #: of an amount that is stored as it is, in billionths
_MOST_STORED: int = 10**_MOST_DIGITS


class QuantityError(ValueError):
    """Raised for a text that is not a quantity; the message says what to write."""


class Quantity:
    """One quantity, in both units. `quantity()` makes it."""

    __slots__ = ("milli", "text")

    def __init__(self, text: str, nano: int) -> None:
        self.milli = -(-max(min(nano, _MOST_NANO), -_MOST_NANO) // 10**6)  #: in thousandths, rounded up
        self.text = text if len(text) <= LONGEST_KEPT else format_milli(self.milli)

    @property
    def whole(self) -> int:
        """In whole units, rounded up."""
        return -(-self.milli // 1000)

    @property
    def is_cut(self) -> bool:
        """Whether it says more than MOST."""
        return _parsed(self.text)[0] > _MOST_NANO

    def __eq__(self, other: object) -> bool:
        """Whether the other is written in the same way."""
        return isinstance(other, Quantity) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Quantity({self.text})"


def quantity(text: str | int | float) -> Quantity:
    """The quantity that this text or number means. Raises QuantityError."""
    if not isinstance(text, str):
        text = _number_text(text)
    return _kept(text) if len(text) <= LONGEST_KEPT else _read(text)


def _number_text(number: int | float) -> str:
    """The number as text. A number beyond MOST becomes one with the same sign that is too large in any case."""
    if isinstance(number, int) and abs(number) > MOST:
        return f"{'-' if number < 0 else ''}{10**_MOST_DIGITS}"
    return str(number)


def _read(text: str) -> Quantity:
    return Quantity(text, _parsed(text)[0])


def _parsed(text: str) -> tuple[int, str | None, str | None]:
    """The amount in billionths, the suffix and the exponent of a text. Raises QuantityError."""
    match = _FORM.match(text)
    if match is None:
        raise QuantityError(f'"{shortened(text)}" is not a quantity; {_advice(text)}')
    sign, before, after, only_after, suffix, exponent = match.groups()
    nano = _nano(before or "", after or only_after or "", _BINARY.get(suffix, 1), _power(suffix, exponent))
    if suffix in _BINARY:
        nano = min(nano, _MOST_NANO)
    return -nano if sign == "-" else nano, suffix, exponent


_kept = lru_cache(maxsize=READ_LATELY)(_read)


def _power(suffix: str | None, exponent: str | None) -> int:
    """The power of ten of a suffix or an exponent. An exponent of ten digits or more becomes 10**10: the result is the same."""
    if exponent is None:
        return _DECIMAL.get(suffix or "", 0)
    size = exponent.lstrip("+-").lstrip("0")
    power = int(size or "0") if len(size) < 10 else 10**10
    return -power if exponent[0] == "-" else power


def _nano(before: str, after: str, factor: int, power: int) -> int:
    """The number `before`.`after` times the factor and the power of ten, in billionths, rounded up and at most 1e40 whole units."""
    digits = (before + after).lstrip("0")
    point = len(digits) - len(after) + power + _FINEST  #: the number of digits before the point when the unit is a billionth
    if not digits:
        return 0
    if point > _MOST_DIGITS:
        return _MOST_STORED
    if point < -_MOST_DIGITS:
        return 1
    cut = max(point, 0) + _MOST_DIGITS
    kept = digits[:cut] + ("1" if digits[cut:].strip("0") else "")  # digits that are cut off still round up
    value, shift = int(kept) * factor, point - len(kept)
    nano: int = value * 10**shift if shift >= 0 else -(-value // 10**-shift)
    return nano


def canonical(text: str | int | float) -> str:
    """The one form in which a quantity is stored: "1000m" is "1", "0.5" is "500m", "1.5Gi" is "1536Mi". Raises QuantityError."""
    if not isinstance(text, str):
        text = _number_text(text)
    return _kept_canonical(text) if len(text) <= LONGEST_KEPT else _canonical(text)


def _canonical(text: str) -> str:
    nano, suffix, exponent = _parsed(text)
    whole, rest = divmod(abs(nano), 10**_FINEST)
    if suffix in _BINARY and whole >= 1024 and not rest:
        amount, power = whole, 0
        while amount % 1024 == 0 and power < len(_BINARY):
            amount, power = amount // 1024, power + 1
        written = f"{amount}{('', *_BINARY)[power]}"
    else:
        written = _decimal(abs(nano), exponent is not None)
    return f"-{written}" if nano < 0 else written


def _decimal(nano: int, with_exponent: bool) -> str:
    """The amount with the largest power of a thousand that leaves a whole number."""
    amount, power = nano, -_FINEST
    while amount and amount % 1000 == 0 and power < 18:
        amount, power = amount // 1000, power + 3
    if not amount or not power:
        return str(amount)
    return f"{amount}e{power}" if with_exponent else f"{amount}{_LETTERS[power]}"


_kept_canonical = lru_cache(maxsize=READ_LATELY)(_canonical)


def is_gpu(resource: str) -> bool:
    """Whether a resource is whole GPUs, of whichever vendor."""
    return resource.endswith("/gpu")


def shortened(text: str) -> str:
    """A text as messages show it: a long one only by its beginning and its length."""
    return text if len(text) <= LONGEST_KEPT else f"{text[:20]}... ({len(text)} characters)"


def _advice(text: str) -> str:
    digits = re.match(r"\s*([+-]?\d{1,30}(?:\.\d{1,30})?)(?!\d)", text)
    if digits is None:
        return 'write a number, such as "2", "500m" or "4Gi"'
    return f'write "{digits.group(1)}", or with a suffix such as "500m" or "4Gi"'


def format_milli(value: float) -> str:
    """The shortest quantity for an amount in thousandths: 1500 -> "1500m", 2000 -> "2"."""
    amount = round(value)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def format_bytes(value: float) -> str:
    """The quantity for a number of bytes, with the largest binary suffix that divides it: 2147483648 -> "2Gi"."""
    amount = round(value)
    if amount == 0:
        return "0"
    for power in range(6, 0, -1):
        if amount % 1024**power == 0:
            return f"{amount // 1024**power}{'KMGTPE'[power - 1]}i"
    return str(amount)


@lru_cache(maxsize=READ_LATELY)
def format_amount(value: float, *, binary: bool) -> str:
    """Thousandths, or bytes if `binary`, rounded for people: 38400 -> "38.4", 1288490189 -> "1.2Gi"; a short exact form stays."""
    exact = format_bytes(value) if binary else format_milli(value)
    if value < 1000 or len(exact) <= SHORT:
        return exact
    power = min((round(value).bit_length() - 1) // 10, 6) if binary else 0
    size, suffix = (1024**power, f"{'KMGTPE'[power - 1]}i") if binary else (1000, "")
    return f"{value / size:.3f}".rstrip("0").rstrip(".") + suffix
