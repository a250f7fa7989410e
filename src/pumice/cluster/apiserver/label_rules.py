"""What labels, annotations and label selectors may be."""

from collections.abc import Mapping

from pumice.api import Object
from pumice.cluster.apiserver.field_rules import Causes, compact
from pumice.cluster.apiserver.name_rules import misnamed, named

_ANNOTATIONS_SIZE = 256 * 1024  #: bytes of all keys and values
_SET, _BARE = ("In", "NotIn"), ("Exists", "DoesNotExist")


def label_causes(labels: Mapping[str, str], place: str) -> Causes:
    """The causes for refusing labels: their keys and values."""
    return [cause for key, value in labels.items() for cause in (*named("label", key, place), *named("value", value, place))]


def annotation_causes(annotations: Mapping[str, str], place: str) -> Causes:
    found = [(place, f"Invalid value: {compact(key)}: {fault}") for key in annotations for fault in misnamed("label", key.lower())]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    return found if size <= _ANNOTATIONS_SIZE else [*found, (place, f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes")]


def selector_causes(selector: Object | None, place: str) -> Causes:
    found = label_causes((selector or {}).get("matchLabels") or {}, f"{place}.matchLabels")
    for index, term in enumerate((selector or {}).get("matchExpressions") or ()):
        field, operator, values = f"{place}.matchExpressions[{index}]", term.get("operator", ""), term.get("values") or ()
        if operator in _SET and not values:
            found.append((f"{field}.values", "Required value: must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in _BARE and values:
            found.append((f"{field}.values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        elif operator not in _SET + _BARE:
            found.append((f"{field}.operator", f"Invalid value: {compact(operator)}: not a valid selector operator"))
        found += named("label", term.get("key", ""), f"{field}.key")
        found += [cause for number, value in enumerate(values) for cause in named("value", value, f"{field}.values[{number}]")]
    return found
