"""Chromium and one page of it for each file, since its driver holds the event loop, and a new page takes a second of a core. Each test has
the page as if it were new; errors and warnings fail it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.page.tab import WIDE, Tab

PATIENCE_MS = 30_000
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
    expect.set_options(timeout=PATIENCE_MS)
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
