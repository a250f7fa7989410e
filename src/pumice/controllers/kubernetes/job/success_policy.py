"""The successPolicy of a Job: when it has succeeded before all its pods have."""

from collections.abc import Collection

from pumice.api import Object, spec_of
from pumice.api.integers import index_set


def success_rule(job: Object, done: Collection[int]) -> int | None:
    """The number of the first rule of the successPolicy that is met; None if none is."""
    for number, rule in enumerate((spec_of(job).get("successPolicy") or {}).get("rules") or ()):
        named = index_set(rule["succeededIndexes"]) if rule.get("succeededIndexes") else None
        succeeded = len(done) if named is None else len(named.intersection(done))
        enough = rule.get("succeededCount")
        if succeeded >= (int(enough) if enough is not None else len(named or ())):
            return number
    return None
