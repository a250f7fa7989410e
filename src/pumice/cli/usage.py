"""`pumice usage`: the resources that queues and users held, computed from recordings."""

import csv
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

import click

from pumice.api import InputError, did_you_mean, rfc3339
from pumice.cli.inputs import warn
from pumice.cli.tables import print_table
from pumice.escaped_text import shown_in_line
from pumice.inputs.recording.entry_format import Entry
from pumice.inputs.recording.file_format import entries, files_of
from pumice.inputs.recording.usage import FIELDS, HOUR_S, Group, UsageAccount, UsageAmounts, UsageTotals
from pumice.text_table import columns

PERIODS = {"10min": HOUR_S / 6, "hour": HOUR_S, "day": 24 * HOUR_S}
RESOURCES = tuple(zip(("CPU", "MEMORY", "GPU"), UsageAmounts._fields, strict=True))


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--by", default="queue", show_default=True, help=f"What to sum up by: {', '.join(FIELDS)}, or several, separated by commas.")
@click.option("--per", type=click.Choice(list(PERIODS)), help="The sums of each such period (UTC), in place of those of the whole time.")
@click.option("--month", metavar="YYYY-MM", help="Only this month, in UTC.")
@click.option("--lent", is_flag=True, help="Who lent what to whom, in place of the sums.")
@click.option("-o", "output", type=click.Choice(["table", "csv"]), default="table", show_default=True)
def usage(files: tuple[Path, ...], by: str, per: str | None, month: str | None, lent: bool, output: str) -> None:
    """The hours of CPUs, memory (GiB) and GPUs that queues and users held, and what queues deserved, lent and borrowed meanwhile.

    FILES are recordings, or folders of them, in the order of time.
    """
    if lent and (per or by != "queue"):
        raise click.UsageError("--lent sums up by lender and borrower, over the whole time; leave out --by and --per")
    start, end = _month(month) if month else (-inf, inf)
    totals = UsageTotals(_fields(by), start, end)
    length_s = PERIODS[per] if per else inf
    found = [each for each in _parts(totals, _entries(files), length_s) if each.since < end and not each.since + length_s <= start]
    head, rows = _flows(totals) if lent else _sums(totals.by, found, dated=per is not None)
    if output == "table":
        print_table(columns(head, rows))
    else:
        written = [[each.lower().replace(" ", "_") for each in head], *([shown_in_line(str(cell)) for cell in row] for row in rows)]
        csv.writer(sys.stdout, lineterminator="\n").writerows(written)


def _entries(files: Iterable[Path]) -> Iterator[Entry]:
    return (entry for given in files for path in files_of(given, warn) for entry in entries(path, warn))


class UsagePart(NamedTuple):
    since: float
    recorded_s: float  #: how much of this time is recorded
    accounts: dict[Group, UsageAccount]


def _parts(totals: UsageTotals, taken: Iterable[Entry], length_s: float) -> Iterator[UsagePart]:
    """The accounts of each period of this length, beginning with the one of the first entry."""
    since = begin = last = -inf
    for entry in taken:
        if since == -inf and length_s < inf:
            since, begin = entry.at // length_s * length_s, entry.at
        while entry.at >= since + length_s:
            yield UsagePart(since, since + length_s - begin, totals.cut(since + length_s))
            since = begin = since + length_s
        totals.take(entry)
        last = entry.at
    totals.close()
    yield UsagePart(since, last - begin, totals.accounts)


def _fields(text: str) -> tuple[str, ...]:
    """The fields to sum up by, from the text of --by. Raises InputError."""
    found = tuple(each.strip() for each in text.split(","))
    for each in found:
        if each not in FIELDS:
            raise InputError(
                f'"{each}" is nothing to sum up by{did_you_mean(each, FIELDS) or "; write " + ", ".join(FIELDS)}', where="--by"
            )
    return found


def _month(text: str) -> tuple[float, float]:
    """The first instant of the month, and the first of the next month. Raises InputError."""
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text):
        raise InputError(f'"{text}" is no month; write one such as 2026-11', where="--month")
    year, month = map(int, text.split("-"))
    after = (year + 1, 1) if month == 12 else (year, month + 1)
    return datetime(year, month, 1, tzinfo=UTC).timestamp(), datetime(*after, 1, tzinfo=UTC).timestamp()


def _sums(by: tuple[str, ...], parts: list[UsagePart], *, dated: bool) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of sums, without columns that are all zero. `dated`: with the begin of each period."""
    accounts = [(part, group, account) for part in parts for group, account in sorted(part.accounts.items())]
    kinds = ("got", "deserved", "lent", "borrowed") if by == ("queue",) else ("got",)
    shown = [(part, title, name) for title, name in RESOURCES for part in kinds if any(_of(each, part, name) for *_, each in accounts)]
    numbers = [*(f"{title} {part.upper()}" for part, title, _ in shown), "PODS", "EVICTED", "WAITED", *(["RECORDED"] if dated else [])]
    head = [*(["FROM"] if dated else []), *map(str.upper, by), *numbers]
    rows = [
        [
            *([rfc3339(of.since)] if dated else []),
            *group,
            *(f"{_of(account, part, name):.2f}" for part, _, name in shown),
            str(account.pods),
            str(account.evicted),
            f"{account.waited:.2f}",
            *([f"{of.recorded_s / HOUR_S:.4f}"] if dated else []),
        ]
        for of, group, account in accounts
    ]
    return head, rows


def _of(account: UsageAccount, part: str, resource: str) -> float:
    return float(getattr(getattr(account, part), resource))


def _flows(totals: UsageTotals) -> tuple[list[str], list[list[str]]]:
    flows = sorted(totals.flows.items())
    shown = [(title, name) for title, name in RESOURCES if any(getattr(amounts, name) for _, amounts in flows)]
    rows = [[lender, borrower, *(f"{getattr(amounts, name):.2f}" for _, name in shown)] for (lender, borrower), amounts in flows]
    return ["LENDER", "BORROWER", *(title for title, _ in shown)], rows
