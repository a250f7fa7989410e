"""The site of the documents, opened as a file: its search runs in a worker, which browsers do not start there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.page
ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/site/index.html"
PAGE = """<!doctype html><body><p id="answers"></p><script src="iframe-worker.js"></script><script>
const worker = new Worker(new URL("worker.js", location));
worker.addEventListener("message", (event) => { document.getElementById("answers").textContent += event.data + ";"; });
worker.postMessage("early");
setTimeout(() => worker.postMessage("late"));
</script></body>"""
WORKER = 'addEventListener("message", async (event) => { postMessage(await Promise.resolve(event.data + " was heard")); });'


def test_a_page_that_is_a_file_has_a_worker(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "iframe-worker.js").write_text((ROOT / "docs/iframe-worker.js").read_text())
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "index.html").write_text(PAGE)
    page = browser.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    expect(page.locator("#answers")).to_have_text("early was heard;late was heard;")
    page.close()


@pytest.mark.skipif(not SITE.exists(), reason="`make docs` makes the site")
def test_the_site_is_searched_without_a_server(browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(SITE.as_uri())
    page.locator("input.md-search__input").press_sequentially("shadow canary")
    expect(page.locator(".md-search-result__item a").first).to_have_attribute("href", re.compile("from-volcano.html"))
    assert all(url.startswith(("file:", "data:", "about:")) for url in asked), asked
    page.close()
