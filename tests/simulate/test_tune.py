"""pumice tune: what it asks for, how it searches, and when it recommends what it found."""

from __future__ import annotations

import csv
import html
import os
import random
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cli.tune import in_force, tune
from pumice.extensions import actions, plugins
from pumice.simulate.inputs import NAMED, policy_of
from pumice.simulate.result_conditions import ResultNumber
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.tune.advice import Advice, objections
from pumice.simulate.tune.days import DayPlayed, SearchSetting, WholeRun, days_of, works_of
from pumice.simulate.tune.goal import NO_MORE_EVICTIONS, goal_of
from pumice.simulate.tune.report import front
from pumice.simulate.tune.results import TrialResults
from pumice.simulate.tune.search import ConfigurationTrial, SearchEvaluation, drawn_from, halve
from pumice.simulate.tune.space import OFF, Space
from pumice.simulate.tune.summary import notes
from pumice.simulate.worker_processes import Crew
from tests.recording.week import record_week

#: each hour is like the others: a large job waits for small ones to end, and small ones that come behind it wait with it
PAGE = """\
duration: 10h
nodes: 1x4gpu
jobs:
- {name: small, arrivals: {every: 10m}, run: 14m, request: {nvidia.com/gpu: 1}, queue: small}
- {name: large, arrivals: {every: 60m}, run: 15m, request: {nvidia.com/gpu: 4}, queue: large}
"""
FIFO = NAMED["FIFO"]
NEWLINE = b"\n"


@pytest.fixture
def page(tmp_path: Path) -> str:
    (tmp_path / "page.yaml").write_text(PAGE)
    return f"yaml:{tmp_path / 'page.yaml'}"


def tuned(page: str, *more: str) -> Result:
    words = ["--workload", page, "--objective", "mean(wait, queue=small)", "--period", "1h", "--processes", "1", *more]
    return CliRunner().invoke(tune, words, catch_exceptions=False)


# -- what is asked for


