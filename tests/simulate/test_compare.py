"""Several policies over the same work."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.simulate.inputs import NAMED
from pumice.simulate.lower_bounds import LowerBounds
from pumice.simulate.policy_comparison import ComparedRun, compare, interval
from pumice.simulate.result_conditions import condition_of
from pumice.simulate.result_sentences import of_policies
from tests.simulate.playing import swf
from tests.simulate.test_queueing import BY_HAND


def test_a_comparison_has_differences_resumes_and_asserts(tmp_path: Path) -> None:
    path = swf(tmp_path / "w.swf", BY_HAND).path
    words = ["compare", "--workload", f"swf:{path}", "--policy", "FIFO", "--policy", "EASY", "--seeds", "2", "--processes", "1"]
    words += ["--out", str(tmp_path / "kept"), "-o", "json"]
    first = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "EASY, seed 1: done" in first.stderr
    rows = {(row["measure"], row["policy"]): row for row in json.loads(first.stdout)["comparison"]}
    assert rows["wait.mean", "EASY"]["mean"] == 6
    assert rows["wait.mean", "EASY"]["difference"] == 6 - rows["wait.mean", "FIFO"]["mean"] < 0
    again = CliRunner().invoke(cli, [*words, "--assert", "max(wait) < 1m"], catch_exceptions=False)
    assert (again.stdout, again.stderr, again.exit_code) == (first.stdout, "", 0)
    failed = CliRunner().invoke(cli, [*words, "--assert", "max(wait, queue=queue-1) < 15s"], catch_exceptions=False, standalone_mode=False)
    assert failed.return_value == 1 and "FIFO, seed 0: 18" in failed.stderr


def test_two_processes_write_the_bytes_of_one_and_what_was_interrupted_goes_on(tmp_path: Path) -> None:
    path = swf(tmp_path / "w.swf", BY_HAND).path
    words = ["compare", "--workload", f"swf:{path}", "--policy", "FIFO", "--policy", "EASY", "-o", "json"]
    said = []
    for processes in ("1", "2"):
        out = ["--processes", processes, "--out", str(tmp_path / processes)]
        said.append(CliRunner().invoke(cli, [*words, *out], catch_exceptions=False).stdout)
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("1", "2"))
    assert said[0] == said[1] and one == two and len(one) == 3
    interrupted = tmp_path / "2" / max(name for name in two if name.endswith(".json"))
    interrupted.rename(interrupted.with_suffix(".json.part"))
    again = CliRunner().invoke(cli, [*words, "--processes", "1", "--out", str(tmp_path / "2")], catch_exceptions=False)
    assert again.stdout == said[0] and again.stderr.count(": done") == 1 and interrupted.read_bytes() == two[interrupted.name]


def test_a_policy_that_is_named_twice_is_played_once(tmp_path: Path) -> None:
    words = ["compare", "--workload", f"swf:{swf(tmp_path / 'w.swf', BY_HAND).path}", "--policy", "FIFO", "--processes", "1", "-o", "json"]
    once, twice = (CliRunner().invoke(cli, [*words, *more], catch_exceptions=False) for more in ([], ["--policy", "FIFO"]))
    assert (twice.stdout, twice.stderr) == (once.stdout, "FIFO, seed 0: done\n")


def test_bounds_are_found_beside_the_simulations_by_whoever_plays(tmp_path: Path) -> None:
    works = [ComparedRun(f"swf:{swf(tmp_path / 'w.swf', BY_HAND).path}", None, None, policy, 0) for policy in ("FIFO", "EASY")]
    bounds: dict[int, LowerBounds] = {}
    assert [each["policy"] for each in compare(works, processes=2, bounds=bounds)] == ["FIFO", "EASY"]
    assert bounds == {0: works[0].bounds(whole_gangs=True)} and bounds[0].makespan > 0


@pytest.mark.parametrize("changed", ["workload", "policy", "plugin"])
def test_what_was_kept_is_of_no_use_once_an_input_has_another_content(changed: str, tmp_path: Path) -> None:
    files = {"workload": Path(swf(tmp_path / "w.swf", BY_HAND).path), "policy": tmp_path / "my.conf", "plugin": tmp_path / "own" / "a.py"}
    files["plugin"].parent.mkdir()
    files["policy"].write_text(NAMED["FIFO"])
    files["plugin"].write_text("# nothing yet\n")
    words = ["compare", "--workload", f"swf:{files['workload']}", "--policy", str(files["policy"]), "--plugins-dir", str(tmp_path / "own")]
    words += ["--policy", "EASY", "--processes", "1", "--out", str(tmp_path / "out")]

    def played() -> int:
        return CliRunner().invoke(cli, words, catch_exceptions=False).stderr.count(": done")

    assert played() == 2
    compiled = tmp_path / "own" / "__pycache__" / "a.pyc"
    compiled.parent.mkdir(exist_ok=True)
    compiled.write_bytes(b"what Python keeps beside")
    assert played() == 0
    files[changed].write_text(files[changed].read_text() + ("; a comment\n" if changed == "workload" else "# a comment\n"))
    assert (played(), played()) == (1 if changed == "policy" else 2, 0)


def test_a_comparison_says_in_units_and_words_what_is_better_and_how_sure_that_is(tmp_path: Path) -> None:
    path = swf(tmp_path / "w.swf", BY_HAND).path
    words = ["compare", "--workload", f"swf:{path}", "--policy", "FIFO", "--policy", "EASY", "--processes", "1"]
    said = CliRunner().invoke(cli, [*words, "--seeds", "2", "--out", str(tmp_path)], catch_exceptions=False).stdout
    assert re.search(r"mean wait +EASY +6 s +-\d+ %", said)
    assert re.search(r"CPUs in use +FIFO +[\d.]+ %", said)
    assert re.search(
        r"\nEASY against FIFO: better in mean wait \(-\d+ %\).* \(every seed gave the same, so how sure that is is not known\)", said
    )
    assert re.search(r"\nNo policy has a mean turnaround below [\d.]+ s: FIFO [\d.]+ times the bound, EASY 1\.\d+ times the bound\.", said)
    text = (tmp_path / "report.html").read_text()
    assert "<li>No policy has a mean turnaround below " in text and "seed by seed" in text
    assert "<li>EASY against FIFO: better in mean wait" in text and '"title":"Waits"' in text
    alone = CliRunner().invoke(cli, words, catch_exceptions=False).stdout
    assert "how sure that is is not known; --seeds 10 tells" in alone


def test_jobs_that_did_not_end_are_told_beside_the_measures_of_the_others(tmp_path: Path) -> None:
    """A gang that never fits stops the whole line of FIFO."""
    page = "{nodes: 2x4cpu, duration: 1h, jobs: [{name: odd, arrivals: {at: [0s]}, run: 60, request: {cpu: 3}, pods: 3}, "
    page += "{name: even, arrivals: {at: [1s, 2s]}, run: 60, request: {cpu: 1}}]}"
    (tmp_path / "page.yaml").write_text(page)
    words = ["compare", "--workload", f"yaml:{tmp_path / 'page.yaml'}", "--policy", "FIFO", "--policy", "greedy", "--processes", "1"]
    said = CliRunner().invoke(cli, [*words, "--out", str(tmp_path)], catch_exceptions=False).stdout
    assert "Under greedy 1 of 3 jobs did not end: its waits are those of jobs that started" in said
    assert "<li>Under FIFO 3 of 3 jobs did not end" in (tmp_path / "report.html").read_text()


def test_a_difference_is_judged_by_its_interval_and_by_what_is_better() -> None:
    def row(measure: str, difference: float, half: float) -> dict[str, Any]:
        more = {
            "difference": difference,
            "difference_interval": half,
            "difference_percent": difference,
            "difference_percent_interval": half,
        }
        return {"measure": measure, "policy": "B", "mean": 100.0, "interval": half, **more}

    rows = [{"measure": "evictions", "policy": "A", "mean": 100.0}]
    rows += [row("wait.mean", -20, 5), row("utilisation.gpu", -3, 1), row("makespan", 1, 2), row("evictions", 0, 0)]
    assert of_policies(rows) == [
        "B against A: better in mean wait (-20 % ± 5 %) and worse in GPUs in use (-3 % ± 1 %) (sure at 95 %); "
        "no sure difference in makespan; the same in evictions."
    ]


def test_intervals() -> None:
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2 and half == pytest.approx(2.484, abs=0.001)
    assert math.isnan(interval([1.0])[1])
    for count, quantile in ((20, 2.093), (21, 2.086), (31, 2.0423), (101, 1.984)):
        values = [float(number) for number in range(count)]
        assert interval(values)[1] == pytest.approx(quantile * stdev(values) / math.sqrt(count), rel=4e-4)


@pytest.mark.parametrize(
    "text, message",
    [
        ("p95(wait", "column 9: write such as"),
        ("p95(wait) <", "column 12: write such as"),
        ("p96(wait) < 1m", 'column 1: there is no statistic "p96"'),
        ("p95(waits) < 1m", 'column 5: "waits" is no distribution; did you mean "wait"?'),
        ("utilization.gpu > 70%", 'column 1: there is no measure "utilization"; did you mean "utilisation"?'),
        ("evictions < many", 'column 13: "many" is no number, per cent or duration'),
    ],
)
def test_a_wrong_assertion_names_the_column(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        condition_of(text)
    assert message in str(raised.value)


def test_what_is_not_there_does_not_hold() -> None:
    summary = {"measures": {"wait": {"p95": None}, "utilisation": {"gpu": 0.8}}, "queues": {}}
    assert not condition_of("utilisation.gpu > 70%").fails(summary)
    assert condition_of("p95(wait) < 1m").fails(summary)
    assert condition_of("p95(wait, queue=a) < 1m").fails(summary)


def test_that_every_job_started_can_be_asserted() -> None:
    assert [condition_of("waiting < 1").fails({"measures": {"waiting": count}, "queues": {}}) for count in (0, 2)] == [False, True]


def test_a_bound_may_be_below_zero_as_fairness_may() -> None:
    assert [condition_of(f"mean(fairness, queue=a) > {bound}").bound for bound in ("-1.5", "-30m", "-5%")] == [-1.5, -1800, -0.05]
    for wrong in ("--1", "nan%", "inf"):
        with pytest.raises(InputError, match="is no number, per cent or duration"):
            condition_of(f"mean(wait) > {wrong}")


def test_a_condition_on_a_queue_to_which_no_job_came_says_so(tmp_path: Path) -> None:
    path = swf(tmp_path / "w.swf", BY_HAND).path
    words = ["compare", "--workload", f"swf:{path}", "--policy", "FIFO", "--assert", "max(wait, queue=queue-7) < 1h"]
    failed = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    assert failed.return_value == 1
    assert 'FIFO, seed 0: no job came to queue "queue-7"; did you mean "queue-1"?' in failed.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (["--load", "50%"], "--load: is for --arrivals-only"),
        (["--arrivals-only", "--out", "x"], "--out: with --arrivals-only no files are written"),
        (["--arrivals-only", "--kill-at-estimate"], "--kill-at-estimate: with --arrivals-only nothing ever runs"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(words: list[str], told: str, tmp_path: Path) -> None:
    path = swf(tmp_path / "w.swf", BY_HAND).path
    assert told in str(CliRunner().invoke(cli, ["simulate", "--workload", f"swf:{path}", *words]).exception)
