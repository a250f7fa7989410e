"""Label selectors, written as objects (`matchLabels`, `matchExpressions`) or as strings (`a=b,c in (d, e),!f`).

A selector is a tuple of requirements, all of which must hold. The empty tuple selects everything. A selector that is absent
(None in the API) matches nothing; callers handle this case themselves.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class Requirement(Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: str  #: one of OPERATORS
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        return holds_for(self, labels.get(self.key))


Selector = tuple[Requirement, ...]


def holds_for(requirement: Requirement, value: str | None) -> bool:
    """Whether a label with this value (None: absent) satisfies the requirement."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            left, right = integer(value), integer(requirement.values[0] if len(requirement.values) == 1 else None)
            if left is None or right is None:
                return False
            return left > right if requirement.operator == "Gt" else left < right


def integer(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    return all(requirement.holds(labels) for requirement in selector)


def label_selector(stated: Mapping[str, Any] | None) -> Selector | None:
    """The requirements of a LabelSelector in JSON; None if the selector is absent, so that it matches nothing."""
    if stated is None:
        return None
    equal = tuple(Requirement(key, "In", (value,)) for key, value in (stated.get("matchLabels") or {}).items())
    return equal + requirements(stated.get("matchExpressions"))


def requirements(stated: Iterable[Mapping[str, Any]] | None) -> Selector:
    """The requirements of match expressions in JSON. An expression without an operator never holds; a missing key means an empty one."""
    return tuple(Requirement(each.get("key") or "", each.get("operator") or "", tuple(each.get("values") or ())) for each in stated or ())


def matches_selector(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    found = label_selector(selector)
    return found is not None and matches(found, labels)


def selector_text(selector: Mapping[str, Any]) -> str:
    """The selector as `kubectl get -l` takes it; it may also be the plain map of a service or a replication controller."""
    if not ({"matchLabels", "matchExpressions"} & set(selector)):
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(term.get("values") or ())
        parts.append(
            {"In": f"{term['key']} in ({values})", "NotIn": f"{term['key']} notin ({values})", "Exists": term["key"]}.get(
                term["operator"], f"!{term['key']}"
            )
        )
    return ",".join(parts)


_TERM = re.compile(
    r"\s*(?:(?P<not>!)\s*(?P<absent>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()<>]+)\s*(?:(?P<equal>==?|!=)\s*(?P<value>[^\s,=!()]*)|(?P<compare>[<>])\s*(?P<bound>-?\d+)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|\Z)"
)


def parse_selector(text: str) -> Selector:
    """The requirements of a selector in the form of kubectl's -l. Raises ValueError."""
    found, position, end = [], 0, len(text.rstrip())
    while position < end:
        match = _TERM.match(text, position)
        if match is None:
            raise ValueError(f'"{text}" is not a selector; write one such as "app=web,tier in (a, b),!legacy"')
        found.append(_requirement(match))
        position = match.end()
    return tuple(found)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["not"]:
        return Requirement(match["absent"], "DoesNotExist")
    key = match["key"]
    if match["equal"]:
        return Requirement(key, "NotIn" if match["equal"] == "!=" else "In", (match["value"],))
    if match["compare"]:
        return Requirement(key, "Gt" if match["compare"] == ">" else "Lt", (match["bound"],))
    if match["set"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(key, "In" if match["set"] == "in" else "NotIn", values)
    return Requirement(key, "Exists")
