"""Rules that the tables of types declare of single fields of the kinds whose validation Kubernetes wrote by hand, in its words.

They stand beside those of `declared_rules`, and are for what has been there before Kubernetes declared such rules:

    name=      a name of a form of `name_rules`, or each item of a list is one; a port may be a number
    one=       one of these; each= the same of every item of a list, which is not told
    least=     the smallest number; most= the largest; within= both
    longest=   so many bytes at most
    alone=     an item * of a list has no others beside it, which are called so
    needed     neither missing nor empty; needed=TEXT says why
    fixed      an update may not change it; fixed=TEXT says so in other words
    once=NAME  it may be set, and not changed then
    distinct=  no two items have the same value of this field
    labels, template   keys and values of labels, also those in the metadata of a template
    terms      requirements about nodes
    share      a number that is not negative, or a percentage; hundred (per cent at most)
    ip, cidr, port, trimmed, absolute

Then come the rules between the fields of a struct, see `struct_rules`. What an update leaves as it is, is not looked at, nor what is in a
field that is `opaque`.
"""

import re
from collections.abc import Callable
from itertools import zip_longest
from threading import RLock
from typing import Any, NamedTuple

from pumice.api import Object
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, duplicates, invalid, outside, unsupported
from pumice.cluster.apiserver.validation.ip_rules import fault_of_cidr, fault_of_ip
from pumice.cluster.apiserver.validation.label_rules import label_causes, requirement_causes, selector_causes
from pumice.cluster.apiserver.validation.name_rules import named_object
from pumice.cluster.apiserver.validation.struct_rules import Between, between

_PERCENTAGE = re.compile(r"[0-9]{1,9}%")

Check = Callable[[Any], Causes]  #: of a value; what is found is after the place of the field


class _Fixed(NamedTuple):
    words: str
    may_be_set: bool

    def text(self, shape: Shape, now: Any) -> str:
        shown = compact(internal(shape, now) if shape.kind == "struct" else now)
        return self.words or f"Invalid value: {shown}: field is immutable"


class _Rule(NamedTuple):
    shown: str  #: how the field is called where a check has found something
    checks: list[Check]
    fixed: _Fixed | None
    inner: Shape | None  #: of the structs in it, if these have rules


class _Ruled(NamedTuple):
    """What there is to check of a struct."""

    fields: dict[str, _Rule]
    needed: list[tuple[str, str]]
    between: Between | None = None


def causes(shape: Shape, value: Object, old: Object | None) -> Causes:
    """The causes for refusing a struct, each with the place in it. Without `old` it is a new one."""
    found: Causes = []
    rules = _ruled(shape)
    for name, now in value.items() if rules.fields else ():
        if (rule := rules.fields.get(name)) is None or now is None:
            continue
        before = None if old is None else old.get(name)
        if old is None or now != before:
            fixed = None if old is None or rule.fixed is None or (rule.fixed.may_be_set and not before) else rule.fixed
            found += [(name, fixed.text(shape.fields[name], now))] if fixed else _field(rule, name, now, before)
    for name, text in rules.needed:
        if not value.get(name) and (old is None or old.get(name)):
            found.append((name, text))
    return found if rules.between is None else found + list(rules.between(value, old))


def _below(name: str, place: str) -> str:
    return f"{name}.{place}" if place else name


def _field(rule: _Rule, name: str, now: Any, before: Any) -> Causes:
    found: Causes = []
    for check in rule.checks if now != "" else ():
        if wrong := check(now):
            found += [(rule.shown + place, text) for place, text in wrong]
    if rule.inner is None:
        return found
    if not isinstance(now, list):
        return found + [(_below(name, place), text) for place, text in causes(rule.inner, now, before)]
    for index, (item, same) in enumerate(zip_longest(now, (before or ())[: len(now)])):
        if item != same and (wrong := causes(rule.inner, item, None)):
            found += [(_below(f"{name}[{index}]", place), text) for place, text in wrong]
    return found


_NOTHING = _Ruled({}, [])
_kept: dict[str, _Ruled] = {}  #: by the name of a struct
_entered: set[str] = set()  #: names of structs that are looked into
_lock = RLock()  #: objects are checked on more than one thread


def _ruled(shape: Shape) -> _Ruled:
    if shape.name not in _kept:
        with _lock:
            _kept[shape.name] = _read_rules(shape)
    return _kept[shape.name]


