"""CEL's functions on quantities, which are exact, and on semantic versions."""

import re
from fractions import Fraction
from math import ceil, floor
from typing import Any

from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import by_size, function, method
from pumice.api.cel.library.operators import whole
from pumice.api.cel.values import Amount, Version

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {letter + "i": 10 * power for power, letter in enumerate("KMGTPE", 1)}
_LONGEST = 1000
_SHAPE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def amount(text: str) -> Amount:
    """The quantity that the text means. Raises EvaluationError."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match[2] or match[3]):
        known = len(text) <= _LONGEST and re.fullmatch(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*", text)
        raise EvaluationError("unable to parse quantity's suffix" if known else _SHAPE)
    sign, before, after, suffix, power = match.groups()
    before, after, suffix = before.lstrip("0"), after or "", suffix or ""
    digits = int(sign + (before + after or "0"))
    if suffix in _BINARY:
        bits = _BINARY[suffix]
        value = Fraction(digits * 2**bits, 10 ** len(after))
        is_small = not after and 15 - len(before) - int(bits * 3 / 10) - 1 >= 0
        return Amount(_rounded(value), 0 if is_small else None)
    scale = (int(power) if power else _DECIMAL[suffix]) - len(after)
    value = Fraction(digits) * Fraction(10) ** scale
    return Amount(_rounded(value), scale if 18 - len(before) - len(after) >= 0 and scale >= -9 else None)


def _rounded(value: Fraction) -> Fraction:
    """The value rounded to billionths, away from zero."""
    nano = value * 10**9
    return Fraction(ceil(nano) if nano > 0 else floor(nano), 10**9)


function("quantity(string) kubernetes.Quantity", price=by_size)(amount)
function("isQuantity(string) bool", price=by_size)(lambda text: _can(amount, text))


def _can(read: Any, *values: Any) -> bool:
    try:
        read(*values)
    except EvaluationError:
        return False
    return True


def _integer(value: Amount) -> int | None:
    is_whole = value.scale is not None and value.scale >= 0 and -(2**63) <= value.value < 2**63
    return int(value.value) if is_whole else None


method("isInteger(kubernetes.Quantity) bool")(lambda value: _integer(value) is not None)


@method("asInteger(kubernetes.Quantity) int")
def as_integer(value: Amount) -> int:
    found = _integer(value)
    if found is None:
        raise EvaluationError("cannot convert value to integer")
    return found


@method("asApproximateFloat(kubernetes.Quantity) double")
def as_approximate_float(value: Amount) -> float:
    return float(value.value) if abs(value.value) < 10**300 else float("inf") * (1 if value.value > 0 else -1)


@function("sign(kubernetes.Quantity) int")
def sign(value: Amount) -> int:
    return (value.value > 0) - (value.value < 0)


method("add(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity")(lambda value, other: _sum(value, other.value, other.scale))
method("sub(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity")(lambda value, other: _sum(value, -other.value, other.scale))
method("add(kubernetes.Quantity, int) kubernetes.Quantity")(lambda value, other: _sum(value, Fraction(other), 0))
method("sub(kubernetes.Quantity, int) kubernetes.Quantity")(lambda value, other: _sum(value, Fraction(-other), 0))


def _sum(value: Amount, other: Fraction, scale: int | None) -> Amount:
    return Amount(value.value + other, None if scale is None or value.scale is None else min(scale, value.scale))


_PAIR = ("kubernetes.Quantity, kubernetes.Quantity", "kubernetes.Semver, kubernetes.Semver")


@method("compareTo(EACH) int", each=_PAIR)
def compare(left: Any, right: Any) -> int:
    return int(_key(left) > _key(right)) - int(_key(left) < _key(right))


def _key(value: Any) -> Any:
    return value.value if isinstance(value, Amount) else value


method("isGreaterThan(EACH) bool", each=_PAIR)(lambda left, right: compare(left, right) > 0)
method("isLessThan(EACH) bool", each=_PAIR)(lambda left, right: compare(left, right) < 0)


def version(text: str, lenient: bool = False) -> Version:
    """The version that the text means; if `lenient`, also with a "v" in front, leading zeros or missing parts. Raises EvaluationError."""
    core, plus, build = text.partition("+")
    core, dash, before = core.partition("-")
    if lenient:
        core = _whole_version(core.removeprefix("v"), bool(dash or plus))
    parts = core.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    numbers = [_number(part, name) for part, name in zip(parts, ("Major", "Minor", "Patch"), strict=True)]
    marks = [_mark(part) for part in before.split(".")] if dash else []
    for part in build.split(".") if plus else ():
        if not part or not re.fullmatch(r"[0-9A-Za-z-]+", part):
            raise EvaluationError("Build meta data is empty" if not part else f'Invalid character(s) found in build meta data "{part}"')
    return Version(numbers[0], numbers[1], numbers[2], not marks, tuple(marks))


def _whole_version(core: str, has_more: bool) -> str:
    """The version without leading zeros and with all of its three parts. Raises EvaluationError."""
    parts = [part.lstrip("0") or "0" if part.isdigit() else part for part in core.split(".", 2)]
    if len(parts) < 3 and has_more:
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _number(part: str, name: str) -> int:
    if not part or re.fullmatch("[0-9]+", part) is None:
        raise EvaluationError(f'Invalid character(s) found in {name.lower()} number "{part}"')
    if len(part) > 1 and part[0] == "0":
        raise EvaluationError(f'{name} number must not contain leading zeroes "{part}"')
    return _uint(part)


def _uint(part: str) -> int:
    if len(part) > 20 or int(part) >= 2**64:
        raise EvaluationError(f'strconv.ParseUint: parsing "{part}": value out of range')
    return int(part)


def _mark(part: str) -> tuple[bool, int, str]:
    """The sort key of one pre-release identifier: numbers come first, by value. Raises EvaluationError."""
    if not part or re.fullmatch(r"[0-9A-Za-z-]+", part) is None:
        raise EvaluationError("Prerelease is empty" if not part else f'Invalid character(s) found in prerelease "{part}"')
    if not part.isdigit():
        return True, 0, part
    if len(part) > 1 and part[0] == "0":
        raise EvaluationError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
    return False, _uint(part), ""


@function("semver(string) kubernetes.Semver", "semver(string, bool) kubernetes.Semver", price=by_size)
def semver(text: str, lenient: bool = False) -> Version:
    return version(text, lenient)


function("isSemver(string) bool", "isSemver(string, bool) bool", price=by_size)(lambda text, lenient=False: _can(version, text, lenient))
method("major(kubernetes.Semver) int")(lambda value: int(whole(value.major)))
method("minor(kubernetes.Semver) int")(lambda value: int(whole(value.minor)))
method("patch(kubernetes.Semver) int")(lambda value: int(whole(value.patch)))
