"""What is wrong with the policies of a Job for failures and success, whose rules are about other fields of the Job."""

from collections.abc import Iterator, Sequence

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, invalid, required, unsupported

_MOST_RULES = 20


def success_causes(rules: Sequence[Object], completions: int | None) -> Iterator[Cause]:
    place = "successPolicy.rules"
    if not rules:
        yield required(place, "at least one rules must be specified when the successPolicy is specified")
    yield from _too_many(rules, place)
    for index, rule in enumerate(rules if completions is not None else ()):
        yield from _success(rule, completions or 0, f"{place}[{index}]")


def _too_many(rules: Sequence[Object], place: str) -> Iterator[Cause]:
    if len(rules) > _MOST_RULES:
        yield place, f"Too many: {len(rules)}: must have at most {_MOST_RULES} items"


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


def on_failure(spec: Object, policy: Object) -> Iterator[Cause]:
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {each.get("name") for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    rules, place = policy.get("rules") or (), "podFailurePolicy.rules"
    yield from _too_many(rules, place)
    for index, rule in enumerate(rules):
        codes = rule.get("onExitCodes") or {}
        if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield invalid(f"{place}[{index}].action", "FailIndex", "requires the backoffLimitPerIndex to be set")
        if "containerName" in codes and codes["containerName"] not in names:
            text = "must be one of the container or initContainer names in the pod template"
            yield invalid(f"{place}[{index}].onExitCodes.containerName", codes["containerName"], text)
    if spec.get("podReplacementPolicy", "Failed") == "TerminatingOrFailed":
        yield from unsupported("podReplacementPolicy", spec["podReplacementPolicy"], ("Failed",))
