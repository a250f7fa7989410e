"""The search itself: Optuna asks for configurations, simulations of days say what each is worth, and hopeless ones are stopped early.

Configurations come in batches of a fixed size, whatever the number of processes, so that the same seed finds the same. A batch is played on
a few days; the better half is played on more of them, and so on (successive halving), but of those with the same outcome so far only one;
who is left, and better on half of the days than the configuration in force, is played on all days of the search.
Those days come first on which there is most to gain for the work that they are: the objective under the configuration in force, divided
by how often a waiting job was looked at there.

The first third are neighbours of that configuration: one to three knobs are drawn anew. From them on Optuna's sampler (TPE) draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import ceil
from random import Random
from typing import Any

from pumice.api import InputError
from pumice.simulate.scenario import Summary
from pumice.simulate.tune.days import Day, DayPlayed, SearchSetting
from pumice.simulate.tune.goal import Days, Goal
from pumice.simulate.tune.results import TrialResults
from pumice.simulate.tune.space import Knob, Space, Values

BATCH = 8
NEIGHBOURS = 1 / 3  #: of all trials
CHANGED = (1, 1, 2, 3)  #: knobs of a neighbour, as they are drawn
DRAWS = 20  #: of a configuration that was not tried yet
STEPS = (0.125, 0.25, 0.5, 1.0)  #: shares of the days; after each but the last, half of a batch is dropped
PENALTY = 10.0  #: for a condition that is not kept, in multiples of the objective


@dataclass
class ConfigurationTrial:
    """One configuration, and what it is worth on the days on which it was played."""

    number: int
    values: Values
    text: str
    days: dict[str, Summary] = field(default_factory=dict)
    loss: float = 0.0  #: below 0: better than the configuration in force on the same days, as a share of its objective
    broken: dict[str, float] = field(default_factory=dict)
    dropped: bool = False  #: before it was played on all days, as others were better, or one of them the same in effect

    @property
    def stopped(self) -> bool:
        return self.dropped or bool(self.given_up)

    @property
    def given_up(self) -> str:
        """Why a day was not played to its end; empty if all were."""
        return next((summary["given_up"] for summary in self.days.values() if summary.get("given_up")), "")

    @property
    def outcome(self) -> list[tuple[Any, Any]]:
        """All that was measured. Of two trials with the same outcome one says all that there is to say."""
        return [(summary["measures"], summary["queues"]) for summary in self.days.values()]


class SearchEvaluation:
    """What configurations are worth on the days of the search."""

    def __init__(self, setting: SearchSetting, space: Space, goal: Goal, results: TrialResults, days: Sequence[Day]) -> None:
        self._setting, self._space, self._goal, self._results = setting, space, goal, results
        started = self.play([space.text(space.start)], days)[0]

        def gain(day: Day) -> float:
            turns: int = started[day.name]["turns"]
            return abs(goal.objective.of(started[day.name]) or 0.0) / (1 + turns)

        self.days = sorted(days, key=lambda day: (-gain(day), day.name))  #: in the order in which they are played
        self.before: Days = started
        found = goal.difference(started, started)
        if found is None:
            raise InputError(f"no day has a value for {goal.objective} under the configuration in force", where="--objective")
        self._scale = abs(found.before) or 1.0

    def play(self, texts: Sequence[str], days: Sequence[Day]) -> list[dict[str, Summary]]:
        """The summaries of these days by name, for each configuration."""
        works = self.works(texts, days)
        found = {(work.text, work.day.name): summary for work, summary in zip(works, self._results.play(works), strict=True)}
        return [{day.name: found[text, day.name] for day in days} for text in texts]

    def works(self, texts: Sequence[str], days: Sequence[Day]) -> list[DayPlayed]:
        """All of these, those that are most work first, so that no process is left alone with them in the end."""
        return [DayPlayed(self._setting, text, "", day) for day in reversed(days) for text in texts]

    def judge(self, trials: Sequence[ConfigurationTrial], days: Sequence[Day]) -> None:
        """Play the trials on these days, and say what they are worth there."""
        for trial, played in zip(trials, self.play([trial.text for trial in trials], days), strict=True):
            trial.days = played
            trial.broken = self._goal.broken(self.before, played)
            trial.loss = self._goal.worse(self.before, played) / self._scale + sum(PENALTY * (1 + miss) for miss in trial.broken.values())


def search(space: Space, evaluation: SearchEvaluation, count: int, seed: int) -> list[ConfigurationTrial]:
    """All trials, in the order in which they were asked for. Raises InputError."""
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=BATCH))
    study.enqueue_trial(space.start)
    study.tell(_asked(study, space)[0], 0.0)
    for values in neighbours(space, ceil(count * NEIGHBOURS), Random(seed)):
        study.enqueue_trial(values)
    trials: list[ConfigurationTrial] = []
    seen = {space.text(space.start)}
    while len(trials) < count:
        batch = _batch(study, space, seen, len(trials), min(BATCH, count - len(trials)))
        if not batch:
            break  # there are no more configurations
        halve(evaluation, [trial for trial, _ in batch])
        for trial, asked in batch:
            asked.report(trial.loss, len(trial.days))
            study.tell(asked, *((None, optuna.trial.TrialState.PRUNED) if trial.stopped else (trial.loss,)))
        trials += [trial for trial, _ in batch]
    return trials


def _optuna() -> Any:
    try:
        return import_module("optuna")
    except ImportError:
        raise InputError("searches with Optuna, which is not installed: pip install 'pumice[tune]'", where="tune") from None


def _batch(study: Any, space: Space, seen: set[str], first: int, size: int) -> list[tuple[ConfigurationTrial, Any]]:
    """Configurations that were not tried before."""
    batch: list[tuple[ConfigurationTrial, Any]] = []
    for _ in range(DRAWS * size):
        asked, values = _asked(study, space)
        text = space.text(values)
        if text in seen:
            study.tell(asked, state=import_module("optuna").trial.TrialState.FAIL)
            continue
        seen.add(text)
        batch.append((ConfigurationTrial(first + len(batch) + 1, values, text), asked))
        if len(batch) == size:
            break
    return batch


def _asked(study: Any, space: Space) -> tuple[Any, Values]:
    asked = study.ask()

    def suggest(knob: Knob) -> Any:
        if knob.range is None:
            return asked.suggest_categorical(knob.key, knob.choices)
        low, high, log = knob.range
        if knob.whole:
            return asked.suggest_int(knob.key, int(low), int(high), log=log)
        return rounded(asked.suggest_float(knob.key, low, high, log=log))

    return asked, space.chosen(suggest)


def neighbours(space: Space, count: int, random: Random) -> Iterator[Values]:
    """Configurations that differ from the start in a few knobs."""
    for _ in range(count):
        values = dict(space.start)
        for _ in range(random.choice(CHANGED)):
            knob = random.choice([knob for knob in space.knobs if knob.needs(values) and knob.choices != (knob.start,)])
            drawn = {knob.key: drawn_from(knob, random)}
            values = space.chosen(lambda each: (values | drawn).get(each.key, each.start))  # noqa: B023
        yield values


def drawn_from(knob: Knob, random: Random) -> Any:
    """A value of the knob that is not the one of the start, if there is another."""
    if knob.range is None:
        return random.choice([choice for choice in knob.choices if choice != knob.start] or knob.choices)
    low, high, log = knob.range
    drawn = low * (high / low) ** random.random() if log else random.uniform(low, high)
    return round(drawn) if knob.whole else rounded(drawn)


def rounded(value: float) -> float:
    """The value with as many digits as people write."""
    return float(f"{value:.2g}")


def halve(evaluation: SearchEvaluation, trials: Sequence[ConfigurationTrial]) -> None:
    """Play trials on more and more days. After each step but the last, the better half goes on, but of those with the same outcome one;
    once half of the days are played, who is better than the configuration in force; after each step, nobody who was given up."""
    left = list(trials)
    steps = dict.fromkeys(ceil(share * len(evaluation.days)) for share in STEPS)
    for step in steps:
        evaluation.judge(left, evaluation.days[:step])
        left = [trial for trial in left if not trial.given_up]
        if step < len(evaluation.days):
            left.sort(key=lambda trial: (trial.loss, trial.number))
            is_late = 2 * step >= len(evaluation.days)
            places, outcomes = (len(left) + 1) // 2, list[Any]()
            for trial in left:
                trial.dropped = len(outcomes) == places or trial.outcome in outcomes or (is_late and trial.loss >= 0)
                if not trial.dropped:
                    outcomes.append(trial.outcome)
            left = [trial for trial in left if not trial.dropped]
