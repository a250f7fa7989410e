"""What keys and values of labels may be, and what label selectors."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from string import ascii_letters, digits

from pumice.api import Object
from pumice.cluster.apiserver.declared_rules import compact, misnamed
from pumice.cluster.apiserver.field_rules import Causes, missing

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]\Z")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?\Z")
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LETTERS = frozenset(ascii_letters + digits + "-_.")
_SET, _BARE = ("In", "NotIn"), ("Exists", "DoesNotExist")


def label_causes(labels: Mapping[str, str], place: str) -> Causes:
    """The causes for refusing labels: their keys and values."""
    found = key_causes(labels, place)
    for value in labels.values():
        if not _is_label_value(value):
            is_odd = not _LABEL_VALUE.match(value[:1] + value[-1:]) or set(value) - _LETTERS
            rules = (["must be no more than 63 bytes"] if len(value) > 63 else []) + ([_VALUE_RULE] if is_odd else [])
            found += [(place, f"Invalid value: {compact(value)}: {rule}") for rule in rules]
    return found


def key_causes(keys: Mapping[str, str], place: str) -> Causes:
    """The causes for refusing keys of labels or annotations."""
    if all(map(_qualified, keys)):
        return []
    return [(place, f"Invalid value: {compact(key)}: {rule}") for key in keys if not _qualified(key) for rule in misnamed("label", key)]


@lru_cache(maxsize=65536)
def _is_label_value(value: str) -> bool:
    return len(value) <= 63 and _LABEL_VALUE.match(value) is not None


@lru_cache(maxsize=65536)
def _qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.match(prefix.lower()):
        return False
    return _LABEL_NAME.match(name) is not None


def selector_causes(selector: Object | None, place: str) -> Causes:
    found: Causes = []
    for index, term in enumerate((selector or {}).get("matchExpressions") or ()):
        field, operator = f"{place}.matchExpressions[{index}]", term.get("operator", "")
        found += missing(field, term, "key")
        if operator in _SET and not term.get("values"):
            found.append((f"{field}.values", "Required value: must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in _BARE and term.get("values"):
            found.append((f"{field}.values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        elif operator not in _SET + _BARE:
            found.append((f"{field}.operator", f"Invalid value: {json.dumps(operator)}: not a valid selector operator"))
    return found
