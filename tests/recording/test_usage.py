"""Hours are those that there were, however the recording is cut into files; what is lent is borrowed."""

from __future__ import annotations

from math import isclose
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pumice.api.meta import Wire
from pumice.api.structs import encode
from pumice.cli.main import cli
from pumice.inputs.recording.entry_format import Cycle, Put, Removed, Whole
from pumice.inputs.recording.file_format import Retention, entries, files_of
from pumice.inputs.recording.usage import HOUR_S, UsageAccount, UsageTotals
from pumice.testing.builders import pod, podgroup
from tests.live.virtual import START
from tests.recording.week import record_week

HUNDREDTH = 0.01


def totals(folder: Path, *by: str, start: float = START, end: float = START + 1800) -> UsageTotals:
    made = UsageTotals(by or ("queue",), start, end)
    for path in files_of(folder, pytest.fail):
        for entry in entries(path, pytest.fail):
            made.take(entry)
    made.close()
    return made


def test_hours_are_those_that_there_were(tmp_path: Path) -> None:
    """Eight pods of a CPU for ten minutes, of which six go on; two others from then on; three that wait for the last ten."""
    record_week(tmp_path)
    accounts = totals(tmp_path).accounts
    research, finance = accounts["research",], accounts["finance",]
    assert isclose(research.got.cpu, (8 * 600 + 6 * 1200) / 3600, rel_tol=HUNDREDTH)
    assert isclose(finance.got.cpu, 2 * 1200 / 3600, rel_tol=HUNDREDTH)
    assert isclose(finance.waited, 3 * 600 / 3600, rel_tol=HUNDREDTH)
    assert (research.pods, research.evicted, finance.pods, finance.evicted) == (8, 2, 2, 0)


def test_what_one_lends_another_borrows(tmp_path: Path) -> None:
    record_week(tmp_path)
    made = totals(tmp_path)
    research, finance = made.accounts["research",], made.accounts["finance",]
    assert isclose(finance.lent.cpu, research.borrowed.cpu) and finance.lent.cpu > 0.3
    assert finance.borrowed.cpu == research.lent.cpu == 0
    assert {pair: flow.cpu for pair, flow in made.flows.items()} == {("finance", "research"): pytest.approx(finance.lent.cpu)}
    assert isclose(finance.got.cpu, finance.deserved.cpu - finance.lent.cpu, rel_tol=HUNDREDTH)


def test_parts_of_the_time_add_up_to_all_of_it(tmp_path: Path) -> None:
    record_week(tmp_path)
    whole = totals(tmp_path).accounts
    halves = [totals(tmp_path, end=START + 700).accounts, totals(tmp_path, start=START + 700).accounts]
    for queue in (("research",), ("finance",)):
        first, second = (half.get(queue, UsageAccount()) for half in halves)
        assert isclose(first.got.cpu + second.got.cpu, whole[queue].got.cpu)
        assert isclose(first.lent.cpu + second.lent.cpu, whole[queue].lent.cpu)
        assert first.pods + second.pods == whole[queue].pods


def test_periods_add_up_to_all_of_the_time(tmp_path: Path) -> None:
    record_week(tmp_path)
    whole, made, cut = totals(tmp_path).accounts, UsageTotals(("queue",), START, START + 1800), []
    for path in files_of(tmp_path, pytest.fail):
        for entry in entries(path, pytest.fail):
            while entry.at >= START + 500 * (len(cut) + 1):
                cut.append(made.cut(START + 500 * (len(cut) + 1)))
            made.take(entry)
    made.close()
    cut.append(made.accounts)
    assert len(cut) > 3 and sum(bool(each["research",].got.cpu) for each in cut) > 3
    for queue in (("research",), ("finance",)):
        assert isclose(sum(each[queue].got.cpu for each in cut), whole[queue].got.cpu)
        assert isclose(sum(each[queue].lent.cpu for each in cut), whole[queue].lent.cpu)
        assert isclose(sum(each[queue].waited for each in cut), whole[queue].waited)
        assert sum(each[queue].pods for each in cut) == whole[queue].pods


def test_hours_and_days_are_told_one_by_one(tmp_path: Path) -> None:
    record_week(tmp_path)
    told = CliRunner().invoke(cli, ["usage", str(tmp_path), "--per", "hour", "-o", "csv"], catch_exceptions=False).output.splitlines()
    assert told[0].startswith("from,queue,cpu_got,")
    assert [line.split(",")[:2] for line in told[1:]] == [["2023-11-14T22:00:00Z", "finance"], ["2023-11-14T22:00:00Z", "research"]]


def test_a_folder_of_many_files_gives_what_one_file_gives(tmp_path: Path) -> None:
    record_week(tmp_path / "one")
    record_week(tmp_path / "many", Retention(file_s=0.0))
    assert len(files_of(tmp_path / "many", pytest.fail)) > 5
    one, many = totals(tmp_path / "one").accounts, totals(tmp_path / "many").accounts
    for queue in (("research",), ("finance",)):
        assert isclose(one[queue].got.cpu, many[queue].got.cpu, rel_tol=HUNDREDTH)
        assert isclose(one[queue].lent.cpu, many[queue].lent.cpu, rel_tol=HUNDREDTH)
        assert (one[queue].pods, one[queue].evicted) == (many[queue].pods, many[queue].evicted)


def test_a_queue_whose_jobs_have_gone_deserves_nothing_more() -> None:
    made = UsageTotals()
    for hour, deserved in enumerate(({"a": 4.0, "b": 2.0}, {"a": 6.0}, {})):
        made.take(decided(hour, {queue: {"cpu": amount} for queue, amount in deserved.items()}))
    made.take(Whole(3 * HOUR_S))
    assert {queue: account.deserved.cpu for (queue,), account in made.accounts.items()} == {"a": 4 + 6 + 6, "b": 2}


def test_pods_whose_group_comes_late_or_changes_its_queue_hold_in_the_right_one() -> None:
    made = UsageTotals()
    queues = {"a": {"cpu": 1.0}, "b": {"cpu": 2.0}, "default": {"cpu": 2.0}}
    held = pod("p").cpu(3).gang("g").on("n").build()
    made.take(put(0, held))
    made.take(put(0, podgroup("g").queue("a").build()))
    made.take(decided(0, queues))
    made.take(put(1, podgroup("g").queue("b").build()))
    made.take(Removed(2 * HOUR_S, "Pod", "default/p"))
    made.take(Whole(3 * HOUR_S))
    found = {queue: (account.got.cpu, account.borrowed.cpu, account.lent.cpu) for (queue,), account in made.accounts.items()}
    assert found == {"a": pytest.approx((3, 2, 1 / 3)), "b": (3, 1, 1), "default": pytest.approx((0, 0, 5 / 3))}


def decided(hour: float, deserved: dict[str, dict[str, float]]) -> Cycle:
    return Cycle(hour * HOUR_S, 1, 0.0, "", {}, [], {}, {}, [], {}, [], None, deserved)


def put(hour: float, made: tuple[str, Wire]) -> Put:
    return Put(hour * HOUR_S, made[0], msgspec.Raw(encode(made[1])))


def test_wrong_options_are_told() -> None:
    assert 'did you mean "queue"' in str(CliRunner().invoke(cli, ["usage", "x", "--by", "queues"]).exception)
    for more in (["--per", "hour"], ["--by", "user"]):
        assert "leave out --by and --per" in CliRunner().invoke(cli, ["usage", "x", "--lent", *more]).output
    assert "is no month; write one such as 2026-11" in str(CliRunner().invoke(cli, ["usage", "x", "--month", "2026-13"]).exception)
