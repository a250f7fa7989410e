"""The report of a simulation: its numbers are those of the JSON, its size does not follow the jobs, it draws and can be read."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from pumice.simulate.compare_report import compare_report
from pumice.simulate.measure_units import duration
from pumice.simulate.policy_comparison import table
from pumice.simulate.report import flat, report
from pumice.simulate.report_series import between, means
from tests.page.runs import run_of
from tests.page.tab import Tab

LARGEST = 1_000_000
SIZES = (0, 10, 1000, 100_000)


def numbers(text: str) -> dict[str, float]:
    return {name: json.loads(value) for name, value in re.findall(r'<data id="([^"]+)" value="([^"]+)">', text)}


def drawn(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', text)
    assert found is not None
    return {chart["title"]: chart for chart in json.loads(found[1])}


@pytest.mark.parametrize("count", SIZES)
def test_the_numbers_are_those_of_the_json(count: int) -> None:
    summary, parts, series = run_of(count)
    assert numbers(report(summary, parts, series)) == dict(flat(json.loads(json.dumps(summary))["measures"]))


@pytest.mark.parametrize("count", SIZES)
def test_a_report_of_any_number_of_jobs_is_below_a_megabyte(count: int) -> None:
    assert len(report(*run_of(count, queues=40)).encode()) < LARGEST


def test_few_jobs_are_drawn_one_by_one_and_many_by_queue() -> None:
    assert drawn(report(*run_of(10)))["Schedule by queue"]["bars"]["name"] == [f"job-{index}" for index in range(10)]
    summary, parts, series = run_of(1000)
    bands = drawn(report(summary, parts, series))["Schedule by queue"]
    (jobs,) = parts
    ended = ~np.isnan(jobs["end"])
    work = (jobs["gpu"] * (jobs["end"] - jobs["start"]))[ended].sum()
    late = (jobs["submit"] + jobs["wait"]).max()
    end_s = max(late, jobs["end"][ended].max())
    held = sum(sum(row["held"]) for row in bands["rows"]) * end_s / len(bands["x"])
    assert held == pytest.approx(work, rel=1e-3)


def test_who_waited_longest_stands_there_with_the_reason() -> None:
    summary, parts, series = run_of(1000)
    first = summary["longest"][0]
    row = re.search(r"<tbody><tr>(.*?)</tr>", report(summary, parts, series))
    assert row is not None
    cells = re.findall(r"<td>(.*?)</td>", row[1])
    never = " and never started" if first["start"] is None else ""
    assert cells[:1] + cells[2:3] == [duration(first["wait"]) + never, html.escape(first["reason"])]
    assert cells[1].startswith(f"<bdi>{first['job']}</bdi>, ")


def test_a_reason_stands_there_once_however_many_jobs_have_it() -> None:
    summary, parts, series = run_of(1000)
    assert len({job["reason"] for job in summary["longest"]}) == 1 < len(summary["longest"])
    assert report(summary, parts, series).count("<td>0/8 nodes are unavailable") == 1


def test_a_report_begins_with_a_verdict_in_words_and_measures_have_units() -> None:
    text = report(*run_of(1000))
    verdict = "Half of the 1,000 jobs (did not wait|waited at most .*), one in twenty waited .* or longer[.] 73 % of the GPUs"
    assert re.search(f'<p class="verdict">{verdict}', text)
    assert re.search(r'<data id="utilisation.gpu" value="0.734567">73.5 %<', text)
    summary, parts, series = run_of(10)
    summary["measures"] |= {"goodput": {"cpu": 7200.0, "memory": 3600.0 * 2**31}, "fragmentation": {"mean": 1.5}}
    for words in ("2 CPU-hours<", "2 GiB-hours<", "1.5 GPUs<"):
        assert words in report(summary, parts, series)


def test_charts_of_nothing_are_left_out() -> None:
    summary, parts, series = run_of(10)
    parts[0]["evictions"][:] = 0
    parts[0]["start"], parts[0]["wait"] = parts[0]["submit"], np.zeros(10)
    titles = set(drawn(report(summary, parts, series)))
    assert "Schedule by queue" in titles
    assert not titles & {
        "Wait by queue",
        "Wait by size",
        "95th percentile of the wait, by queue and size",
        "Queue lengths",
        "Evictions and lost work",
    }


def test_names_are_text_and_never_markup() -> None:
    summary, parts, series = run_of(10)
    hostile = "</script><img src=x onerror=alert(1)>"
    parts[0]["job"][:] = hostile
    summary["longest"][0] |= {"job": hostile, "reason": hostile}
    text = report(summary | {"policy": hostile}, parts, series)
    assert "<img" not in text
    assert drawn(text)["Schedule by queue"]["bars"]["name"][0] == hostile


def test_names_of_queues_stand_apart_from_each_other_whatever_they_are_written_in() -> None:
    summary, parts, series = run_of(10)
    summary["longest"] = [{"job": "a", "queue": name, "submit": 0, "start": 9, "wait": 9, "reason": ""} for name in ("\u202eb", "c")]
    assert "<td><bdi>\u202eb</bdi>, <bdi>c</bdi></td>" in report(summary, parts, series)


def test_charts_of_waits_say_that_jobs_are_among_them_that_never_started() -> None:
    summary, parts, series = run_of(1000)
    counted = ["Wait by queue", "Wait by size", "95th percentile of the wait, by queue and size"]
    found = drawn(report(summary, parts, series))
    assert [name for name, chart in found.items() if "Jobs that never started count" in chart.get("description", "")] == counted
    parts[0]["start"] = parts[0]["submit"]
    assert "Jobs that never started count" not in report(summary, parts, series)


def test_a_percentile_of_a_chart_is_that_of_the_measures() -> None:
    summary, parts, series = run_of(10, queues=1)
    (row,) = drawn(report(summary, parts, series))["95th percentile of the wait, by queue and size"]["rows"]
    assert {*row["values"]} <= {*parts[0]["wait"].tolist()}


def test_means_of_a_step_function_keep_its_integral() -> None:
    edges = np.array([0.0, 1.0, 2.0, 4.0])
    assert means(np.array([0.5, 2.0]), np.array([4.0, 1.0]), edges).tolist() == [2.0, 4.0, 1.0]


def test_what_never_begins_counts_nowhere_and_what_never_ends_to_the_end() -> None:
    begin, end = np.array([1.0, np.nan, 2.0]), np.array([3.0, np.nan, np.nan])
    assert between(begin, end, np.array([5.0, 7.0, 1.0]), np.array([0.0, 2.0, 4.0])).tolist() == [2.5, 3.5]


@pytest.mark.page
@pytest.mark.parametrize("count", SIZES)
def test_screenshots(tab: Tab, tmp_path: Path, count: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(*run_of(count, queues=4 if count < 100_000 else 15)), "utf-8")
    tab.page.goto(file.as_uri())
    if count:
        tab.page.wait_for_selector(".chart svg .grid", state="attached")
    tab.screenshots()


@pytest.mark.page
def test_long_names_make_nothing_wider(tab: Tab, tmp_path: Path) -> None:
    summary, parts, series = run_of(10, queues=2)
    for columns in (*parts, series):
        columns["queue"] = np.array([name and name[-1] * 300 for name in columns["queue"].tolist()])  # type: ignore[index]
    summary |= {"workload": "w" * 250}
    file = tmp_path / "report.html"
    file.write_text(report(summary, parts, series), "utf-8")
    tab.page.goto(file.as_uri())
    tab.page.wait_for_selector(".legend li", state="attached")
    tab.screenshots()


@pytest.mark.page
def test_policies_stand_side_by_side(tab: Tab, tmp_path: Path) -> None:
    summaries = []
    for seed, (policy, count) in enumerate((policy, count) for count in (900, 1000) for policy in ("FIFO", "EASY")):
        summary, parts, _ = run_of(count)
        less = 0.6 + 0.01 * seed if policy == "EASY" else 1.0
        summary["measures"]["wait"] = {name: less * value for name, value in summary["measures"]["wait"].items()}
        summary["measures"] |= {"fairness": {"mean": 0.9}, "fragmentation": {"mean": 3.0}}
        queues = {str(name): {"wait": {"mean": 60.0 * (index + seed)}} for index, name in enumerate(sorted({*parts[0]["queue"]}))}
        summaries.append(summary | {"policy": policy, "seed": seed // 2, "queues": queues})
    file = tmp_path / "report.html"
    file.write_text(compare_report(table(summaries), summaries), "utf-8")
    tab.page.goto(file.as_uri())
    expect(tab.page.locator(".verdict li")).to_have_text(re.compile("^EASY against FIFO: better in 95th percentile of the wait"))
    expect(tab.page.locator("figure", has_text="Mean wait by queue").locator("svg")).to_have_count(1)
    tab.screenshots()
    tab.check_accessible()


@pytest.mark.page
def test_charts_are_read_by_keyboard_and_as_tables(tab: Tab, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(*run_of(10)), "utf-8")
    tab.page.goto(file.as_uri())
    chart = tab.page.locator("figure", has_text="Schedule by queue")
    picture = chart.get_by_role("img", name=re.compile("Schedule by queue"))
    picture.focus()
    picture.press("Home")
    expect(chart.locator("output")).to_have_text(re.compile(r"^job-\d+ \(team-a\): waited"))
    chart.locator("summary").click()
    expect(chart.locator("tbody tr")).to_have_count(10)


@pytest.mark.page
def test_a_report_prints(tab: Tab, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(*run_of(1000)), "utf-8")
    tab.page.goto(file.as_uri())
    tab.page.wait_for_selector(".chart svg .grid", state="attached")
    assert tab.page.pdf().startswith(b"%PDF")
