"""What makes the API server refuse values that several kinds have: label selectors, and numbers that may be percentages."""

from __future__ import annotations

import json
import re
from typing import Any

from pumice.cluster.apiserver.schema import Object

Causes = list[tuple[str, str]]
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")
_SET, _BARE = ("In", "NotIn"), ("Exists", "DoesNotExist")


def selector_causes(selector: Object | None, place: str) -> Causes:
    found: Causes = []
    for index, term in enumerate((selector or {}).get("matchExpressions") or ()):
        field, operator = f"{place}.matchExpressions[{index}]", term.get("operator", "")
        if not term.get("key"):
            found.append((f"{field}.key", "Required value"))
        if operator in _SET and not term.get("values"):
            found.append((f"{field}.values", "Required value: must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in _BARE and term.get("values"):
            found.append((f"{field}.values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        elif operator not in _SET + _BARE:
            found.append((f"{field}.operator", f"Invalid value: {json.dumps(operator)}: not a valid selector operator"))
    return found


def share_causes(spec: Object, fields: tuple[str, ...], place: str) -> Causes:
    """Of fields that hold a number or a percentage."""
    found = ((field, _wrong_with(spec[field])) for field in fields if field in spec)
    return [(f"{place}.{field}", text) for field, text in found if text]


def _wrong_with(value: Any) -> str:
    if isinstance(value, str):
        text = f"Invalid value: {json.dumps(value[:64])}: a valid percent string must be a numeric string followed by an ending '%'"
        return "" if _PERCENTAGE.fullmatch(value) else text
    return "" if value >= 0 else f"Invalid value: {value}: must be greater than or equal to 0"