@pytest.mark.parametrize(
    "objective, keep, message",
    [
        ("p95(waits)", "evictions <= 1", '--objective: \'p95(waits)\', column 5: "waits" is no distribution; did you mean "wait"?'),
        ("wait", "evictions <= 1", "--objective: 'wait', column 1: \"wait\" is no number of a simulation; known: mean(wait), p50(wait), "),
        ("goodput", "evictions <= 1", '"goodput" is no number of a simulation; known: goodput.cpu, goodput.memory, goodput.gpu'),
        ("p95(wait)", "evictions.gpu <= 1", "--keep: 'evictions.gpu <= 1', column 1: \"evictions.gpu\" is no number of a simulation"),
        ("p95(wait) < 1h", "evictions <= 1", "--objective: 'p95(wait) < 1h', column 11: an objective has no bound; conditions are given"),
        ("p95(wait) and more", "evictions <= 1", "--objective: 'p95(wait) and more', column 1: write such as 'p95(wait, queue=team-a)'"),
        ("mean(fairness)", "evictions <= 1", "--objective: fairness.mean is measured over time, and belongs to no day; jobs have wait, "),
        (
            "p95(wait)",
            "mean(wait) <= 1.02y",
            "--keep: 'mean(wait) <= 1.02y', column 15: \"1.02y\" is no number, per cent, duration or multiple",
        ),
        ("p95(wait)", "utilisation.gpu >= 1x", "--keep: utilisation.gpu is measured over time"),
    ],
)
def test_a_wrong_objective_or_condition_names_option_and_column(objective: str, keep: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        goal_of(objective, [keep])
    assert message in str(raised.value)


def test_an_assertion_knows_no_multiples() -> None:
    from pumice.simulate.result_conditions import condition_of

    with pytest.raises(InputError, match='"2x" is no number, per cent or duration'):
        condition_of("mean(wait) < 2x")


def day(wait: float, evictions: int = 0, done: int = 9) -> dict[str, object]:
    return {"measures": {"wait": {"mean": wait}, "evictions": evictions, "done": done, "killed": 0}, "queues": {}}


def test_a_goal_compares_day_by_day_and_keeps_what_it_was_told_and_that_nobody_starves() -> None:
    goal = goal_of("mean(wait)", ["mean(wait) <= 1.5x", "evictions <= 3"])
    before = {"1": day(100), "2": day(200), "3": day(300)}
    found = goal.difference(before, {"1": day(90), "2": day(180), "3": day(290)})
    assert found is not None and (found.before, found.by_day) == (200, (-10, -20, -10)) and found.change == pytest.approx(-40 / 3)
    assert found.half == pytest.approx(14.34, abs=0.01)
    assert goal.worse(before, {"1": day(90)}) == -10
    assert goal.broken(before, {"1": day(150, evictions=3)}) == {}
    assert [*goal.broken(before, {"1": day(151, evictions=4, done=8)})] == [
        "mean(wait) <= 1.5x",
        "evictions <= 3",
        "every job ends that ends now",
    ]
    assert goal_of("mean(wait)", []).keeps[0].text == NO_MORE_EVICTIONS
    assert goal_of("goodput.gpu", []).worse({"1": day(1)}, {"1": day(2)}) == 0


def test_luck_is_the_share_of_all_choices_of_signs_that_go_as_far() -> None:
    goal = goal_of("mean(wait)", [])

    def luck(changes: list[float], *, more: bool = False) -> float:
        before = {str(number): day(100) for number in range(len(changes))}
        found = goal.difference(before, {str(number): day(100 + change) for number, change in enumerate(changes)})
        assert found is not None
        return found.luck(more=more)

    assert luck([-1, -2, -3]) == 1 / 8 and luck([1, 2, 3]) == 1 and luck([1, 2, 3], more=True) == 1 / 8
    assert luck([0, 0]) == 1 and luck([1, -9, -1]) == 3 / 8  # the sums -9 (twice) and -11 of eight
    many = [-1.0] * 15 + [1.0] * 9  # so many that choices are drawn; the binomial distribution says 0.154
    assert luck(many) == pytest.approx(0.154, abs=0.005)


def test_where_nobody_may_be_evicted_what_evicts_is_not_searched() -> None:
    space = Space(NAMED["volcano"], "volcano", plugins(), actions())
    quiet, evicting = day(1), day(1, evictions=1)
    assert goal_of("mean(wait)", []).forbids_evictions([quiet]) and goal_of("mean(wait)", ["evictions <= 0"]).forbids_evictions([quiet])
    assert not goal_of("mean(wait)", []).forbids_evictions([quiet, evicting])
    assert not goal_of("mean(wait)", ["evictions <= 5"]).forbids_evictions([quiet])
    fewer = space.without_evictions()
    draws = random.Random(1)
    assert {fewer.chosen(lambda knob: drawn_from(knob, draws))["evicted by"] for _ in range(20)} == {""} and len(
        {knob.key for knob in space.knobs}
    ) == len(fewer.knobs)


# -- days


def test_the_days_of_a_workload_have_the_waits_of_the_whole_workload_in_one_piece(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(PAGE.replace("gpu: 4", "gpu: 1").replace("every: 10m", "every: 3m"))
    setting = SearchSetting(page, None, None)
    whole = WholeRun(setting, FIFO, "", 0).play()
    works = works_of(setting, 0)
    days = days_of(works, 0, 3600.0, whole["times"])
    assert len(days) == 10 and any(runs for day in days for _, _, runs in day.carried) and any(not runs for *_, runs in days[-1].carried)
    for day in days:
        waits = [
            start - job.submit for job, (start, _) in zip(works.jobs, whole["times"], strict=True) if day.begin <= job.submit < day.end
        ]
        played = DayPlayed(setting, FIFO, "", day).play()["measures"]
        assert played["jobs"] == played["done"] == len(waits)
        assert played["wait"]["mean"] == pytest.approx(sum(waits) / len(waits), rel=0.02, abs=2)


@pytest.mark.parametrize("name, evicts", [("FIFO", False), ("preempt", True)])
def test_once_nothing_more_changes_what_is_measured_the_day_is_over(
    page: str, monkeypatch: pytest.MonkeyPatch, name: str, evicts: bool
) -> None:
    text = NAMED["volcano"].replace("backfill", "backfill, preempt") if evicts else NAMED[name]
    setting = SearchSetting(page, None, None)
    days = days_of(works_of(setting, 0), 0, 3600.0, WholeRun(setting, FIFO, "", 0).play()["times"])
    for day in days[3:6]:
        played = DayPlayed(setting, text, "", day).play()
        with monkeypatch.context() as patched:
            patched.setattr(
                "pumice.simulate.tune.days.Habits", lambda measured_until, keeps_places, tells_reasons, **habits: Habits(**habits)
            )
            wholly = DayPlayed(setting, text, "", day).play()
        unread: dict[str, object] = {"turns": 0, "longest": []}
        assert wholly | unread == played | unread and played["measures"]["jobs"] == played["measures"]["done"]
        assert played["turns"] < wholly["turns"]


def test_hours_in_which_nobody_waited_are_not_played(page: str, tmp_path: Path) -> None:
    idle = "- {name: idle, arrivals: {at: [13h]}, run: 1m, request: {nvidia.com/gpu: 1}, queue: small}\n"
    counted = PAGE.replace("duration: 10h", "duration: 14h").replace("every: 10m}", "every: 10m}, count: 60")
    (tmp_path / "page.yaml").write_text(counted.replace("every: 60m}", "every: 60m}, count: 10") + idle)
    found = tuned(page, "--conf", "FIFO", "--trials", "1", "--out", str(tmp_path / "out"))
    assert "1 other had nothing to gain" in found.stdout
    entries = [msgspec.json.decode(line) for line in (tmp_path / "out" / "played.jsonl").read_bytes().splitlines()]
    assert {"0/9"} <= {entry["summary"]["seed"] for entry in entries} <= {0, *(f"0/{hour}" for hour in range(11))}


@pytest.mark.parametrize(
    "name, few, most, why",
    [
        ("FIFO", "FEW", "MOST_EVICTIONS", "pods were evicted again and again"),
        ("conservative", "FEW_PROMISES", "MOST_PROMISES", "so many jobs waited that were all promised room in each cycle"),
    ],
)
def test_a_day_that_would_take_too_long_is_given_up(
    page: str, monkeypatch: pytest.MonkeyPatch, name: str, few: str, most: str, why: str
) -> None:
    setting = SearchSetting(page, None, None)
    times = WholeRun(setting, FIFO, "", 0).play()["times"]
    last = days_of(works_of(setting, 0), 0, 3600.0, times)[-1]
    assert not DayPlayed(setting, NAMED[name], "", last).play()["given_up"]
    monkeypatch.setattr(f"pumice.simulate.tune.days.{few}", -1)
    monkeypatch.setattr(f"pumice.simulate.tune.days.{most}", 0)
    played = DayPlayed(setting, NAMED[name], "", last).play()
    assert played["measures"]["done"] == 0 and played["given_up"] == why


def test_how_many_were_given_up_and_why_is_told(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.simulate.tune.days.FEW_PROMISES", 0)
    monkeypatch.setattr("pumice.simulate.tune.days.MOST_PROMISES", 0)
    found = tuned(page, "--conf", "FIFO", "--trials", "16", "--out", str(tmp_path / "out"))
    assert re.search(r"\d+ of them (was|were) given up because so many jobs waited that were all promised room in each cycle", found.output)
    with (tmp_path / "out" / "trials.csv").open(encoding="utf-8") as file:
        given_up = [row for row in csv.DictReader(file) if "conservative" in row["changes"]]
    assert given_up and all(row["state"] == "stopped" for row in given_up)


# -- configurations


@pytest.mark.parametrize("name", ["volcano", "EASY"])
def test_every_configuration_of_the_space_is_valid_and_each_line_can_be_taken_back(name: str) -> None:
    space, draws = Space(NAMED[name], name, plugins(), actions()), random.Random(1)
    assert policy_of(space.text(space.start), name)[0].choices == policy_of(NAMED[name], name)[0].choices
    for _ in range(60):
        values = space.chosen(lambda knob: drawn_from(knob, draws))
        policy, warnings = policy_of(space.text(values), "drawn")
        assert not warnings and policy.has_plugin("gang")
        for line in space.differing(values):
            assert space.was(line, values)
            values = space.reverted(values, line)
        assert space.text(values) == space.text(space.start)


def test_what_the_configuration_says_of_itself_stays() -> None:
    text = """\
actions: "enqueue, reclaim, allocate, backfill, preempt, shuffle"
configurations:
- {name: enqueue, arguments: {some: 1}}
tiers:
- plugins:
  - {name: priority}
  - {name: gang, enablePreemptable: false}
  - {name: drf, enableHierarchy: true}
- plugins:
  - {name: binpack, arguments: {binpack.weight: 99}}
metrics: {type: none}
"""
    space = Space(text, "conf", plugins(), actions())
    assert space.text(space.start).splitlines()[0] == 'actions: "enqueue, reclaim, allocate, backfill, preempt, shuffle"'
    assert "    enablePreemptable: false" in space.text(space.start) and 'metrics: {"type":"none"}' in space.text(space.start)
    knobs = {knob.key: knob for knob in space.knobs}
    assert "plugin drf" not in knobs and "plugin gang" not in knobs and knobs["plugin binpack"].choices == (OFF, "tier 2")
    assert knobs["binpack binpack.weight"].range == (0, 99, False)
    changed = space.reverted(space.start | {"evicted by": "preempt", "evicted": "before they are placed"}, "none")
    assert space.lines(changed)["actions"] == 'actions: "enqueue, preempt, allocate, backfill, shuffle"'
    without = space.chosen(lambda knob: OFF if knob.key == "plugin binpack" else knob.start)
    assert space.differing(without) == ["plugin binpack"]
    assert space.text(without, {"plugin binpack": "was in tier 2"}).startswith("# without plugin binpack: was in tier 2\n")


def test_profiles_of_kube_scheduler_are_not_searched(page: str) -> None:
    with pytest.raises(InputError, match="tune changes configurations with `actions` and `tiers`"):
        tuned(page, "--conf", "kube-scheduler")


# -- the search


def test_what_is_better_on_other_days_too_is_recommended_with_the_worth_of_each_line(page: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--conf", "FIFO", "--trials", "8", "--out", str(out))
    found = tuned(page, *words)
    assert "8 configurations were tried on " in found.stdout and "It is recommended" in found.stdout
    text = (out / "tuned.conf").read_text()
    policy, warnings = policy_of(text, "tuned.conf")
    assert not warnings and policy.has_plugin("gang")
    changed = [line for line in text.splitlines() if not line.startswith("#") and "  # " in line]
    assert changed and all("; without this change mean(wait, queue=small) would be" in line for line in changed)
    assert f"pumice scheduler --shadow --scheduler-conf {out / 'tuned.conf'}" in found.stdout
    assert "The whole workload in one piece: mean(wait, queue=small) " in found.stdout
    assert "No policy has a mean turnaround below " in found.stdout and "times the bound" in found.stdout
    report = (out / "report.html").read_text()
    assert f"<pre>{html.escape(text)}</pre>" in report
    assert "held-back period by held-back period" in report and '"title":"Mean wait by queue"' in report
    rows = [*csv.DictReader((out / "trials.csv").read_text().splitlines())]
    assert [row["trial"] for row in rows] == [str(number) for number in range(1, 9)]
    assert sorted(row["state"] for row in rows) == ["complete", *["stopped"] * 7], "halved three times"
    # the same seed finds the same: also in several processes, after it was interrupted in the middle of a line
    kept = out / "played.jsonl"
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:-12]) + lines[-12][:10])
    again = tuned(page, *words, "--resume", "--processes", "2")
    assert again.stdout == found.stdout and again.stderr.count(": done") == 12
    assert (out / "tuned.conf").read_text() == text


def test_of_configurations_that_come_to_the_same_only_one_is_played_on(page: str) -> None:
    """On the only node binpack changes nothing. So the place of the second goes to the third, though that is worse."""
    setting, space = SearchSetting(page, None, None), Space(FIFO, "FIFO", plugins(), actions())
    days = days_of(works_of(setting, 0), 0, 3600.0, WholeRun(setting, FIFO, "", 0).play()["times"])
    greedy, packed = {"in-order backfill": "greedy"}, {"plugin binpack": "tier 1"}
    drawn = [space.chosen(lambda knob: each.get(knob.key, knob.start)) for each in (greedy, greedy | packed, {}, packed)]  # noqa: B023
    trials = [ConfigurationTrial(number, values, space.text(values)) for number, values in enumerate(drawn, 1)]
    with Crew(1) as crew:
        halve(SearchEvaluation(setting, space, goal_of("mean(wait, queue=small)", []), TrialResults(crew, None), days), trials)
    assert [(len(trial.days), trial.stopped) for trial in trials] == [(10, False), (2, True), (3, True), (2, True)]


def test_what_is_only_lucky_is_not_recommended_and_that_is_said(page: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = tuned(page, "--conf", "FIFO", "--out", str(out), "--trials", "2", "--keep", "max(wait) <= 0.0001x")
    assert "Nothing is recommended" in found.stdout and found.exit_code == 0 and "\nactions" not in found.stdout
    report = (out / "report.html").read_text()
    with (out / "trials.csv").open(encoding="utf-8") as file:
        assert {row["state"] for row in csv.DictReader(file)} == {"stopped"}, (
            "what is not better on half of the periods is not played on all"
        )
    assert "All that was tried" in report and re.search(r"<td>[0-9.]+ min[^<]*</td>", report), "values have units"
    assert not (out / "tuned.conf").exists()


def test_the_front_is_the_best_value_up_to_each_value_of_the_first_condition() -> None:
    goal = goal_of("mean(wait)", ["evictions <= 9"])
    trials = [
        ConfigurationTrial(1, {}, "", {"1": day(80, evictions=2)}),
        ConfigurationTrial(2, {}, "", {"1": day(90, evictions=4)}),
        ConfigurationTrial(3, {}, "", {"1": day(60, 7)}),
    ]
    stopped = ConfigurationTrial(4, {}, "", {"1": day(1)}, dropped=True)
    (chart,) = front(Advice(goal, 1.0, [], [], 0, [*trials, stopped]))
    assert (chart["title"], chart["x"], chart["series"]) == (
        "mean(wait) against evictions",
        [2, 4, 7],
        [{"name": "mean(wait)", "y": [80, 80, 60]}],
    )


def test_what_is_not_recommended_says_what_its_lines_were_and_not_what_they_are_worth() -> None:
    space = Space(NAMED["volcano"], "volcano", plugins(), actions())
    values = space.reverted(space.start | {"let in by enqueue": False}, "none")
    assert notes(Advice(goal_of("mean(wait)", []), 1.0, [], [], 0, [], values), space) == {"actions": 'was "enqueue, allocate, backfill"'}


BROKEN = "on the periods held back it breaks evictions <= 1x"
UNSURE = "on the periods held back mean(wait) is not better with 95 % confidence"


@pytest.mark.parametrize(
    "after, whole, expected",
    [
        ([80, 180, 275, 399, 499], 0, []),
        ([99, 199, 299, 399, 1], 0, []),  # all better: that one of them is much better proves nothing against it
        ([101, 201, 299, 399, 1], 0, [UNSURE]),  # much better in the mean, by a single day
        ([90, 180, 290, 390], 0, ["too few periods were held back to be sure of anything"]),
        ([80, 180, 275, 399, 499], 1, ["mean(wait) of the whole workload is worse"]),
        ([0, 210, 270, 400, 500], 0, [UNSURE, BROKEN]),
    ],
)
def test_better_on_the_days_held_back_is_a_matter_of_95_per_cent_and_of_every_condition(
    after: list[float], whole: float, expected: list[str]
) -> None:
    days = {str(number): day(wait) for number, wait in enumerate((100.0, 200.0, 300.0, 400.0, 500.0)[: len(after)])}
    found = {str(number): day(wait, evictions=number == 1 and wait > 205) for number, wait in enumerate(after)}
    goal = goal_of("mean(wait)", [])
    advice = Advice(goal, 1.0, [], [], 0, [], {}, before=days, after=found, on_held=goal.difference(days, found))
    advice.whole_before, advice.whole_after = [{"seed": 0, **day(5)}], [{"seed": 0, **day(5 + whole)}]
    assert [*objections(advice)] == expected


def test_a_recording_begins_with_its_own_configuration(tmp_path: Path) -> None:
    record_week(tmp_path)
    text, where = in_force(f"recording:{tmp_path}", None)
    assert "preempt" in Space(text, where, plugins(), actions()).text({**Space(text, where, plugins(), actions()).start})
    assert where == f"configuration of {tmp_path}" and in_force(f"recording:{tmp_path}", "EASY") == (NAMED["EASY"], "EASY")


def test_too_little_to_compare_is_said(page: str) -> None:
    with pytest.raises(InputError, match=r"is not 0 in 1 periods only; 4 are needed, to search and to check. Give a longer workload"):
        tuned(page, "--conf", "FIFO", "--period", "1d")
    with pytest.raises(InputError, match=r"no day has a value for mean\(wait, queue=small\) under the configuration in force"):
        tuned(page)  # with shares of queues the large job never starts, and nobody after it


@pytest.mark.parametrize(
    "words, message",
    [
        (("--objective", "p95(wait, queue=smal)"), '--objective: p95(wait, queue=smal): no job is of queue "smal"; did you mean "small"?'),
        (("--keep", "mean(wait, queue=q) <= 1x"), '--keep: mean(wait, queue=q): no job is of queue "q"'),
        (("--period", "soon"), '--period: "soon" is not a duration; write one such as "30s", "5m" or "1h30m"'),
        (("--period", "-1h"), '--period: "-1h" is out of range'),
        (("--period", "0s"), "--period: a period of 0s has no jobs"),
    ],
)
def test_what_cannot_be_asked_of_a_workload_is_said_before_anything_is_played(page: str, words: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        tuned(page, "--conf", "FIFO", *words)
    assert str(raised.value) == message


def test_a_workload_without_jobs_is_told(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("timestamp,duration,num_gpus,cluster\n")
    with pytest.raises(InputError, match=r"--workload philly:.*none\.csv: there are no jobs in it"):
        tuned(f"philly:{tmp_path / 'none.csv'}", "--nodes", "2x8gpu", "--objective", "mean(wait)")


def test_seeds_are_of_use_only_where_the_workload_is_drawn(page: str) -> None:
    with pytest.raises(InputError, match="--seeds: the jobs are the same with every seed"):
        tuned(page, "--seeds", "2")


def test_without_optuna_the_extra_is_named(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError) as raised:
        tuned(page, "--conf", "FIFO")
    assert str(raised.value) == "tune: searches with Optuna, which is not installed: pip install 'pumice[tune]'"


def test_a_folder_is_needed_to_resume(page: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--resume: say with --out where the search was"):
        tuned(page, "--resume")
    with pytest.raises(InputError, match="leave out --resume to begin"):
        tuned(page, "--resume", "--out", str(tmp_path / "none"))


def test_what_a_search_has_played_is_neither_overwritten_nor_taken_for_that_of_another(page: str, tmp_path: Path) -> None:
    out, kept = str(tmp_path / "out"), tmp_path / "out" / "played.jsonl"
    tuned(page, "--conf", "FIFO", "--trials", "1", "--out", out)
    played = kept.read_bytes()
    with pytest.raises(InputError, match="has what a search has played; go on with --resume, or say another folder"):
        tuned(page, "--conf", "FIFO", "--trials", "1", "--out", out)
    with pytest.raises(InputError, match="--resume: what was played there is of another workload, nodes or configuration in force"):
        tuned(page, "--conf", "EASY", "--trials", "1", "--out", out, "--resume")
    Path(page.partition(":")[2]).write_text(f"{PAGE}# grown\n")
    with pytest.raises(InputError, match="--resume: what was played there is of another workload"):
        tuned(page, "--conf", "FIFO", "--trials", "1", "--out", out, "--resume")
    Path(page.partition(":")[2]).write_text(PAGE)
    assert kept.read_bytes() == played
    for line, fault in ((b"{}", "Object missing required field `key`"), (b"?", "JSON is malformed")):
        kept.write_bytes(played + line + b"\n")
        with pytest.raises(InputError, match=rf"played\.jsonl:{1 + played.count(NEWLINE)}: is no line of a search: {fault}"):
            tuned(page, "--conf", "FIFO", "--trials", "1", "--out", out, "--resume")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_interrupted_search_says_in_one_line_how_it_goes_on(page: str, tmp_path: Path, processes: str) -> None:
    out = tmp_path / "out"
    words = ["--workload", page, "--objective", "mean(wait)", "--conf", "FIFO", "--period", "1h", "--trials", "300", "--out", str(out)]
    command = [sys.executable, "-m", "pumice", "tune", *words, "--processes", processes]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # whoever starts the tests in the background ignores it
    # an interrupt while coverage counts a line would leave its lock taken for good
    uncounted = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    options = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True, "preexec_fn": heed, "env": uncounted}
    with subprocess.Popen(command, **options) as program:
        assert program.stderr is not None
        told = list[str]()
        for line in program.stderr:
            told.append(line)
            if line == "simulation 20: done\n":
                os.killpg(program.pid, signal.SIGINT)
    assert program.returncode == 1
    assert [line for line in told if "done" not in line] == [f"Stopped; go on with --resume: {out} has what was played.\n"]
    assert len((out / "played.jsonl").read_bytes().splitlines()) >= 20


def test_a_search_in_the_background_of_a_script_goes_on_when_the_script_is_interrupted(page: str, tmp_path: Path) -> None:
    words = ["--workload", page, "--objective", "mean(wait)", "--conf", "FIFO", "--period", "1h", "--trials", "8", "--processes", "2"]
    command, ignore = [sys.executable, "-m", "pumice", "tune", *words], partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=ignore) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line == "simulation 5: done\n":
                os.killpg(program.pid, signal.SIGINT)
            assert "done" in line
    assert program.returncode == 0


def test_without_a_folder_nothing_of_an_interrupted_search_is_kept(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(count: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pumice.cli.tune.say", lambda text, **how: interrupted(0))
    found = tuned(page, "--conf", "FIFO")
    assert (found.exit_code, found.output) == (1, "Stopped; nothing was kept, as there is no --out.\n")


def test_plugins_tells_which_arguments_are_searched() -> None:
    told = CliRunner().invoke(cli, ["plugins", "binpack"], catch_exceptions=False).stdout
    assert "SEARCHED BY TUNE" in told and "0 to 20" in told and "'', 'nvidia.com/gpu'" in told


def test_measures_of_a_day() -> None:
    assert str(ResultNumber(("wait", "p95"), "a")) == "p95(wait, queue=a)" and str(ResultNumber(("evictions",))) == "evictions"


def test_a_choice_within_the_line_actions_is_taken_back_alone() -> None:
    space = Space(NAMED["volcano"], "volcano", plugins(), actions())
    values = space.reverted(space.start | {"let in by enqueue": False, "evicted by": "preempt"}, "none")
    assert space.lines(values)["actions"] == 'actions: "allocate, backfill, preempt"'
    assert space.differing(values) == ["actions"] and space.parts(values) == ["let in by enqueue", "evicted by"]
    assert space.lines(space.reverted(values, "evicted by"))["actions"] == 'actions: "allocate, backfill"'
