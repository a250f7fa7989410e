"""What can be done from the page on a whole cluster: by clicking, with the token of the printed address, and not without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.page.desk import Town, town
from tests.page.tab import NARROW, WIDE, Tab

pytestmark = pytest.mark.page
PATIENCE_S = 30.0
TOURS = ("batch.volcano.sh/jobs", "nodes", "queues.scheduling.volcano.sh", "priorityclasses.scheduling.k8s.io", "pods")


@pytest.fixture(scope="module")
def place() -> Iterator[Town]:
    with town() as made:
        yield made


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def opened(tab: Tab, place: Town, view: str = "") -> None:
    tab.page.goto(place.acting_url)
    tab.page.wait_for_selector("#connection[data-state=live]")
    tab.page.get_by_role("button", name="Close").click()
    if view:
        tab.page.goto(f"{place.url}#/{view}")


def press(tab: Tab, name: str) -> None:
    tab.page.get_by_role("button", name=name, exact=True).click()


def submitted(tab: Tab, place: Town, name: str, pods: int) -> None:
    """By the form, as anybody would."""
    opened(tab, place, "jobs")
    tab.page.get_by_text("Submit a job").click()
    tab.page.get_by_label("Name").fill(name)
    tab.page.get_by_label("Pods").fill(str(pods))
    tab.page.get_by_label("Start together").fill(str(pods))
    press(tab, "Submit")
    tab.page.wait_for_selector(f"h1:text-is('{name}')")


def test_the_tour_shows_a_gang_a_wait_a_preemption_and_a_reclaim_and_leaves_nothing(place: Town, tab: Tab) -> None:
    before = place.names("nodes"), place.names("queues.scheduling.volcano.sh")
    tab.page.goto(place.acting_url)
    step = tab.page.locator(".tour button.strong:not([disabled])")
    step.click()
    tab.page.wait_for_selector("a.node[aria-label^='tour-1: 8 of 8 GPUs']")
    tab.screenshots("gang")
    tab.check_accessible()
    step.click()
    tab.page.wait_for_selector("h1:text-is('tour-big')")
    expect(tab.page.locator(".answer li.refused").first).to_contain_text("nvidia.com/gpu")
    tab.screenshots("waits")
    step.click()
    expect(tab.page.locator("table", has_text="Evicted by schedule").locator("tbody tr")).to_have_count(2)
    step.click()
    tab.page.wait_for_selector("text=Evicted by reclaim")
    tab.screenshots("reclaim")
    step.click()
    tab.page.wait_for_selector(".tour", state="hidden")
    until(lambda: not any(name.startswith("tour-") for resource in TOURS for name in place.names(resource)))
    assert (place.names("nodes"), place.names("queues.scheduling.volcano.sh")) == before


def test_the_tour_opens_once_and_covers_nothing(place: Town, tab: Tab) -> None:
    tab.page.goto(place.acting_url)
    tour = tab.page.locator(".tour")
    expect(tour).to_be_visible()
    tab.screenshots("first")
    for size in (WIDE, NARROW):
        tab.page.set_viewport_size(size)
        below, above = tab.page.locator("main").bounding_box(), tour.bounding_box()
        assert below is not None and above is not None and above["y"] + above["height"] <= below["y"]
    tab.page.set_viewport_size(WIDE)
    press(tab, "Close")
    tab.page.goto("about:blank")
    tab.page.goto(place.acting_url)
    tab.page.wait_for_selector("button:text-is('Tour')")
    expect(tour).to_be_hidden()
    press(tab, "Tour")
    expect(tour).to_be_visible()


def test_a_job_is_submitted_suspended_resumed_and_deleted(place: Town, tab: Tab) -> None:
    submitted(tab, place, "mine", 2)
    tab.page.wait_for_selector("text=2 Running")
    tab.page.wait_for_selector("table:has(caption:text-is('Events')) td:text-is('Scheduled')")
    press(tab, "Suspend")
    tab.page.wait_for_selector("text=It is suspended")
    tab.page.get_by_role("link", name="Jobs").click()
    tab.page.get_by_role("link", name="mine", exact=True).click()
    press(tab, "Resume")
    tab.page.wait_for_selector("text=2 Running")
    press(tab, "Delete")
    tab.page.wait_for_selector("text=There is no such job")
    assert place.names("batch.volcano.sh/jobs") == set()


def test_what_is_refused_is_said_where_it_was_asked(place: Town, tab: Tab) -> None:
    opened(tab, place, "jobs")
    tab.page.get_by_text("Submit a job").click()
    tab.check_accessible()
    tab.page.get_by_label("Name").fill("odd")
    tab.page.get_by_label("Start together").fill("3")
    tab.tolerate("the server responded with a status of 4")
    press(tab, "Submit")
    tab.page.wait_for_selector(".said:has-text('minAvailable')")


def test_a_node_is_cordoned_fails_and_comes_back(place: Town, tab: Tab) -> None:
    opened(tab, place, "nodes/gpu8-0")
    press(tab, "Cordon")
    tab.page.wait_for_selector("text=no pod is placed here")
    assert place.object("nodes", "gpu8-0")["spec"]["unschedulable"] is True
    press(tab, "Let it fail")
    tab.page.wait_for_selector("text=its kubelet says nothing")
    tab.page.get_by_role("link", name="Cluster").click()
    tab.page.wait_for_selector("a.node.failed.cordoned")
    tab.page.locator("a.node.failed").click()
    press(tab, "Uncordon")
    press(tab, "Bring it back")
    tab.page.wait_for_selector("text=Let it fail")
    assert not place.object("nodes", "gpu8-0")["spec"].get("unschedulable")


def test_the_clock_runs_as_fast_as_one_says(place: Town, tab: Tab) -> None:
    opened(tab, place)
    speed = tab.page.get_by_label("Speed of the clock")
    expect(speed).to_have_value("1")
    speed.select_option("60")
    until(lambda: place.cluster.plane.clock.speed == 60)
    speed.select_option("1")
    until(lambda: place.cluster.plane.clock.speed == 1)


def test_without_the_token_one_only_looks(place: Town, tab: Tab) -> None:
    tab.page.goto(f"{place.url}#/nodes/gpu8-1")
    tab.page.wait_for_selector("text=read-only")
    for name in ("Cordon", "Tour"):
        expect(tab.page.get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_no_address_that_is_shared_has_the_token(place: Town, tab: Tab) -> None:
    opened(tab, place)
    expect(tab.page).to_have_url(f"{place.url}#/cluster")
    tab.page.reload()
    tab.page.wait_for_selector("button:text-is('Tour')")


def test_a_page_that_is_open_takes_the_token_when_its_address_is_given_it(place: Town, tab: Tab) -> None:
    tab.page.goto(place.url)
    tab.page.wait_for_selector("text=read-only")
    tab.page.goto(place.acting_url)
    tab.page.wait_for_selector("button:text-is('Tour')")
    expect(tab.page).to_have_url(f"{place.url}#/cluster")
