"""What a search is for: an objective, and the conditions that a configuration must keep, both about the jobs of some days.

A value of several days is the mean of the days' values, as `compare` takes the mean over seeds; a day without a value (no job of the queue
came) does not count. Two configurations are compared on the same days.
"""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from pumice.api import InputError
from pumice.simulate.output_columns import DISTRIBUTIONS
from pumice.simulate.policy_comparison import interval
from pumice.simulate.result_conditions import ResultCondition, ResultNumber, condition_of, measured_of

Days = Mapping[str, Mapping[str, Any]]  #: summaries by name of the day

OF_JOBS = (*DISTRIBUTIONS, "evictions", "lost_work", "goodput", "done", "killed")  #: measures of jobs, which belong to a day
NO_MORE_EVICTIONS = "evictions <= 1x"  #: kept unless a condition speaks of evictions or lost work
EXACT = 1e-9  #: what sums of floats differ by, as a share
ALL_SIGNS = 18  #: days of which all choices of signs are looked at; of more, as many choices are drawn


class MeanDifference(NamedTuple):
    """How the mean of some days changed, with half of its 95 % interval, day by day."""

    before: float
    after: float
    half: float  #: nan for a single day
    by_day: tuple[float, ...]

    @property
    def change(self) -> float:
        return self.after - self.before

    def luck(self, *, more: bool) -> float:
        """How likely the values fall (or rise, with `more`) as much as this if both configurations are alike. Each day's difference might
        then as well have had the other sign: the share of all choices of signs whose sum goes as far. So it asks for nothing of how the
        days are spread, and one large day proves nothing."""
        changes = np.array(self.by_day) * (1.0 if more else -1.0)
        if len(changes) <= ALL_SIGNS:
            sums = np.zeros(1)
            for change in changes:
                sums = np.concatenate([sums + change, sums - change])
        else:
            signs = np.random.default_rng(0).integers(0, 2, (2**ALL_SIGNS, len(changes)), dtype=np.int8) * 2 - 1
            sums = signs @ changes
        return float(np.mean(sums >= changes.sum() - EXACT * np.abs(changes).sum()))


class Goal(NamedTuple):
    objective: ResultNumber
    keeps: tuple[ResultCondition, ...]

    def measures(self) -> list[tuple[str, ResultNumber]]:
        """All that is asked for, each with its option."""
        return [("--objective", self.objective), *(("--keep", each.measured) for each in self.keeps)]

    def difference(self, before: Days, after: Days, measured: ResultNumber | None = None) -> MeanDifference | None:
        """The change of the objective, or of another measure, over the days of `after`. None if no day has a value."""
        pairs = [(old, new) for old, new in _pairs(measured or self.objective, before, after) if old is not None and new is not None]
        if not pairs:
            return None
        by_day = tuple(new - old for old, new in pairs)
        return MeanDifference(fmean(old for old, _ in pairs), fmean(new for _, new in pairs), interval([*by_day])[1], by_day)

    def worse(self, before: Days, after: Days) -> float:
        """By how much the objective is worse, in its own unit; below 0 if it is better. 0 if no day has a value."""
        found = self.difference(before, after)
        return 0.0 if found is None else -found.change if self.objective.better_if_more else found.change

    def forbids_evictions(self, before: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a condition allows no evictions, as there were none before."""
        no_more = any(keep.measured.path == ("evictions",) and (keep.is_multiple or not keep.bound) for keep in self.keeps)
        return no_more and not any(summary["measures"]["evictions"] for summary in before)

    def broken(self, before: Days, after: Days) -> dict[str, float]:
        """The conditions that are not kept, each with how far its value is from the bound, as a share of the bound."""
        found = {keep.text: miss for keep in self.keeps if (miss := self._miss(keep, before, after))}
        left = sum(before[day]["measures"][state] - after[day]["measures"][state] for day in after for state in ("done", "killed"))
        return found | ({"every job ends that ends now": float(left)} if left > 0 else {})

    def _miss(self, keep: ResultCondition, before: Days, after: Days) -> float:
        found = self.difference(before, after, keep.measured)
        if found is None:
            return 0.0
        bound = keep.bound * found.before if keep.is_multiple else keep.bound
        if keep.holds(found.after, bound) or abs(found.after - bound) <= EXACT * abs(bound):
            return 0.0
        return max(EXACT, abs(found.after - bound) / max(abs(bound), 1.0))


def goal_of(objective: str, keeps: Iterable[str]) -> Goal:
    """Raises InputError."""
    conditions = [condition_of(text, "--keep", multiples=True) for text in keeps]
    if not any(each.measured.path[0] in ("evictions", "lost_work") for each in conditions):
        conditions.append(condition_of(NO_MORE_EVICTIONS, "--keep", multiples=True))
    goal = Goal(measured_of(objective, "--objective"), tuple(conditions))
    for option, measured in goal.measures():
        if measured.path[0] not in OF_JOBS:
            message = f"{measured.name} is measured over time, and belongs to no day; jobs have {', '.join(OF_JOBS)}"
            raise InputError(message, where=option)
    return goal


def _pairs(measured: ResultNumber, before: Days, after: Days) -> Iterable[tuple[float | None, float | None]]:
    return ((measured.of(before[day]), measured.of(summary)) for day, summary in after.items())
