"""A tab as the tests use it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Error, Page, Request, ViewportSize

SCREENSHOTS = Path(__file__).parents[2] / ".screenshots"
WIDE: ViewportSize = {"width": 1280, "height": 860}
NARROW: ViewportSize = {"width": 390, "height": 844}


class Tab:
    """`page` is Playwright's."""

    def __init__(self, page: Page, test: str, own: str = "http://127.0.0.1:") -> None:
        self.page = page
        self.complaints: list[str] = []  #: errors, warnings of the console, requests to anybody else
        self.tolerated: re.Pattern[str] | None = None
        self._test = test
        self._own = own
        for event, handler in self._handlers.items():
            page.on(event, handler)  # type: ignore[call-overload]
        page.emulate_media(color_scheme="light")

    @property
    def _handlers(self) -> dict[str, Callable[[Any], None]]:
        return {"pageerror": self._fail, "console": self._heed, "request": self._check_host}

    def leave(self) -> None:
        """Nothing of this test is left for the next one."""
        self.page.evaluate("() => { try { sessionStorage.clear(); localStorage.clear(); } catch { /* a stranger has none */ } }")
        self.page.goto("about:blank")
        for event, handler in self._handlers.items():
            self.page.remove_listener(event, handler)

    def tolerate(self, words: str) -> None:
        """What is not to be complained of from now on."""
        self.tolerated = re.compile(words)

    def _heed(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complain(message.text)

    def _fail(self, error: Error) -> None:
        self._complain(str(error))

    def _check_host(self, request: Request) -> None:
        url = request.url
        if not url.startswith((self._own, "file://", "data:")):
            self._complain(f"asks {url}")

    def _complain(self, text: str) -> None:
        if self.tolerated is None or not self.tolerated.search(text):
            self.complaints.append(text)

    def screenshots(self, name: str = "") -> None:
        """Wide and light, narrow and dark, for people to look at; nothing may stand out at the side."""
        for scheme, size in (("light", WIDE), ("dark", NARROW)):
            self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            self.page.set_viewport_size(size)
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert self.page.evaluate("document.documentElement.scrollWidth") <= size["width"], f"{size['width']} pixels are not enough"
            self.page.screenshot(path=self.file(f"{name} {scheme} {size['width']}"), full_page=True)
        self.page.set_viewport_size(WIDE)

    def check_accessible(self) -> None:
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()

    def file(self, name: str) -> Path:
        """Where a screenshot is left."""
        SCREENSHOTS.mkdir(exist_ok=True)
        return SCREENSHOTS / (re.sub(r"\W+", "-", f"{self._test} {name}").strip("-") + ".png")
