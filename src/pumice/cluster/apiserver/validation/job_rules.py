"""Rules between fields of Jobs: which modes go with which limits, and what their policies for failures and success may be."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, duplicates, invalid, required, unsupported

_MOST_RULES, _MOST_CODES = 20, 255
_MOST_PARALLEL, _MANY, _MOST_OF_MANY = 100_000, 100_000, 10_000  #: completions above `_MANY` have narrower limits
_OPERATORS, _ACTIONS = ("In", "NotIn"), ("Count", "FailIndex", "FailJob", "Ignore")


def _spec(spec: Object) -> Iterator[Cause]:
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        yield from _on_failure(spec, policy)
    if spec.get("completionMode") == "Indexed":
        yield from _indexed(spec)


def _indexed(spec: Object) -> Iterator[Cause]:
    completions, parallelism, most = (spec.get(field) for field in ("completions", "parallelism", "maxFailedIndexes"))
    if (parallelism or 0) > _MOST_PARALLEL:
        yield invalid("parallelism", parallelism, f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed")
    if most is not None and completions is not None and most > completions:
        yield invalid("maxFailedIndexes", most, "must be less than or equal to completions")
    if (most or 0) > _MOST_PARALLEL:
        yield invalid("maxFailedIndexes", most, f"must be less than or equal to {_MOST_PARALLEL}")
    if (completions or 0) > _MANY and "backoffLimitPerIndex" in spec:
        if most is None:
            yield required("maxFailedIndexes", f"must be specified when completions is above {_MANY}")
        text = f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY} and used with backoff limit per index"
        for field, value in (("parallelism", parallelism), ("maxFailedIndexes", most)):
            if (value or 0) > _MOST_OF_MANY:
                yield invalid(field, value, text)
    rules, place = (spec.get("successPolicy") or {}).get("rules") or (), "successPolicy.rules"
    if "successPolicy" in spec and not rules:
        yield required(place, "at least one rules must be specified when the successPolicy is specified")
    yield from _too_many(rules, _MOST_RULES, place)
    for index, rule in enumerate(rules if completions is not None else ()):
        yield from _success(rule, completions or 0, f"{place}[{index}]")


def _too_many(items: object, most: int, place: str) -> Iterator[Cause]:
    assert isinstance(items, list | tuple)
    if len(items) > most:
        yield place, f"Too many: {len(items)}: must have at most {most} items"


def _success(rule: Object, completions: int, place: str) -> Iterator[Cause]:
    count, indexes, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        yield required(place, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        try:
            total = _counted(indexes, completions)
        except ValueError as error:
            yield invalid(f"{place}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        if count < 0:
            yield invalid(f"{place}.succeededCount", count, "must be greater than or equal to 0")
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid(f"{place}.succeededCount", count, text)
        if indexes is not None and count > total:
            text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            yield invalid(f"{place}.succeededCount", count, text)


def _counted(text: str, completions: int) -> int:
    """How many indexes a text names, such as 1,3-5. Raises ValueError if it is none."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            raise ValueError(
                f"the fragment \"{part}\" violates the requirement that an index interval can have at most two parts separated by '-'"
            )
        low, high = _index(ends[0], completions), _index(ends[-1], completions)
        previous, current = (low, high) if len(ends) == 2 and low >= high else (last, low)
        if previous >= current:
            raise ValueError(f"non-increasing order, previous: {previous}, current: {current}")
        total, last = total + high - low + 1, high
    return total


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)


def _on_failure(spec: Object, policy: Object) -> Iterator[Cause]:
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {each.get("name") for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    rules, place = policy.get("rules") or (), "podFailurePolicy.rules"
    yield from _too_many(rules, _MOST_RULES, place)
    for index, rule in enumerate(rules):
        codes = rule.get("onExitCodes") or {}
        if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield invalid(f"{place}[{index}].action", "FailIndex", "requires the backoffLimitPerIndex to be set")
        if "containerName" in codes and codes["containerName"] not in names:
            text = "must be one of the container or initContainer names in the pod template"
            yield invalid(f"{place}[{index}].onExitCodes.containerName", codes["containerName"], text)
    if spec.get("podReplacementPolicy", "Failed") == "TerminatingOrFailed":
        yield from unsupported("podReplacementPolicy", spec["podReplacementPolicy"], ("Failed",))


def _valid(choices: tuple[str, ...]) -> str:
    quoted = " ".join(f'"{each}"' for each in choices)
    return f"valid values: [{quoted}]"


def _failure(rule: Object) -> Iterator[Cause]:
    codes, conditions = "onExitCodes" in rule, rule.get("onPodConditions") or ()
    if not rule.get("action"):
        yield required("action", _valid(_ACTIONS))
    yield from _too_many(conditions, _MOST_RULES, "onPodConditions")
    if codes is bool(conditions):
        wrong = "both OnExitCodes and OnPodConditions is not supported" if codes else "one of OnExitCodes and OnPodConditions is required"
        yield "", f"Invalid value: specifying {wrong}"


def _codes(codes: Object) -> Iterator[Cause]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    if not operator:
        yield required("operator", _valid(_OPERATORS))
    if not values:
        yield invalid("values", values, "at least one value is required")
    yield from _too_many(values, _MOST_CODES, "values")
    for index, value in enumerate(values if operator == "In" else ()):
        if value == 0:
            yield invalid(f"values[{index}]", 0, "must not be 0 for the In operator")
    yield from duplicates(values, "values")
    if values != sorted(values):
        yield invalid("values", values, "must be ordered")


CHECKS = {
    "JobSpec": _spec,
    "PodFailurePolicyOnExitCodesRequirement": _codes,
    "PodFailurePolicyRule": _failure,
}
