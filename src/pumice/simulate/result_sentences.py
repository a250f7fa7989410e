"""Results of simulations in sentences: what a run was like, and which of several policies is better in what, and how sure that is.

A difference between policies is sure if its 95 % interval does not contain 0. Without several seeds there is no interval. Where every seed
gave the same, as with a workload that is not drawn, more seeds say nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from statistics import fmean
from typing import Any

from pumice.api.plural import plural
from pumice.simulate.lower_bounds import MEASURES, LowerBounds
from pumice.simulate.measure_units import MEANINGS, duration

LEAST_PERCENT = 0.05  #: what is shown as 0
NOISE = 1e-9  #: what sums of floats differ by, as a share
Row = Mapping[str, Any]  #: of `policy_comparison.table`


def of_run(summary: Mapping[str, Any]) -> str:
    """What the run was like, in a few sentences."""
    measures = summary["measures"]
    wait, jobs = measures.get("wait") or {}, measures["jobs"]
    if not jobs:
        return "No jobs were simulated."
    never = measures.get("waiting", 0)
    started = f"{jobs - never:,} {plural(jobs - never, 'job')}{' that started' if never else ''}"
    sentences = []
    if wait.get("max") == 0:
        sentences = [f"None of the {started} waited."]
    elif wait.get("max") is not None:
        half = f"waited at most {duration(wait['p50'])}" if wait["p50"] else "did not wait"
        sentences = [f"Half of the {started} {half}, one in twenty waited {duration(wait['p95'])} or longer."]
    used = [f"{100 * share:.0f} % of the {name.upper()}s" for name in ("gpu", "cpu") if (share := measures["utilisation"].get(name))]
    sentences += [f"{' and '.join(used)} were in use on average."] if used else []
    if never:
        sentences.append(f"{never:,} {plural(never, 'job')} never started.")
    if measures["evictions"]:
        sentences.append(f"{measures['evictions']:,} {plural(measures['evictions'], 'pod was', 'pods were')} evicted.")
    return " ".join(sentences)


def of_policies(rows: Iterable[Row]) -> list[str]:
    """One sentence for each policy that is compared with the first."""
    listed = list(rows)
    first = listed[0]["policy"] if listed else ""
    others = dict.fromkeys(row["policy"] for row in listed if row["policy"] != first)
    return [_sentence(policy, first, [row for row in listed if row["policy"] == policy and "difference" in row]) for policy in others]


def of_bounds(summaries: Sequence[Mapping[str, Any]], bounds: Mapping[int, LowerBounds]) -> list[str]:
    """One sentence for each lower bound that says something: how many times it each policy reached, in the mean over the seeds. A policy
    is left out if the bound does not hold for what it did: it left jobs, or it evicted pods and the bound is one of waits."""
    found = []
    for measure in MEASURES:
        reached: dict[str, list[tuple[float, float] | None]] = {}
        for summary in summaries:
            reached.setdefault(summary["policy"], []).append(bounds[summary["seed"]].of(measure, summary["measures"]))
        whole = {policy: [pair for pair in pairs if pair] for policy, pairs in reached.items() if all(pairs)}
        if whole:
            bound = fmean(pair[1] for pair in next(iter(whole.values())))
            times = [f"{policy} {fmean(pair[0] for pair in pairs) / bound:.3g} times the bound" for policy, pairs in whole.items()]
            text = f"{'' if measure == 'makespan' else 'mean '}{measure}"
            found.append(f"No policy has a {text} below {duration(bound)}: {', '.join(times)}.")
    return found


def of_left(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """One sentence for each policy under which jobs did not end: what is said of the others is not said of these."""
    left, jobs = Counter[str](), Counter[str]()
    for summary in summaries:
        policy, measures = summary["policy"], summary["measures"]
        left[policy] += measures["waiting"] + measures["running"]
        jobs[policy] += measures["jobs"]
    rest = "waits are those of jobs that started, turnarounds, slowdowns and the makespan those of jobs that ended"
    return [f"Under {policy} {count:,} of {jobs[policy]:,} jobs did not end: its {rest}." for policy, count in left.items() if count]


def _sentence(policy: str, first: str, rows: Sequence[Row]) -> str:
    found: dict[str, list[str]] = {"better": [], "worse": [], "unsure": [], "equal": []}
    for row in rows:
        judged = _judged(row)
        found[judged].append(f"{MEANINGS[row['measure']].text}{f' ({change(row)})' if judged in ('better', 'worse') else ''}")
    how_sure = "sure at 95 %"
    if all(isnan(row["difference_interval"]) for row in rows):
        how_sure = "one seed, so how sure that is is not known; --seeds 10 tells"
    elif not any(row["interval"] or row["difference_interval"] for row in rows):
        how_sure = "every seed gave the same, so how sure that is is not known"
    parts = [f"{word} in {', '.join(found[word])}" for word in ("better", "worse") if found[word]]
    sure = [f"{' and '.join(parts)} ({how_sure})"] if parts else []
    unsure = [f"no sure difference in {', '.join(found['unsure'])}"] if found["unsure"] else []
    equal = [f"the same in {', '.join(found['equal'])}"] if found["equal"] else []
    return f"{policy} against {first}: {'; '.join([*sure, *unsure, *equal])}."


def _judged(row: Row) -> str:
    difference, half = row["difference"], row["difference_interval"]
    if abs(difference) <= NOISE * abs(row["mean"]) and not half > NOISE * abs(row["mean"]):
        return "equal"
    if not isnan(half) and abs(difference) <= half:
        return "unsure"
    return "better" if (difference < 0) == MEANINGS[row["measure"]].lower_is_better else "worse"


def change(row: Row) -> str:
    """The difference of a row from the first policy in per cent, with its interval; `-` for the first policy itself."""
    if "difference" not in row:
        return "-"
    if row["difference_percent"] is None:
        return "was 0" if row["difference"] else "0 %"
    percent, half = row["difference_percent"], row["difference_percent_interval"]
    return _rounded(percent, "+") + ("" if isnan(half) or half < LEAST_PERCENT else f" ± {_rounded(half)}")


def _rounded(percent: float, sign: str = "") -> str:
    return "0 %" if abs(percent) < LEAST_PERCENT else f"{percent:{sign}.2g} %" if abs(percent) < 10 else f"{percent:{sign},.0f} %"
