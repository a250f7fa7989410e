"""Chromium and one page of it for each file, since its driver holds the event loop, and a new page takes a second of a core. Each test has
the page as if it were new; errors and warnings fail it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.page.tab import WIDE, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    return browser.new_context(viewport=WIDE, reduced_motion="reduce").new_page()


@pytest.fixture
def tab(page: Page, request: pytest.FixtureRequest) -> Iterator[Tab]:
    tab = Tab(page, request.node.name)
    yield tab
    tab.leave()
    assert tab.complaints == []
