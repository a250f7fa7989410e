"""From a workload and a configuration to advice: what was found, what each of its lines is worth, and whether it is recommended.

Luck is kept apart from worth. The days of the workload are drawn into two halves: those that are searched and those that are held back.
Of all configurations that were tried, the best one on the days of the search is reduced to the lines that are worth something there, and
is then played, once and alone, on the days held back. It is recommended only if it is better on these with 95 % confidence, day by day, if
it keeps all conditions there, and if the whole workload in one piece is neither worse nor breaks a condition. What each of its lines is
worth is found out then.

Where nobody is evicted now and nobody may be, what evicts is not searched: it could be of use only by what is forbidden.

Days on which the objective is 0 under the configuration in force take no part: there is nothing to gain. If too few are left, periods
are shorter than a day. A day in which nobody waited when the workload was played as a whole is not played to find that out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random

from pumice.api import InputError, did_you_mean
from pumice.simulate.fault_injection import disturbed
from pumice.simulate.inputs import policy_of
from pumice.simulate.lower_bounds import LowerBounds, bounds_of
from pumice.simulate.scenario import Summary
from pumice.simulate.tune.days import Day, DayPlayed, SearchSetting, WholeRun, days_of, works_of
from pumice.simulate.tune.goal import Days, Goal, MeanDifference
from pumice.simulate.tune.results import TrialResults
from pumice.simulate.tune.search import ConfigurationTrial, SearchEvaluation, search
from pumice.simulate.tune.space import Space, Values

PERIODS_S = (86_400.0, 21_600.0, 3_600.0)  #: the first that gives enough periods
SURE = 0.05  #: the chance of being lucky below which a difference counts
ENOUGH, LEAST = 10, 4  #: periods with something to gain: of half of ENOUGH all signs alike are rarer than SURE
WORTH = 0.005  #: a line that is worth less, as a share of the objective, is left as it was

IN_FORCE, FOUND = "in force", "found"  #: the names of both configurations


@dataclass
class Advice:
    """What a search came to."""

    goal: Goal
    period_s: float
    searched: list[Day]
    held: list[Day]
    idle: int  #: periods in which there was nothing to gain
    trials: list[ConfigurationTrial]
    values: Values | None = None  #: of what was found; None if nothing was better on the days of the search
    worth: dict[str, MeanDifference] = field(default_factory=dict)  #: by line: the objective with it, and without it
    on_searched: MeanDifference | None = None
    on_held: MeanDifference | None = None
    before: Days = field(default_factory=dict)  #: the days held back, under the configuration in force
    after: Days = field(default_factory=dict)  #: and under the one that was found
    whole_before: list[Summary] = field(default_factory=list)  #: the whole workload, by seed
    whole_after: list[Summary] = field(default_factory=list)
    bounds: dict[int, LowerBounds] = field(default_factory=dict)  #: of the whole workload, by seed
    against: list[str] = field(default_factory=list)  #: what speaks against it

    @property
    def recommended(self) -> bool:
        return self.values is not None and not self.against


class Adviser:
    """All that a search needs, and each of its steps."""

    def __init__(self, setting: SearchSetting, space: Space, goal: Goal, results: TrialResults, seeds: int, seed: int) -> None:
        self._setting, self._space, self._goal, self._results = setting, space, goal, results
        self._seeds, self._seed = range(seeds), seed

    def advise(self, trials: int, period_s: float | None = None) -> Advice:
        """Raises InputError."""
        space = self._space
        self._check_jobs()
        wholes = self._wholes(space.start, IN_FORCE)
        if self._goal.forbids_evictions(wholes):
            space = space.without_evictions()
        period_s, days, idle = self._periods(wholes, period_s)
        searched, held = self._split(days)
        evaluation = SearchEvaluation(self._setting, space, self._goal, self._results, searched)
        advice = Advice(self._goal, period_s, searched, held, idle, search(space, evaluation, trials, self._seed), whole_before=wholes)
        complete = [trial for trial in advice.trials if not trial.stopped and not trial.broken and trial.loss < 0]
        advice.bounds = {number: self._bounds(number) for number in self._seeds}
        if complete:
            self._judge(advice, evaluation, min(complete, key=lambda trial: (trial.loss, trial.number)))
        return advice

    def _check_jobs(self) -> None:
        """Raises InputError."""
        by_seed = [works_of(self._setting, number).jobs for number in self._seeds]
        queues = {work.queue for jobs in by_seed for work in jobs}
        if not queues:
            raise InputError("there are no jobs in it", where=f"--workload {self._setting.workload}")
        if len({tuple((work.submit, work.run) for work in jobs) for jobs in by_seed}) < len(by_seed):
            raise InputError("the jobs are the same with every seed, so more seeds say nothing; leave it out", where="--seeds")
        for option, measured in self._goal.measures():
            if measured.queue and measured.queue not in queues:
                hint = did_you_mean(measured.queue, queues)
                raise InputError(f'{measured}: no job is of queue "{measured.queue}"{hint}', where=option)

    def _wholes(self, values: Values, name: str, beside: Sequence[DayPlayed] = ()) -> list[Summary]:
        """The whole workload by seed. `beside` are days that are needed next, so that all processes have something to do."""
        text = self._space.text(values)
        wholes = [WholeRun(self._setting, text, name, seed) for seed in self._seeds]
        return self._results.play([*wholes, *beside])[: len(wholes)]

    def _bounds(self, number: int) -> LowerBounds:
        """What no configuration of the space goes below."""
        works = works_of(self._setting, number)
        gangs = policy_of(self._space.text(self._space.start), IN_FORCE, self._setting.plugins_dir)[0].has_plugin("gang")
        jobs = disturbed(iter(works.jobs), works.workload.faults, number)
        return bounds_of(jobs, works.workload.nodes, whole_gangs=gangs, kill_at_estimate=self._setting.kill_at_estimate)

    # -- days

    def _periods(self, wholes: Sequence[Summary], wanted_s: float | None) -> tuple[float, list[Day], int]:
        """The length of the periods, those in which there is something to gain, the one with most to gain first, and how many others."""
        lengths = (wanted_s,) if wanted_s else PERIODS_S
        for period_s in lengths:
            every = [day for seed, whole in zip(self._seeds, wholes, strict=True) for day in self._days(seed, whole, period_s)]
            hopeful = [day for day in every if self._may_gain(day, wholes)]
            if len(hopeful) < ENOUGH and period_s != lengths[-1]:
                continue
            evaluation = SearchEvaluation(self._setting, self._space, self._goal, self._results, hopeful or every)
            found = [day for day in evaluation.days if self._goal.objective.of(evaluation.before[day.name])]
            if len(found) >= ENOUGH:
                break
        if len(found) < LEAST:
            message = f"{self._goal.objective} is not 0 in {len(found)} periods only; {LEAST} are needed, to search and to check"
            raise InputError(f"{message}. Give a longer workload, fewer nodes, or more --seeds", where="--objective")
        return period_s, found, len(every) - len(found)

    def _days(self, seed: int, whole: Summary, period_s: float) -> list[Day]:
        return days_of(works_of(self._setting, seed), seed, period_s, whole["times"])

    def _may_gain(self, day: Day, wholes: Sequence[Summary]) -> bool:
        """Whether a job of the day waited when the workload was played as a whole, if it is waits that are to become better."""
        objective = self._goal.objective
        if objective.path[0] != "wait":
            return True
        jobs, times = works_of(self._setting, day.seed).jobs, wholes[day.seed]["times"]
        return any(
            day.begin <= work.submit < day.end and start != work.submit and objective.queue in ("", work.queue)
            for work, (start, _) in zip(jobs, times, strict=True)
        )

    def _split(self, days: Sequence[Day]) -> tuple[list[Day], list[Day]]:
        """Days to search and days to hold back: of two days with about as much to gain, one each, by lot."""
        random, searched, held = Random(f"{self._seed}/days"), list[Day](), list[Day]()
        for first in range(0, len(days), 2):
            pair = list(days[first : first + 2])
            random.shuffle(pair)
            searched += pair[:1]
            held += pair[1:]
        return searched, held

    # -- what was found

    def _judge(self, advice: Advice, evaluation: SearchEvaluation, best: ConfigurationTrial) -> None:
        final = self._simplified(evaluation, best)
        advice.values = final.values
        advice.on_searched = self._goal.difference(evaluation.before, final.days)
        texts = [self._space.text(self._space.start), final.text]
        advice.whole_after = self._wholes(final.values, FOUND, evaluation.works(texts, advice.held))
        advice.before, advice.after = evaluation.play(texts, advice.held)
        advice.on_held = self._goal.difference(advice.before, advice.after)
        advice.against = [*objections(advice)]
        if not advice.against:
            advice.worth = dict(self._worth(evaluation, final))

    def _tried(self, evaluation: SearchEvaluation, listed: Sequence[Values], days: Sequence[Day]) -> list[ConfigurationTrial]:
        trials = [ConfigurationTrial(0, values, self._space.text(values)) for values in listed]
        evaluation.judge(trials, days)
        return trials

    def _worth(self, evaluation: SearchEvaluation, final: ConfigurationTrial) -> Iterator[tuple[str, MeanDifference]]:
        """What each line that differs is worth on the days of the search: the objective with it, and without it."""
        lines = self._space.differing(final.values)
        without = self._tried(evaluation, [self._space.reverted(final.values, line) for line in lines], evaluation.days)
        for line, trial in zip(lines, without, strict=True):
            worth = self._goal.difference(final.days, trial.days)
            assert worth is not None
            yield line, worth

    def _simplified(self, evaluation: SearchEvaluation, found: ConfigurationTrial) -> ConfigurationTrial:
        """The configuration without the parts that are worth nothing on the days of the search. Half of the days say which parts these are,
        all of them whether that is so."""
        days, space = evaluation.days, self._space
        some = days[: ceil(len(days) / 2)]
        least = self._tried(evaluation, [found.values], some)[0].loss + WORTH

        def without(values: Values, parts: list[str]) -> Values:
            """The values without as many of these parts as possible: all of them, or else as many as possible of each half."""
            fewer = values
            for part in parts:
                fewer = space.reverted(fewer, part)
            if self._tried(evaluation, [fewer], some)[0].loss <= least:
                return fewer
            half = len(parts) // 2
            return without(without(values, parts[:half]), parts[half:]) if half else values

        parts = space.parts(found.values)
        fewer, whole = self._tried(evaluation, [without(found.values, parts), found.values], days)
        return fewer if fewer.loss <= whole.loss + WORTH else whole


def objections(advice: Advice) -> Iterator[str]:
    """What speaks against recommending what was found, in words."""
    goal, found = advice.goal, advice.on_held
    if found is None or 0.5 ** len(found.by_day) > SURE:
        yield "too few periods were held back to be sure of anything"
    elif found.luck(more=goal.objective.better_if_more) > SURE:
        yield f"on the periods held back {goal.objective} is not better with 95 % confidence"
    yield from (f"on the periods held back it breaks {text}" for text in goal.broken(advice.before, advice.after))
    before, after = ({str(summary["seed"]): summary for summary in each} for each in (advice.whole_before, advice.whole_after))
    if goal.worse(before, after) > 0:
        yield f"{goal.objective} of the whole workload is worse"
    yield from (f"the whole workload breaks {text}" for text in goal.broken(before, after))
