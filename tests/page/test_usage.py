"""Who had what beyond the last hour, as `pumice usage` tells of the folder of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.page.desk import Desk, desk
from tests.page.recordings import ten_days
from tests.page.tab import Tab
from tests.page.test_server import ask


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("recordings")
    ten_days(folder)
    with desk(str(folder)) as made:
        yield made


def asked(desk: Desk, **choices: str) -> tuple[int, Any]:
    status, _, body = ask(desk, "/api/usage?" + "&".join(f"{name}={value}" for name, value in choices.items()))
    return status, json.loads(body)


def test_each_day_has_the_hours_that_the_command_counts(recorded: Desk) -> None:
    status, told = asked(recorded, by="queue", per="day", month="2026-10")
    assert (status, told["head"][:2], len(told["rows"])) == (200, ["from", "queue"], 30)
    first = dict(zip(told["head"], told["rows"][0], strict=True))
    assert (first["from"], first["queue"], first["gpu_got"]) == ("2026-10-05T00:00:00Z", "prod", f"{8 * (6 + 7 + 8 - 0.5):.2f}")
    assert asked(recorded, by="user", per="day", month="2026-09") == (
        200,
        {"head": ["from", "user", "pods", "evicted", "waited", "recorded"], "rows": []},
    )


def test_what_is_asked_wrongly_is_told(recorded: Desk) -> None:
    status, told = asked(recorded, by="nobody", per="day")
    assert status == 400 and '"nobody" is nothing to sum up by' in told["error"]


@pytest.mark.page
def test_without_recordings_it_is_said_how_to_have_them(tab: Tab) -> None:
    with desk() as made:
        assert asked(made, by="queue", per="day")[0] == 404
        tab.page.goto(f"{made.url}#/usage")
        tab.page.wait_for_selector("main .quiet:has-text('--record DIR')")


@pytest.mark.page
def test_a_month_is_shown_by_queue_and_user_with_the_command(recorded: Desk, tab: Tab) -> None:
    tab.page.goto(f"{recorded.url}#/usage?month=2026-10")
    table = tab.page.locator(".rows tbody tr")
    expect(table).to_have_count(3)
    expect(tab.page.locator(".chart .axis").first).to_have_text("GPU hours")
    tab.screenshots("queues")
    tab.check_accessible()
    tab.page.get_by_role("combobox", name="By").select_option("queue,user")
    expect(table).to_have_count(4)
    expect(table.first).to_contain_text("deploy")
    tab.page.get_by_role("combobox", name="Of").select_option("cpu")
    expect(tab.page.locator(".chart .axis").first).to_have_text("CPU hours")
    assert (tab.page.locator(".shell code").text_content() or "").endswith("--by queue,user --per day --month 2026-10")
    tab.page.get_by_label("Month (UTC)").fill("2026-09")
    expect(tab.page.locator("main .quiet").first).to_have_text("Nothing is recorded of this time.")
    tab.screenshots("nothing")