def _read_rules(shape: Shape) -> _Ruled:
    found = _Ruled({}, [], between(shape))
    for name, field in shape.fields.items():
        words = dict(option.partition("=")[::2] for option in shape.handwritten.get(name, ()))
        if "needed" in words:
            found.needed.append((name, f"Required value: {_spaced(words['needed'])}".removesuffix(": ")))
        fixed = _Fixed(_spaced(words["fixed"]), False) if "fixed" in words else None
        if once := words.get("once"):
            fixed = _Fixed(f'Forbidden: node updates may not change {once} except from "" to valid', True)
        checks = [check for word, option in words.items() if (check := _check(word, option)) is not None]
        if field.name == "meta.v1.LabelSelector":
            checks.append(lambda now: selector_causes(now, ""))
        inner = field.element if field.kind == "list" else field
        if inner is None or inner.kind != "struct" or name == "status" or "opaque" in words or not _has_rules(inner):
            inner = None
        if fixed or checks or inner:
            found.fields[name] = _Rule("labels" if "template" in words else name, checks, fixed, inner)
    return found


def _has_rules(shape: Shape) -> bool:
    """Whether there are rules in a struct. One that is inside itself has none there."""
    if shape.name in _entered:
        return False
    _entered.add(shape.name)
    try:
        return _ruled(shape) != _NOTHING
    finally:
        _entered.discard(shape.name)


def _spaced(text: str) -> str:
    return text.replace("_", " ")


def _check(word: str, option: str) -> Check | None:
    choices = option.split(",")
    match word:
        case "name":
            return lambda now: _names(option, now)
        case "one":
            return lambda now: [cause for place, each in _each(now) for cause in unsupported(place, each, choices)]
        case "each":
            return lambda now: [cause for one in now for cause in unsupported("", one, choices)]
        case "least":
            text = f"must be greater than or equal to {option}"
            return lambda now: [("", f"Invalid value: {now}: {text}")] if now < int(option) else []
        case "most":
            return lambda now: [invalid("", now, f"must be less than or equal to {option}")] if now > int(option) else []
        case "longest":
            return lambda now: [("", f"Too long: may not be more than {option} bytes")] if len(now.encode()) > int(option) else []
        case "alone":
            text = f"if '*' is present, must not specify other {_spaced(option)}"
            return lambda now: [invalid("", now, text)] if "*" in now and len(now) > 1 else []
        case "within":
            low, high = map(int, choices)
            text = f"must be between {low} and {high}, inclusive"
            return lambda now: [] if low <= now <= high else [("", f"Invalid value: {now}: {text}")]
        case "distinct":
            return lambda now: duplicates([each.get(option) for each in now], "", f".{option}")
        case "labels":
            return lambda now: label_causes(now, "")
        case "template":
            return lambda now: label_causes(now.get("labels") or {}, "")
        case _:
            return _PLAIN.get(word)


def _names(form: str, now: str | int | list[str]) -> Causes:
    if isinstance(now, int):
        return outside("", now, 65535)
    return [cause for place, one in _each(now) for cause in named_object(form, one, place)]


def _each(now: Any) -> list[tuple[str, Any]]:
    """A value, or the items of a list, with their places."""
    return [(f"[{index}]", one) for index, one in enumerate(now)] if isinstance(now, list) else [("", now)]


def _terms(items: list[Object]) -> Causes:
    return [cause for index, term in enumerate(items) for cause in requirement_causes(term, f"[{index}]")]


def _texts(fault: Callable[[str], str]) -> Check:
    """A check of one text, or of each in a list."""
    return lambda now: [invalid(place, text, wrong) for place, text in _each(now) if (wrong := fault(text))]


def _trimmed(now: str) -> Causes:
    return [("", f"Invalid value: {compact(now)}: must not have leading or trailing whitespace")] if now != now.strip() else []


def _absolute(now: str) -> Causes:
    return [] if now.startswith("/") else [("", f"Invalid value: {compact(now)}: must be an absolute path")]


def _hundred(now: int | str) -> Causes:
    percent = now.removesuffix("%").lstrip("0") if isinstance(now, str) else ""
    is_more = percent.isdecimal() and (len(percent) > 3 or int(percent) > 100)  # Python reads no number of 5,000 digits
    return [("", f"Invalid value: {compact(now)}: must not be greater than 100%")] if is_more else []


def _port(now: int) -> Causes:
    return outside("", now, 65535) if now else []


def _share(now: int | str) -> Causes:
    if isinstance(now, str):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation "
        return [] if _PERCENTAGE.fullmatch(now) else [invalid("", now[:64], f"{text}is '[0-9]+%')")]
    return [] if now >= 0 else [invalid("", now, "must be greater than or equal to 0")]


def _weight(now: int) -> Causes:
    return [("", f"Invalid value: {now}: must be in the range 1-100")] if outside("", now, 100) else []


_PLAIN: dict[str, Check] = {
    "terms": _terms,
    "ip": _texts(fault_of_ip),
    "cidr": _texts(fault_of_cidr),
    "trimmed": _trimmed,
    "absolute": _absolute,
    "hundred": _hundred,
    "port": _port,
    "share": _share,
    "weight": _weight,
}
