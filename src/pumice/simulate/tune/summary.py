"""What a search came to, in sentences, as the lines of a configuration, and as a table of all that was tried."""

from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path

from pumice.api.plural import counted, plural
from pumice.simulate.measure_units import duration, measured
from pumice.simulate.result_conditions import ResultNumber
from pumice.simulate.result_sentences import of_bounds
from pumice.simulate.tune.advice import FOUND, IN_FORCE, Advice
from pumice.simulate.tune.goal import Days, MeanDifference
from pumice.simulate.tune.space import Space
from pumice.text_table import columns

CONFIGURATION, TRIALS, REPORT = "tuned.conf", "trials.csv", "report.html"
LEAST_CHANGE = 1.0  #: seconds by which a queue's mean wait must have changed to be named


def sentences(advice: Advice) -> Iterator[str]:
    """The result, the honest part first: how many were tried, on what, and what that is worth elsewhere."""
    stopped = sum(trial.stopped for trial in advice.trials)
    of = f"{counted(len(advice.searched), 'period')} of {duration(advice.period_s)}"
    idle = f"; {counted(advice.idle, 'other')} had nothing to gain" if advice.idle else ""
    yield (
        f"{counted(len(advice.trials), 'configuration was', 'configurations were')} tried on {of}, "
        f"of which {counted(stopped, 'was', 'were')} stopped early; "
        f"{len(advice.held)} more {plural(len(advice.held), 'was', 'were')} held back{idle}."
    )
    for reason, count in Counter(trial.given_up for trial in advice.trials if trial.given_up).items():
        yield f"{counted(count, 'of them was', 'of them were')} given up because {reason}, which takes too long to play."
    objective = advice.goal.objective
    if advice.values is None or advice.on_searched is None:
        yield f"Nothing is recommended: none of them has a better {objective} and keeps all conditions."
        return
    yield f"The best of them on the periods that were searched: {objective} {_change(objective, advice.on_searched)}."
    if advice.on_held is not None:
        held = f"{_change(objective, advice.on_held)}, {_luck(objective, advice.on_held)}"
        yield f"On those held back, where it was played once: {objective} {held}."
    if advice.against:
        yield f"Nothing is recommended: {'; '.join(advice.against)}."
    else:
        yield "It is recommended: on the periods held back it is better with 95 % confidence, and keeps every condition."
    yield from of_whole(advice)
    losers = [f"{queue} ({_change(wait, found)})" for queue, wait, found in by_queue(advice) if _is_worse(found)]
    if losers:
        yield f"Longer waits, on the periods held back, in the queues {', '.join(losers)}."


def of_whole(advice: Advice) -> Iterator[str]:
    """The whole workload in one piece, before and after, and how far both are from what no policy goes below."""
    before, after = ({str(summary["seed"]): summary for summary in each} for each in (advice.whole_before, advice.whole_after))
    found = advice.goal.difference(before, after)
    if found is not None:
        yield f"The whole workload in one piece: {advice.goal.objective} {_change(advice.goal.objective, found)}."
    named = [{**summary, "policy": name} for name, each in ((IN_FORCE, before), (FOUND, after)) for summary in each.values()]
    yield from of_bounds(named, advice.bounds)


def by_queue(advice: Advice) -> Iterator[tuple[str, ResultNumber, MeanDifference]]:
    """The mean wait of each queue on the days held back, and how it changed."""
    for queue in sorted({name for summary in advice.before.values() for name in summary["queues"]}):
        wait = ResultNumber(("wait", "mean"), queue)
        found = advice.goal.difference(advice.before, advice.after, wait)
        if found is not None:
            yield queue, wait, found


def _is_worse(found: MeanDifference) -> bool:
    return found.change >= LEAST_CHANGE and (isnan(found.half) or found.change > found.half)


def notes(advice: Advice, space: Space) -> dict[str, str]:
    """A comment for each line that differs: what it was, and, if it is recommended, what it alone is worth on the periods that were
    searched."""
    assert advice.values is not None
    found = {line: space.was(line, advice.values) for line in space.differing(advice.values)}
    objective = advice.goal.objective
    for line, worth in advice.worth.items():
        without, with_it = measured(objective.name, worth.after), measured(objective.name, worth.before)
        found[line] += f"; without this change {objective} would be {without} instead of {with_it}"
    return found


def configuration(advice: Advice, space: Space, command: str) -> str:
    """The configuration that was found, as a file: what it is, then its lines with comments at those that differ."""
    assert advice.values is not None
    head = [f"# Found by: {command}", *(f"# {sentence}" for sentence in sentences(advice))]
    return "\n".join(head) + "\n" + space.text(advice.values, notes(advice, space))


def shadow_command(file: Path) -> str:
    """The command that tries a configuration beside the scheduler in charge; it writes nothing to the cluster."""
    return f"pumice scheduler --shadow --scheduler-conf {file} --enable-metrics"


def rows_of_trials(advice: Advice, space: Space) -> Iterator[tuple[object, ...]]:
    """All that was tried, a row each, below a row of names."""
    measures = shown(advice)
    yield "trial", "state", "periods", *map(str, measures), "broken", "changes"
    for trial in advice.trials:
        changes = [space.lines(trial.values).get(line, f"without {line}").strip() for line in space.differing(trial.values)]
        means = [_mean(advice, trial.days, each) for each in measures]
        state = "stopped" if trial.stopped else "complete"
        yield trial.number, state, len(trial.days), *means, "; ".join(trial.broken), "; ".join(changes)


def shown(advice: Advice) -> list[ResultNumber]:
    """The measures that are told of each configuration: that of the objective, and those of the conditions."""
    return list(dict.fromkeys((advice.goal.objective, *(keep.measured for keep in advice.goal.keeps))))


def _mean(advice: Advice, days: Days, each: ResultNumber) -> float | None:
    found = advice.goal.difference(days, days, each)
    return None if found is None else found.after


def _change(what: ResultNumber, found: MeanDifference) -> str:
    """Both values, and the difference in per cent with its interval."""
    change = f"{measured(what.name, found.after)} instead of {measured(what.name, found.before)}"
    if not found.before:
        return change
    percent, half = 100 * found.change / abs(found.before), 100 * found.half / abs(found.before)
    return f"{change} ({percent:+.0f} %{'' if isnan(half) else f' ± {half:.0f} %'})"


def _luck(what: ResultNumber, found: MeanDifference) -> str:
    """On how many days the value is better, and how easily luck would do as much."""
    better = sum(change > 0 if what.better_if_more else change < 0 for change in found.by_day)
    worse = sum(map(bool, found.by_day)) - better
    chance = f"{100 * found.luck(more=what.better_if_more):.1f} %"
    return f"better in {better} periods and worse in {worse}, which luck alone does with a chance of {chance}"


def queue_table(advice: Advice) -> str:
    """The mean waits of the queues on the days held back."""
    rows = [
        (
            queue,
            measured(wait.name, found.before),
            measured(wait.name, found.after),
            "-" if isnan(found.half) else "± " + measured(wait.name, found.half),
        )
        for queue, wait, found in by_queue(advice)
    ]
    return columns(("QUEUE", "MEAN WAIT IN FORCE", "FOUND", "95 % OF THE DIFFERENCE"), rows)
