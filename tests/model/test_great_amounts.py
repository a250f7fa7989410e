"""How amounts are read and bounded, and what becomes of those beyond the bound."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.errors import InputError
from pumice.api.integers import as_ranges, index_set, integer
from pumice.api.manifests import Objects, read_stream
from pumice.api.quantity import MOST, QuantityError, quantity
from pumice.api.structs import decoder
from pumice.api.volcano import PodGroup
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import MOST_NAMES, MOST_OF_MANY, MOST_OF_ONE
from pumice.testing import cluster, hypernode, node, pod, podgroup, priority_class, schedule
from pumice.testing.scene import policy

ORDINARY = ("priority", "gang", "proportion", "predicates", "nodeorder", "overcommit")


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1500m", 1500),
        ("1.5Ki", 1_536_000),
        (".5", 500),
        ("1e3", 10**6),
        ("1E-3", 1),
        ("0.0001", 1),
        ("-0.5", -500),
        ("1e400", MOST * 1000),
        ("1e" + "9" * 50, MOST * 1000),
        ("-1e400", -MOST * 1000),
        ("1e-400", 1),
        ("0e400", 0),
        ("9" * 400, MOST * 1000),
        ("0" * 400 + "7", 7000),
        ("1." + "0" * 400 + "1", 1001),
        (10**400, MOST * 1000),
        (-(10**400), -MOST * 1000),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_an_amount_is_read_exactly_up_to_the_greatest_there_is(text: str | int, milli: int) -> None:
    assert quantity(text).milli == milli
    assert len(quantity(text).text) <= 64
    assert quantity(quantity(text).text).milli == milli, "it can be written and read again"


@pytest.mark.parametrize(
    "text", ["", "x" * 10**6, "9" * 10**6 + "x", "1e", "1e5Gi", "NaN", float("inf"), "٣", "1_0"], ids=lambda text: str(text)[:9]
)
def test_what_is_no_amount_is_told_in_a_short_line(text: str | float) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity(text)
    assert len(str(caught.value)) < 300


def test_reading_takes_no_longer_than_looking_at_the_text() -> None:
    def seconds(digits: int) -> float:
        begun = process_time()
        for text in ("7" * digits, "0." + "7" * digits, "1e" + "7" * digits, "7" * digits + "!"):
            try:
                quantity(text)
            except QuantityError:
                continue
        return process_time() - begun

    assert seconds(10**6) < 5, "quadratic work would take minutes"


def test_whole_numbers_that_anybody_may_have_written() -> None:
    assert [integer(text, 7) for text in ("12", "-3", "+4", "²", "--5", "", "9" * 5000, "9" * 19, "1.0")] == [12, -3, 4, 7, 7, 7, 7, 7, 7]
    assert index_set("0-2, 5,x,9-7,0-99999999999,-4") == {0, 1, 2, 5}
    assert as_ranges(index_set("0-2,5")) == "0-2,5"


def test_a_number_of_more_than_64_bits_is_told_with_its_field() -> None:
    text = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: %s}\n"
    with pytest.raises(
        InputError, match=r"x:4: .*PodGroup default/g, spec.minMember: the number has more than 64 bits; write a smaller one"
    ):
        read_stream((text % ("9" * 400)).encode(), "x", Objects())
    with pytest.raises(InputError, match=r"x:4: .*an integer of 5000 digits"):
        read_stream((text % ("9" * 5000)).encode(), "x", Objects())
    as_json = b'{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": %s}}'
    with pytest.raises(InputError, match="64 bits"):
        read_stream(as_json % (b"9" * 400), "x", Objects())
    assert decoder(PodGroup).decode(b'{"metadata": {"name": "g"}, "spec": {"minMember": 9223372036854775807}}').spec.min_member == 2**63 - 1


@pytest.mark.parametrize("amount", ["1e400", "9" * 400, str(MOST_OF_ONE), "50000000000000000"], ids="abcd")
@pytest.mark.parametrize("name", ["cpu", "memory", "example.com/card"])
def test_a_pod_beyond_all_bounds_fits_nowhere_ever_and_its_reason_tells_the_amount(name: str, amount: str) -> None:
    asking = pod("p").cpu(1).gang("g").having("spec", "containers", 0, "resources", "requests", name, value=amount)
    made = cluster(
        node("n").cpu(8).memory("8Gi").having("status", "allocatable", name, value="1e30"),
        podgroup("g"),
        asking,
        podgroup("h"),
        pod("q").cpu(1).gang("h"),
    )
    outcome = schedule(made, "enqueue, allocate, backfill", *ORDINARY)
    assert outcome.binds == {"default/q": "n"}, "the others go on"
    why = outcome.waiting["default/p"]
    told = amount if amount.isdigit() and len(amount) < 64 else MOST
    assert f"it asks for {name} {told}, more than a node can ever have" in why
    made.check()


def test_a_node_with_such_a_pod_is_full_until_it_goes() -> None:
    def room(made: Cluster) -> dict[str, str]:
        return dict(schedule(made, "enqueue, allocate", *ORDINARY).binds)

    immense = [
        pod(f"big{number}").having("spec", "containers", 0, "resources", "requests", "cpu", value="50000000000000000").on("n")
        for number in range(2)
    ]
    made = cluster(node("n").cpu(8), pod("old").cpu(4).on("n"), *immense, podgroup("g"), pod("p").cpu(1).gang("g"))
    assert room(made) == {}
    for number in range(2):
        made.remove("Pod", f"default/big{number}")
    made.check()
    assert made.nodes.row_idle(made.nodes.rows["n"])[0] == 4000
    made.put(*podgroup("h").build())
    made.put(*pod("wide").cpu(5).gang("h").build())
    assert room(made) == {"default/p": "n"}


def test_a_job_whose_minimum_no_cluster_has_is_not_let_in_and_is_told_why() -> None:
    group = podgroup("g").having("spec", "minResources", value={"cpu": "1", "memory": "1e400"})
    made = cluster(node("n").cpu(8).memory("8Gi"), group, pod("p").cpu(1).gang("g"))
    decided = cycle(made, policy("enqueue, allocate", ORDINARY), 100.0)
    assert decided.binds == []
    assert [event.message for event in decided.events] == ["minResources asks for memory 1e400, more than a cluster can ever have"]
    assert made.queues["default"].promised.sum() == 0
    assert schedule(made, "allocate", *ORDINARY).binds == {}, "not either where nobody is asked to let it in"
    assert made.jobs["default/g"].min_resources.max() == MOST_OF_MANY


@pytest.mark.parametrize(("amount", "pods"), [(2**43 - 1, 1100), (MOST_OF_ONE - 1, 300), (2**52, 300)], ids="abc")
def test_however_many_great_amounts_on_one_node_leave_nothing_behind(amount: int, pods: int) -> None:
    made = cluster(node("n").cpu(8), pod("old").cpu("1500m").on("n"))
    made.forget_changes()
    row = made.nodes.rows["n"]
    before = made.nodes.row_idle(row).tolist(), made.nodes.row_future_idle(row).tolist()
    great: Any = pod("x").having("spec", "containers", 0, "resources", "requests", "cpu", value=f"{amount}m").on("n").build()[1]
    for number in range(pods):
        made.put("Pod", replace(great, metadata=replace(great.metadata, name=f"x{number}")))
        if number % 100 == 7:
            made.check()
    for number in range(pods):
        made.move(made.tasks[f"default/x{number}"], status.RELEASING, row)
    made.check()
    assert made.nodes.row_future_idle(row).tolist() == before[1], "all of them are leaving"
    for number in range(pods):
        made.remove("Pod", f"default/x{number}")
    made.check()
    assert (made.nodes.row_idle(row).tolist(), made.nodes.row_future_idle(row).tolist()) == before


def test_names_that_no_node_offers_do_not_widen_every_vector_without_end() -> None:
    odd = pod("odd").cpu(1).gang("g")
    for number in range(5000):
        odd = odd.having("spec", "containers", 0, "resources", "requests", f"example.com/x{number}", value="1")
    made = cluster(podgroup("g"), odd)
    width = made.dimensions.width
    assert width <= 2 * MOST_NAMES
    made.put(*node("n").cpu(8).having("status", "allocatable", "example.com/real", value="2").build())
    real = pod("p").cpu(1).gang("h").having("spec", "containers", 0, "resources", "requests", "example.com/real", value="1")
    unknown = pod("q").cpu(1).gang("i").having("spec", "containers", 0, "resources", "requests", "example.com/none", value="1")
    great = podgroup("j").having("spec", "minResources", value={"example.com/neither": "1"})
    for each in (podgroup("h"), real, podgroup("i"), unknown, great, pod("r").cpu(1).gang("j")):
        made.put(*each.build())
    outcome = schedule(made, "enqueue, allocate, backfill", *ORDINARY)
    assert outcome.binds == {"default/p": "n"}, "what nodes offer always counts"
    assert "it asks for example.com/none 1, more than a node can ever have" in outcome.waiting["default/q"]
    assert made.dimensions.width <= 2 * width
    made.check()


def test_great_sums_follow_evictions_and_new_names() -> None:
    great = [
        pod(f"x{n}").having("spec", "containers", 0, "resources", "requests", "cpu", value="70368744177663m").on("n") for n in range(40)
    ]
    made = cluster(node("n").cpu(8), *great)
    victim = made.tasks["default/x0"]
    made.move(victim, status.RELEASING, made.nodes.rows["n"], evicted=True)
    made.check()
    made.forget_eviction(victim)
    made.check()
    wide = pod("wide").on("n")
    for number in range(30):
        wide = wide.having("spec", "containers", 0, "resources", "requests", f"example.com/x{number}", value="1")
    made.put(*wide.build())
    made.check()


def asking_for(name: str, cpu: str) -> Any:
    return pod(name).memory("1Gi").having("spec", "containers", 0, "resources", "requests", "cpu", value=cpu)


def test_a_sum_holds_as_many_pods_as_come() -> None:
    made = cluster(podgroup("g"), asking_for("p", f"{MOST_OF_ONE - 1}m").gang("g"))
    queue, job = made.queues["default"], made.jobs["default/g"]
    for _ in range(300_000):
        queue.add(job)
    assert queue.pending[0] == 300_001 * float(MOST_OF_ONE - 1)
    for _ in range(300_000):
        queue.take(job)
    assert queue.pending.tolist() == job.asked.tolist()
    made.check()


def test_what_nobody_can_have_counts_in_no_sum_of_jobs_and_queues() -> None:
    group = podgroup("g").phase("Running").having("spec", "minResources", value={"cpu": "1e30"})
    made = cluster(node("n").cpu(8), group, asking_for("p", "1e30").gang("g"), asking_for("q", "1e30").gang("g").on("n"))
    made.refresh_sums()
    queue = made.queues["default"]
    assert [sums[:2].tolist() for sums in (queue.held, queue.pending)] == [[0.0, 2.0**30]] * 2, "the other amounts are real"
    assert not queue.promised[:, 0].any() and queue.inqueue[0] == 0
    made.check()


@pytest.mark.parametrize("cpu", ["1e30", "60000000000"], ids=["beyond the bound", "just below"])
def test_a_pod_that_is_too_big_for_its_node_holds_up_nobody_elsewhere(cpu: str) -> None:
    rack = hypernode("rack").holds("n1", "n2", "n3")
    group = podgroup("g", 2).phase("Pending").having("spec", "minResources", value={"cpu": "4"}).topology(1)
    gang = [pod(f"p{number}").cpu(4).gang("g") for number in range(2)]
    made = cluster(*(node(name).cpu(8) for name in ("n1", "n2", "n3")), rack, asking_for("big", cpu).on("n1"), group, *gang)
    outcome = schedule(made, "enqueue, allocate", *ORDINARY, "network-topology-aware")
    assert outcome.phases["default/g"] in ("Inqueue", "Running")
    assert set(outcome.binds) == {"default/p0", "default/p1"}


def test_a_pod_that_is_too_big_for_its_node_can_be_evicted_for_a_more_important_one() -> None:
    made = cluster(
        node("n").cpu(8),
        priority_class("high", 1000),
        podgroup("low", 0).phase("Running"),
        asking_for("big", "1e30").gang("low").on("n").preemptable(True),
        podgroup("high").phase("Inqueue").priority_class("high"),
        pod("p").cpu(4).gang("high").priority(1000),
    )
    assert schedule(made, "allocate, preempt", "priority", "gang", "conformance", "predicates").evictions == ["default/big"]
    made.check()
