"""What labels, annotations and label selectors may be."""

from collections.abc import Collection, Mapping
from itertools import chain

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, forbidden, invalid, required
from pumice.cluster.apiserver.validation.name_rules import kept, misnamed, named

_ANNOTATIONS_SIZE = 256 * 1024  #: bytes of all keys and values
_SET, _BARE, _NUMBERS = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")


def label_causes(labels: Mapping[str, str], place: str) -> Causes:
    """The causes for refusing labels: their keys and values."""
    return [(place, text) for pair in labels.items() for text in _faults(*pair)]


@kept
def _faults(key: str, value: str) -> tuple[str, ...]:
    return tuple(text for _, text in (*named("label", key, ""), *named("value", value, "")))


def annotation_causes(annotations: Mapping[str, str], place: str) -> Causes:
    found = [(place, f"Invalid value: {compact(key)}: {fault}") for key in annotations for fault in misnamed("label", key.lower())]
    size = sum(map(len, map(str.encode, chain(annotations, annotations.values()))))
    return found if size <= _ANNOTATIONS_SIZE else [*found, (place, f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes")]


def selector_causes(selector: Object | None, place: str) -> Causes:
    found = label_causes((selector or {}).get("matchLabels") or {}, f"{place}.matchLabels")
    for index, term in enumerate((selector or {}).get("matchExpressions") or ()):
        field = f"{place}.matchExpressions[{index}]"
        found += requirement_causes(term, field, (*_SET, *_BARE)) + named("label", term.get("key", ""), f"{field}.key")
        found += value_causes(term, field)
    return found


def requirement_causes(requirement: Object, place: str, operators: Collection[str] = (*_SET, *_BARE, *_NUMBERS)) -> Causes:
    """The causes for refusing a requirement of labels whose values are not those that its operator wants."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator not in operators:
        return [invalid(f"{place}.operator", operator, "not a valid selector operator")]
    if operator in _SET and not values:
        return [required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in _BARE and values:
        return [forbidden(f"{place}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    if operator in _NUMBERS and len(values) != 1:
        return [required(f"{place}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    return []


def value_causes(requirement: Object, place: str) -> Causes:
    values = enumerate(requirement.get("values") or ())
    return [cause for number, value in values for cause in named("value", value, f"{place}.values[{number}]")]
