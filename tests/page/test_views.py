"""Every view in a browser: with data, empty, of 5,000 nodes, while the server restarts; by eye, keyboard and screen reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from pumice.testing.builders import GPU, node, podgroup, queue
from tests.page.clusters import HOSTILE, gang, large, pieces, plain, small
from tests.page.desk import Desk, desk
from tests.page.tab import NARROW, WIDE, Tab

pytestmark = pytest.mark.page
VIEWS = ("cluster", "queues", "jobs", "usage", "decisions", "policy", "defrag", "simulate")


@pytest.fixture(scope="module")
def decided() -> Iterator[Desk]:
    """One cycle has been decided: two gangs have their places, one waits."""
    with desk() as made:
        made.put(small())
        made.cycle()
        yield made


@pytest.fixture
def bare() -> Iterator[Desk]:
    with desk() as made:
        yield made


def opened(tab: Tab, desk: Desk, view: str) -> None:
    """A fresh document, so that nothing of the view before is left."""
    tab.page.goto("about:blank")
    tab.page.goto(f"{desk.url}#/{view}")
    tab.page.wait_for_selector("#connection[data-state=live]")
    tab.page.wait_for_selector("#clock:not(:empty)")


@pytest.mark.parametrize("view", [*VIEWS, "job/default/huge", "job/default/train", "pod/default/train-0", "nodes/gpu-0", "decisions/1"])
def test_a_view_is_drawn_and_axe_finds_nothing(decided: Desk, tab: Tab, view: str) -> None:
    opened(tab, decided, view)
    tab.screenshots(view)
    tab.check_accessible()


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_nothing_says_so(bare: Desk, tab: Tab, view: str) -> None:
    opened(tab, bare, view)
    tab.screenshots(view)
    expect(tab.page.locator("main")).not_to_be_empty()


def test_from_the_cluster_to_why_a_job_waits_it_is_one_click(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "")
    tab.page.get_by_role("link", name="huge").click()
    tab.page.wait_for_selector(".why:text-is('It waits: its 9 pods start together, and even empty nodes would hold only 8 (1 short)')")
    expect(tab.page.get_by_text("Its condition says: pod group is not ready")).to_be_visible()


def test_what_changes_right_after_an_answer_is_answered_as_well(bare: Desk, tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.page.expected_starts.MOST_WRITTEN", 0)  # no forecast, which is a change of its own
    bare.put(small())
    bare.cycle()
    opened(tab, bare, "job/default/huge")
    tab.page.wait_for_selector(".why:has-text('would hold only 8')")
    bare.remove("Node", "gpu-7")
    bare.cycle()
    tab.page.wait_for_selector(".why:has-text('would hold only 7')")


def test_a_job_that_waits_has_the_chain_of_questions_and_what_would_help(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "job/default/huge")
    expect(tab.page.locator(".chain .refused")).to_contain_text("is there a node for it?")
    expect(tab.page.locator(".answer")).to_contain_text("What would help:")


def test_what_would_let_a_job_start_is_asked_by_a_click(decided: Desk, tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.page.answers.LONGEST_SEARCH_S", 60.0)
    opened(tab, decided, "job/default/huge")
    tab.page.get_by_role("button", name="What would let it start now?").click()
    rows = tab.page.locator("table", has_text="Changes that were each tried").locator("tbody tr")
    expect(rows.first).to_contain_text("a gang of ")
    tab.screenshots("options")


def test_when_a_job_will_start_is_told_of_all_and_asked_by_a_click(bare: Desk, tab: Tab) -> None:
    bare.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), queue("q").build()])
    bare.put([*gang("first", "q", 1, 8, ("n1",)), *gang("second", "q", 1, 8)])
    bare.cycle()
    opened(tab, bare, "jobs")
    tab.page.wait_for_selector("tr:has-text('second') td[title^='With a chance of 90 %: in ']:has-text('in ')")
    tab.screenshots("jobs")
    tab.page.get_by_role("link", name="second").click()
    tab.page.wait_for_selector("dd:has-text('with a chance of 90 %')")
    tab.page.get_by_role("button", name="When will it start?").click()
    tab.page.wait_for_selector("text=As things go, it starts within")


def test_a_plan_that_empties_nodes_shows_them_before_and_after(bare: Desk, tab: Tab) -> None:
    bare.put(pieces())
    bare.cycle()
    opened(tab, bare, "defrag")
    tab.page.get_by_role("button", name="Make a plan").click()
    gains = tab.page.locator("table", has_text="What it gains")
    expect(gains.locator("tr", has_text="Empty nodes")).to_have_text("Empty nodes (could be switched off)02")
    moves = tab.page.locator("table", has_text="Moves, in their order").locator("tbody tr")
    expect(moves).to_have_count(2)
    expect(moves.first).to_contain_text("default/web-")
    emptied = tab.page.get_by_role("region", name="After").locator("a.node[aria-label*=': 0 of 8 GPUs used']")
    expect(emptied).to_have_count(2)
    expect(tab.page.get_by_role("region", name="Before").locator("a.node[aria-label*=': 2 of 8 GPUs used, by web']")).to_have_count(
        3
    )  # one stays as it is
    tab.screenshots("plan")
    tab.check_accessible()


def test_the_policy_tells_what_lint_finds(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "policy")
    expect(tab.page.locator(".findings li.error")).to_have_text(re.compile("^error: *podgroup/default/huge it can never run here"))


def test_one_goes_back_over_the_last_minutes_and_forth(bare: Desk, tab: Tab) -> None:
    opened(tab, bare, "cluster")
    for name in ("n1", "n2", "n3"):
        bare.put([node(name).cpu(8).build()])
        tab.page.wait_for_selector(f"a.node[aria-label^={name}]")
    tab.page.get_by_role("button", name="Pause").click()
    tab.page.wait_for_selector(".replay input:not([max='0'])")
    for name in ("n4", "n5"):
        bare.put([node(name).cpu(8).build()])
    nodes = tab.page.locator("a.node")
    expect(nodes).to_have_count(3)
    earlier = tab.page.get_by_role("button", name="earlier")
    for left in (2, 1):
        earlier.click()
        expect(nodes).to_have_count(left)
    expect(nodes).to_have_attribute("aria-label", re.compile("^n1:"))
    expect(tab.page.locator("#connection")).to_have_text("paused")
    tab.screenshots("then")
    tab.check_accessible()
    tab.page.get_by_label("Instant").press("End")
    expect(nodes).to_have_count(3)
    tab.page.get_by_role("button", name="Go on").click()
    tab.page.wait_for_selector("a.node[aria-label^=n5]")
    expect(tab.page.locator("#connection")).to_have_text("live")


def test_a_page_that_was_just_opened_goes_back_as_well(bare: Desk, tab: Tab) -> None:
    for name in ("n1", "n2"):
        bare.put([node(name).cpu(8).build()])
        tab.page.request.get(f"{bare.url}api/snapshot")
    opened(tab, bare, "cluster")
    expect(tab.page.locator("a.node")).to_have_count(2)
    tab.page.get_by_role("button", name="Pause").click()
    tab.page.wait_for_selector(".replay input:not([max='0'])")
    tab.page.get_by_label("Instant").press("Home")
    expect(tab.page.locator("a.node")).to_have_count(1)


def test_a_pod_shows_how_nodes_score_and_orders_them(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "pod/default/train-0")
    expect(tab.page.locator(".facts dd")).to_contain_text(["Binding", "train", "gpu-3", "8 GPUs, 4 CPUs, 16 Gi memory"])
    tab.page.get_by_role("button", name="node", exact=True).click()
    expect(tab.page.locator("th[aria-sort=ascending]")).to_have_text(re.compile("^node"))
    expect(tab.page.locator("tbody tr").first).to_have_text(re.compile("^gpu-"))


def test_who_is_not_there_is_said_to_be_gone(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "job/default/nobody")
    expect(tab.page.locator("main")).to_contain_text("no such job")
    opened(tab, decided, "nodes/nobody")
    expect(tab.page.locator("main")).to_contain_text("no such node")


def test_a_job_shows_where_its_pods_are_and_what_was_decided(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "job/default/train")
    expect(tab.page.locator("table", has_text="Role").locator("tbody tr")).to_have_count(2)
    expect(tab.page.locator("table", has_text="Decision")).to_contain_text("by allocate")


def test_jobs_are_searched_filtered_and_ordered_and_the_address_says_how(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "jobs?queue=prod")
    rows = tab.page.locator("tbody tr")
    reasons = tab.page.get_by_role("columnheader", name="Why it waits")
    expect(rows).to_have_count(2)
    tab.page.get_by_label("State").select_option("waiting")
    expect(rows).to_have_text([re.compile("^huge")])
    expect(reasons).to_be_visible()
    tab.page.get_by_label("State").select_option("running")
    expect(reasons).to_be_hidden()
    tab.page.get_by_label("State").select_option("")
    tab.page.get_by_label("Queue").select_option("")
    tab.page.get_by_role("button", name="Job", exact=True).click()
    expect(rows).to_have_text([re.compile(f"^{name}") for name in ("huge", "serve", "train")])
    tab.page.get_by_label("Search").fill("rai")
    expect(rows).to_have_count(1)
    expect(tab.page).to_have_url(re.compile("#/jobs[?]sort=name&q=rai$"))


def test_on_a_phone_jobs_say_why_they_wait_and_nothing_is_scrolled_sideways(decided: Desk, tab: Tab) -> None:
    tab.page.set_viewport_size(NARROW)
    opened(tab, decided, "jobs")
    expect(tab.page.locator("tbody tr")).to_have_count(3)
    row = tab.page.locator("tbody tr", has_text="huge")
    seen = row.locator("td.words").bounding_box()
    assert seen is not None and seen["x"] >= 0 and seen["x"] + seen["width"] <= NARROW["width"]
    assert _sideways(tab) == 0
    tab.screenshots("jobs")
    tab.page.set_viewport_size(NARROW)
    for name in ("serve", "train"):
        box = tab.page.locator("tbody tr", has=tab.page.get_by_role("link", name=name, exact=True)).bounding_box()
        assert box is not None and box["height"] < 100, "no empty space"
    tab.check_accessible()
    tab.page.set_viewport_size(WIDE)


def test_on_a_phone_queues_are_read_without_scrolling_sideways(decided: Desk, tab: Tab) -> None:
    tab.page.set_viewport_size(NARROW)
    opened(tab, decided, "queues")
    row = tab.page.locator(".queues tr", has=tab.page.get_by_role("rowheader", name="prod", exact=True))
    assert _sideways(tab) == 0
    for cell in row.locator(":is(td, th):not(:empty)").all():
        seen = cell.bounding_box()
        assert seen is not None and seen["x"] >= 0 and seen["x"] + seen["width"] <= NARROW["width"]
    expect(row.locator("td[data-name=Deserved]")).not_to_be_empty()
    tab.screenshots("queues")
    tab.page.set_viewport_size(NARROW)
    tab.check_accessible()
    tab.page.set_viewport_size(WIDE)


def _sideways(tab: Tab) -> int:
    """By how many pixels the table is wider than the screen."""
    found: int = tab.page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.rows'))")
    return found


def test_a_small_cluster_uses_the_room(bare: Desk, tab: Tab) -> None:
    bare.put(node(f"n{n}").cpu(8).gpu(8).build() for n in range(4))
    opened(tab, bare, "cluster")
    expect(tab.page.locator("a.node")).to_have_count(4)
    right = "['a.node:last-child', '.nodes'].map((one) => document.querySelector(one).getBoundingClientRect().right)"
    used = tab.page.evaluate(right)
    assert used[0] == pytest.approx(used[1], abs=2)
    tab.screenshots("cluster")


@pytest.mark.parametrize(
    "view, command",
    [
        ("cluster", "kubectl get nodes"),
        ("queues", "pumice queue list"),
        ("jobs", "pumice job list -A --eta"),
        ("usage", "pumice usage DIR --by queue --per day"),
        ("decisions/1", "kubectl get events -A"),
        ("policy", "pumice lint"),
        ("job/default/huge", "pumice why podgroup/default/huge"),
        ("pod/default/train-0", "pumice why pod/default/train-0"),
        ("nodes/gpu-0", "kubectl describe node gpu-0"),
    ],
)
def test_a_view_names_the_command_that_shows_the_same(decided: Desk, tab: Tab, view: str, command: str) -> None:
    opened(tab, decided, view)
    expect(tab.page.locator(".shell code")).to_have_text(command)


@pytest.mark.parametrize(
    "words, found",
    [("hug", "huge"), ("GPU-3", "Node gpu-3"), ("queue prod", "Jobs"), ("train-1", "Pod train-1"), ("nobody", "Jobs")],
)
def test_a_job_a_node_a_queue_a_pod_is_found_from_every_view(decided: Desk, tab: Tab, words: str, found: str) -> None:
    opened(tab, decided, "policy")
    box = tab.page.get_by_label("Find anything")
    box.fill(words)
    box.press("Enter")
    tab.page.wait_for_selector(f"h1:text-is('{found}')")


def test_queues_stand_below_their_parents(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "queues")
    expect(tab.page.locator(".queues th[scope=row]")).to_have_text(["prod", "research", "vision"])
    for name in ("vision", "research"):  # a parent has what its children have
        expect(tab.page.get_by_role("img", name=f"{name} holds 16")).to_have_count(1)


def test_a_queue_s_row_says_what_it_holds_deserves_borrows_and_is_guaranteed(bare: Desk, tab: Tab) -> None:
    made = queue("q").deserves(**{GPU: 3}).capability(**{GPU: 7}).having("spec", "guarantee", "resource", value={GPU: 1})
    bare.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), made.build()])
    bare.put(gang("g", "q", 1, 5, ("n1",)))
    bare.put([podgroup("later", 1).queue("q").phase("Pending").having("spec", "minResources", value={GPU: 6}).build()])
    opened(tab, bare, "queues?resource=gpu")
    row = tab.page.locator(".queues tr", has=tab.page.get_by_role("rowheader", name="q", exact=True))
    expect(row.locator("td.number")).to_have_text(["5", "3", "2", "6", "1", "7", "1", "2", "1"])


def test_the_last_hour_shows_what_was_held_before_the_browser_came(bare: Desk, tab: Tab) -> None:
    bare.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), queue("a").build(), queue("q").build()])
    tab.page.request.get(f"{bare.url}api/snapshot")  # the server looks, and nothing is held
    bare.put(gang("g", "q", 1, 5, ("n1",)))
    tab.page.request.get(f"{bare.url}api/snapshot")
    opened(tab, bare, "queues")
    chart = tab.page.locator("figure", has_text="The last hour")
    chart.locator("summary").click()
    expect(chart.locator("tbody tr")).to_have_text([re.compile(rf":\d\d{held}$") for held in (0, 5, 5)])
    expect(chart.locator("text.axis")).to_have_text(["GPUs", "time"])


def test_ticks_and_names_of_axes_are_inside_their_chart(bare: Desk, tab: Tab) -> None:
    bare.put([node("n1").cpu(8).memory("640Gi").gpu(8).build(), queue("q").build()])
    opened(tab, bare, "queues?resource=memory")
    bare.put(gang("g", "q", 1, 5, ("n1",)))
    tab.page.wait_for_selector(".chart path.line", state="attached")
    drawn = """() => new Promise((done) => import("/charts.js").then(({ lines }) => {
      const x = Array.from({ length: 60 }, (_, index) => 1764150000 + index * 60.7);
      const series = [{ name: "a", y: x.map((at) => 2e9 * (at % 7)) }];
      const figure = lines({ title: "Tried", x, series, xFormat: "clock", xLabel: "time", yLabel: "bytes" });
      document.querySelector("main").append(figure);
      const look = () => (figure.querySelector(".grid") ? done([...document.querySelectorAll(".chart svg text")].filter((text) => {
        const [word, picture] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
        return word.left < picture.left - 0.5 || word.right > picture.right + 0.5 || word.bottom > picture.bottom + 0.5;
      }).map((text) => text.textContent)) : requestAnimationFrame(look));
      look();
    }))"""
    for width in (1280, 390):
        tab.page.set_viewport_size({"width": width, "height": 860})
        assert tab.page.evaluate(drawn) == []
    tab.page.set_viewport_size(WIDE)


def test_pods_without_a_podgroup_are_coloured_counted_and_named_by_their_owner(bare: Desk, tab: Tab) -> None:
    bare.put(plain(nodes=8, pods_each=0, pending=24))
    bare.cycle()
    opened(tab, bare, "cluster")
    expect(tab.page.locator(".legend li")).to_have_text(["default", "no queue"])
    tones = tab.page.evaluate("[...new Set([...document.querySelectorAll('.cells i:not(.idle)')].map((cell) => cell.className))].sort()")
    legend = tab.page.evaluate("[...document.querySelectorAll('.legend i')].map((swatch) => swatch.classList[1]).sort()")
    assert tones == legend
    decided = tab.page.get_by_role("region", name="Last decisions").locator("li")
    expect(decided).to_have_text(re.compile("24 bound *web$"))
    tab.screenshots("cluster")
    opened(tab, bare, "queues")
    row = tab.page.locator(".queues tr", has=tab.page.get_by_role("rowheader", name="no queue", exact=True))
    expect(row.locator("td.number").first).to_have_text("49")
    expect(tab.page.locator("figure", has_text="The last hour").locator(".legend")).to_contain_text("no queue")
    tab.screenshots("queues")
    opened(tab, bare, "jobs")
    tab.page.get_by_role("link", name="web", exact=True).click()
    tab.page.wait_for_selector("h1:text-is('web')")
    expect(tab.page.locator("table", has_text="Role").locator("tbody tr")).to_have_count(24)
    tab.screenshots("job")


def test_five_thousand_pods_of_a_deployment_are_told_alike_everywhere(bare: Desk, tab: Tab) -> None:
    """On 1,000 nodes of CPUs: their colour is in the legend, and all numbers agree."""
    bare.put(plain(1000, 5, pending=5000))
    bare.cycle()
    opened(tab, bare, "cluster")
    expect(tab.page.locator("a.node")).to_have_count(1000)
    expect(tab.page.locator(".legend li")).to_have_text(["default", "no queue"])
    tones = tab.page.evaluate("[...new Set([...document.querySelectorAll('a.node')].map((node) => node.classList[1]))].sort()")
    assert set(tones) <= set(tab.page.evaluate("[...document.querySelectorAll('.legend i')].map((swatch) => swatch.classList[1])"))
    used = _numbers(tab.page.locator(".figures").text_content())[1]
    bound = _numbers(tab.page.locator("[aria-label='Last decisions'] .since").first.text_content())[0]
    tab.screenshots("cluster")
    assert used == 2 * 5000 + 1 + 2 * 4 + 2 * bound, "the pods that ran, the one of nobody, the gang, and those that were bound"
    opened(tab, bare, "queues")
    rows = tab.page.locator("table.queues tbody tr")
    expect(rows).to_have_count(2)
    held, asked = ([_numbers(row.locator("td.number").nth(column).text_content())[0] for row in rows.all()] for column in (0, 3))
    assert held == [2 * 4, used - 2 * 4] and asked == [0, 2 * (5000 - bound)]
    tab.screenshots("queues")
    opened(tab, bare, "jobs?q=web")
    counts = tab.page.locator("tbody tr", has_text="web").locator("td[data-name=Pods]")
    expect(counts).to_contain_text(f"{bound} Binding")
    assert sum(_numbers(counts.text_content())) == 10_000


def _numbers(words: str | None) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", words or "")]


def test_of_many_decisions_the_first_are_listed_and_all_are_counted(bare: Desk, tab: Tab) -> None:
    bare.put(node(f"n{n}").cpu(64).memory("512Gi").gpu(8).build() for n in range(30))
    bare.put([queue("q").build(), *(each for n in range(240) for each in gang(f"g{n}", "q", 1, 1))])
    bare.cycle()
    opened(tab, bare, "cluster")
    expect(tab.page.get_by_role("region", name="Last decisions").locator("li p")).to_have_text(re.compile("and 237 more jobs$"))
    tab.page.get_by_role("region", name="Last decisions").get_by_role("link").click()
    expect(tab.page.locator("caption", has_text="Bound by allocate")).to_have_text("Bound by allocate, the first 200 of 240")


def test_a_cycle_is_told_action_by_action(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "decisions")
    tab.page.get_by_role("link", name="1", exact=True).click()
    expect(tab.page.locator(".actions h2", has_text=re.compile(r"allocate.* 5 bound, 0 evicted"))).to_have_count(1)
    tab.page.get_by_role("navigation", name="Actions").get_by_role("link", name="allocate").click()
    tab.page.wait_for_selector("a[aria-current=step]:text-is('allocate')")
    expect(tab.page.locator(".actions h2")).to_have_count(1)
    tab.page.get_by_role("link", name="train-0").click()
    tab.page.wait_for_selector("h1:text-is('Pod train-0')")
    tab.page.goto(f"{decided.url}#/decisions")
    tab.page.locator(".timeline a").click()
    tab.page.wait_for_selector("h1:text-is('Cycle 1')")


def test_nodes_are_walked_with_arrow_keys_and_opened_with_enter(decided: Desk, tab: Tab) -> None:
    opened(tab, decided, "cluster")
    tab.page.locator("a.node").first.focus()
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.locator(".cluster .readout")).to_have_text(re.compile("^gpu-1: "))
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("h1:text-is('Node gpu-1')")


def test_names_from_the_cluster_are_text(bare: Desk, tab: Tab) -> None:
    bare.put([node(HOSTILE).cpu(4).gpu(8).build(), queue(HOSTILE).build(), *gang(HOSTILE, HOSTILE, 2, 8)])
    bare.cycle()
    for view in sorted(VIEWS, key="jobs".__eq__):
        opened(tab, bare, view)
        expect(tab.page.locator("main")).not_to_be_empty()
        expect(tab.page.locator("img[src], main script")).to_have_count(0)
    expect(tab.page.locator("tbody")).to_contain_text(HOSTILE)
    tab.page.get_by_role("link", name=HOSTILE).click()
    expect(tab.page.locator("h1")).to_contain_text(HOSTILE)


def test_long_names_make_no_view_wider_than_the_screen(bare: Desk, tab: Tab) -> None:
    node_name, queue_name, job = "n" * 253, "q" * 63, "j" * 240
    bare.put([node(node_name).cpu(64).memory("512Gi").gpu(8).build(), queue(queue_name).build(), *gang(job, queue_name, 2, 8)])
    bare.cycle()
    for view in (*VIEWS, f"job/default/{job}", f"pod/default/{job}-0", f"nodes/{node_name}", "decisions/1"):
        opened(tab, bare, view)
        expect(tab.page.locator("main")).not_to_be_empty()
        for size in (WIDE, NARROW):
            tab.page.set_viewport_size(size)
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= size["width"], view


def test_changes_arrive_while_one_looks_and_not_while_paused(bare: Desk, tab: Tab) -> None:
    opened(tab, bare, "cluster")
    bare.put([node("n1").cpu(8).memory("64Gi").gpu(8).build(), queue("q").build()])
    tab.page.wait_for_selector("a.node")
    tab.page.get_by_role("button", name="Pause").click()
    bare.put(gang("late", "q", 1, 8))
    bare.cycle()
    tab.page.get_by_role("button", name="Go on").click()
    tab.page.wait_for_selector("a.node[aria-label*=late]")
    bare.remove("Pod", "default/late-0")
    tab.page.wait_for_selector("a.node:not([aria-label*=late])")
    bare.remove("Node", "n1")
    tab.page.wait_for_selector("a.node", state="detached")


def test_a_server_that_restarts_is_told_of_and_read_anew(bare: Desk, tab: Tab) -> None:
    bare.put([node("before").cpu(8).build()])
    opened(tab, bare, "cluster")
    tab.page.wait_for_selector("a.node[aria-label^=before]")
    tab.tolerate("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE")
    bare.stop()
    tab.page.wait_for_selector("#connection[data-state=lost]")
    tab.screenshots("away")
    bare.start(bare.port)
    bare.put([node("after").cpu(8).build()])
    tab.page.wait_for_selector("a.node[aria-label^=after]")
    expect(tab.page.locator("#connection")).to_have_text("live again")
    expect(tab.page.locator("a.node")).to_have_count(1)


def test_five_thousand_nodes_and_twenty_thousand_pods(bare: Desk, tab: Tab) -> None:
    bare.put(large())
    for view in ("jobs", "cluster?group=yes", "cluster"):
        opened(tab, bare, view)
        tab.page.wait_for_selector("a.node, tbody tr", state="attached")
        for scheme in ("dark", "light"):
            tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            tab.page.screenshot(path=tab.file(f"{view} {scheme}"))
    expect(tab.page.locator("a.node")).to_have_count(5000)
    tab.page.locator("a.node").first.hover()
    told = tab.page.locator(".cluster .readout")
    expect(told).to_have_text(re.compile("^node-0: "))
    place = told.bounding_box()
    assert place is not None and place["y"] < WIDE["height"], "where it is seen"
    bare.remove("Pod", "default/job-0-0")
    tab.page.wait_for_selector("a.node[aria-label^='node-0: 6 of 8 GPUs']")


def test_without_jobs_in_the_state_they_are_known_by_their_podgroups(bare: Desk, tab: Tab) -> None:
    """A scheduler beside another API server watches PodGroups, not Jobs: name, state and command are those of the Job all the same."""
    bare.put(node(f"n{n}").cpu(4).build() for n in range(2))
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "controller": True}
    made = podgroup("train-5f7c", 3).having("metadata", "ownerReferences", value=[owner])
    bare.put([queue("default").build(), made.having("spec", "minResources", value={"cpu": "30"}).build()])
    bare.cycle()
    opened(tab, bare, "jobs")
    row = tab.page.locator("tbody tr")
    expect(row).to_contain_text("train")
    expect(row).to_contain_text("waiting (Pending)")
    row.get_by_role("link", name="train", exact=True).click()
    tab.page.wait_for_selector("h1:text-is('train')")
    expect(tab.page.locator(".why")).to_contain_text("it asks for 30")
    expect(tab.page.locator(".shell code")).to_have_text("pumice why job/default/train")
