"""vGPU: which cards a pod gets by slots, memory, cores and its own wishes, what is written on it, and the lock of a node."""

from __future__ import annotations

import pytest
from scene import Thing, binds, cycle_on, opened
from sharing import IDS, INDEX, gpu_node, picks, rules

from pumice.scheduler.model import status
from pumice.scheduler.plugins.volcano.deviceshare.cards import Card, CardChoice, CardShortage
from pumice.scheduler.plugins.volcano.deviceshare.vgpu import Need, VgpuRequest
from pumice.testing import NOW, NodeBuilder, cluster, node, pod, podgroup, refusals, scores

A100, T4 = "NVIDIA-A100", "NVIDIA-T4"


def card(
    name: str = "u", model: str = A100, slots: int = 10, memory: int = 8000, used: tuple[int, int, int] = (0, 0, 0), *marks: str
) -> Card:
    """`used`: slots, memory, cores."""
    return Card(name, model, slots, memory, *used, frozenset(marks))


@pytest.mark.parametrize(
    ("need", "of", "fits"),
    [
        (Need(1, 3000, 0, 0), card(), True),
        (Need(1, 8001, 0, 0), card(), False),
        (Need(1, 3000, 0, 0), card(used=(1, 5000, 0)), True),
        (Need(1, 3001, 0, 0), card(used=(1, 5000, 0)), False),
        (Need(1, 1, 0, 0), card(slots=2, used=(2, 2, 0)), False),
        (Need(1, 0, 50, 0), card(used=(1, 4000, 0)), True),
        (Need(1, 0, 50, 0), card(used=(1, 4001, 0)), False),
        (Need(1, 0, 100, 0), card(used=(1, 1, 0)), False),
        (Need(1, 1, 0, 40), card(used=(1, 1, 60)), True),
        (Need(1, 1, 0, 41), card(used=(1, 1, 60)), False),
        (Need(1, 1, 0, 100), card(), True),
        (Need(1, 1, 0, 100), card(used=(1, 1, 0)), False),
        (Need(1, 1, 0, 0), card(used=(1, 1, 100)), False),
    ],
)
def test_a_card_fits_by_slots_memory_and_cores(need: Need, of: Card, fits: bool) -> None:
    assert need.fits(of) is fits


@pytest.mark.parametrize(
    ("filters", "chosen"),
    [
        ({}, [0, 1, 2]),
        ({"models": ("a100",)}, [0, 1]),
        ({"models": ("a100", "t4")}, [0, 1, 2]),
        ({"models": ("v100",)}, []),
        ({"other_models": ("a100",)}, [2]),
        ({"other_models": ("nvidia",)}, []),
        ({"models": ("nvidia",), "other_models": ("t4",)}, [0, 1]),
        ({"ids": ("u1", "u2")}, [1, 2]),
        ({"ids": ("u",)}, []),  # UUIDs are exact
        ({"other_ids": ("u1",)}, [0, 2]),
        ({"ids": ("u0", "u1"), "other_ids": ("u1",)}, [0]),
        ({"marks": frozenset(["rule 1"])}, [0, 2]),
        ({"marks": frozenset(["rule 2"])}, [0, 1, 2]),
    ],
)
def test_pods_choose_and_avoid_cards(filters: Thing, chosen: list[int]) -> None:
    cards = [card("u0"), card("u1", A100, 10, 8000, (0, 0, 0), "rule 1"), card("u2", T4)]
    for at in range(3):
        alone = VgpuRequest((Need(1, 100, 0, 0),), "", **filters)
        others = [c if position == at else c._replace(slots=0) for position, c in enumerate(cards)]
        assert isinstance(alone.choose(tuple(others)), CardChoice) is (at in chosen)


@pytest.mark.parametrize(
    ("policy", "chosen", "score"),
    [
        ("", [[3]], 0.0),  # the last that fits
        ("binpack", [[1]], 75.0),
        ("spread", [[0]], 100.0),
    ],
)
def test_the_policy_says_which_card_and_how_good_it_is(policy: str, chosen: list[list[int]], score: float) -> None:
    cards = (card(), card(used=(1, 4000, 0)), card(used=(1, 7000, 0)), card(used=(2, 2000, 0)))
    choice = VgpuRequest((Need(1, 2000, 0, 0),), policy).choose(cards)
    assert isinstance(choice, CardChoice)
    assert [[at for at, _, _ in container] for container in choice.picks] == chosen
    assert choice.score == score


def test_containers_are_served_in_turn_each_with_different_cards() -> None:
    request = VgpuRequest((Need(2, 3000, 0, 50), Need(1, 0, 50, 50)), "binpack")
    assert picks(request, card(), card(), card()) == [[0, 1], [0]]
    assert picks(request, card(), card(memory=2000)) == "node(s) had fewer than 2 GPU card(s) with 3000 MiB and 50% of the cores left"
    assert picks(VgpuRequest((Need(1, 0, 100, 0),), ""), card(memory=0, slots=0)).endswith("1 GPU card(s) with 100% of the memory left")
    assert picks(VgpuRequest((Need(1, 0, 100, 0),), "binpack"), card(memory=0)) == [[0]]


def test_cards_in_another_mode_are_left_alone() -> None:
    assert picks(VgpuRequest((Need(1, 1, 0, 0),), "", "mig"), card()) == "node(s) had no GPU cards in mode mig"
    assert not isinstance(VgpuRequest((Need(1, 1, 0, 0),), "", "hami-core").choose((card(),)), CardShortage)


VGPU = rules(VGPUEnable=True)


def vgpu_node(name: str, *cards: str, handshake: str | None = "Reported 2025.12.31 23:59:00") -> NodeBuilder:
    """Cards as `uuid,count,memory,type,health`; the handshake too is an annotation."""
    notes = {"volcano.sh/node-vgpu-register": "".join(f"{entry}:" for entry in cards or (f"{name}-0,10,8000,{A100},true",))}
    if handshake is not None:
        notes["volcano.sh/node-vgpu-handshake"] = handshake
    return node(name).cpu(8).volcano(vgpu_number=20).annotations(notes)


@pytest.mark.parametrize(
    ("cards", "handshake", "usable"),
    [
        ((), "Reported 2025.12.31 23:59:00", True),
        ((), None, True),
        ((), "Requesting_2025.12.31 23:59:00", True),
        ((), "Requesting_2025.12.31 23:58:59", False),
        ((), "Requesting_lately", False),
        ((), "Deleted_2025.12.31 23:59:59", False),
        (("u,10,8000,A100,false",), None, False),
        (("u,10,8000,A100",), None, False),
        (("u,ten,8000,A100,true",), None, False),
        (("u,10,8000,A100,true,hami-core",), None, True),
        (("u,10,8000,A100,true,mig",), None, False),
    ],
)
def test_a_node_has_the_cards_that_it_registers_while_its_device_plugin_answers(
    cards: tuple[str, ...], handshake: str | None, usable: bool
) -> None:
    session = opened(
        cluster(vgpu_node("n", *cards, handshake=handshake), podgroup("g").admitted(), pod("p").gang("g").cpu(1).volcano(vgpu_number=1)),
        VGPU,
    )
    assert refusals(session, "p") == ({} if usable else {"n": "node not initialized with device vgpu"})


def container(requests: Thing | None = None, **limits: str) -> Thing:
    named = {f"volcano.sh/vgpu-{key}": value for key, value in limits.items()}
    return {
        "name": "c",
        "resources": {"limits": named, "requests": {f"volcano.sh/vgpu-{key}": value for key, value in (requests or {}).items()}},
    }


@pytest.mark.parametrize(
    ("containers", "ids"),
    [
        ([container(number="1")], "n-0,NVIDIA,8000,0:"),
        ([container(memory="3000")], "n-0,NVIDIA,3000,0:"),
        ([container(number="1", memory="3000", cores="30")], "n-0,NVIDIA,3000,30:"),
        ([container(**{"number": "1", "memory-percentage": "25"})], "n-0,NVIDIA,2000,0:"),
        ([container({"memory": "500"}, number="1")], "n-0,NVIDIA,500,0:"),
        ([container(cores="10")], None),
        ([container(memory="1"), {"name": "plain"}, container(memory="2", cores="5")], "n-0,NVIDIA,1,0:;n-0,NVIDIA,2,5:"),
    ],
)
def test_what_a_pod_gets_is_written_with_its_binding(containers: list[Thing], ids: str | None) -> None:
    made = cluster(
        vgpu_node("n"),
        podgroup("g").admitted(),
        pod("p").gang("g").containers(*containers, {"name": "z", "resources": {"requests": {"cpu": "1"}}}),
    )
    (bind,) = cycle_on(made, VGPU).binds
    moment = str(int(NOW))
    full = {
        "vgpu-node": "n",
        "vgpu-time": moment,
        "bind-phase": "allocating",
        "bind-time": moment,
        "vgpu-ids-new": ids,
        "devices-to-allocate": ids,
    }
    assert bind.annotations == ({} if ids is None else {f"volcano.sh/{key}": value for key, value in full.items()})


def test_memory_and_cores_of_cards_never_enter_resource_vectors() -> None:
    made = cluster(
        vgpu_node("n"),
        podgroup("g").admitted(),
        pod("p").gang("g").cpu(1).volcano(vgpu_number=1, vgpu_memory=1, vgpu_cores=1, vgpu_memory_percentage=1),
    )
    assert [name for name in made.dimensions.names if "vgpu" in name] == ["volcano.sh/vgpu-number"]


def test_running_pods_hold_what_their_annotations_say() -> None:
    holder = pod("h").gang("g").on("n").cpu(1).volcano(vgpu_number=1).annotation(IDS, "n-0,NVIDIA,6000,40:;gone,NVIDIA,1,1:n-0,NVIDIA,x,:")
    things = [pod("fits").gang("g").cpu(1).volcano(vgpu_memory=2000, vgpu_cores=60), pod("more").gang("g").cpu(1).volcano(vgpu_memory=2001)]
    session = opened(cluster(vgpu_node("n"), podgroup("g").admitted(), holder, *things), VGPU)
    assert [name for name in ("fits", "more") if refusals(session, name)] == ["more"]


@pytest.mark.parametrize(("policy", "node_of_choice", "score"), [("binpack", "used", 750.0), ("spread", "empty", 1000.0)])
def test_nodes_are_rated_by_the_policy(policy: str, node_of_choice: str, score: float) -> None:
    holder = pod("h").gang("g").on("used").cpu(1).volcano(vgpu_memory=4000).annotation(IDS, "used-0,NVIDIA,4000,0:")
    made = cluster(
        node("none").cpu(8),
        vgpu_node("empty"),
        vgpu_node("used"),
        podgroup("g").admitted(),
        holder,
        pod("p").gang("g").cpu(1).volcano(vgpu_memory=2000),
    )
    conf = rules(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=10)
    totals = scores(opened(made, conf), "p")
    assert max(totals, key=lambda name: totals[name]) == node_of_choice
    assert totals[node_of_choice] == score
    assert binds(cycle_on(made, conf)) == {"p": node_of_choice}


@pytest.mark.parametrize(("memory", "score"), [(1000, 13.0), (3000, 38.0), (990, 12.0)])
def test_ratings_are_rounded_halves_up(memory: int, score: float) -> None:
    made = cluster(vgpu_node("n"), podgroup("g").admitted(), pod("p").gang("g").cpu(1).volcano(vgpu_memory=str(memory)))
    conf = rules(VGPUEnable=True, SchedulePolicy="binpack", ScheduleWeight=1)
    assert scores(opened(made, conf), "p") == {"n": score}


def test_a_pod_may_name_its_card() -> None:
    made = cluster(
        vgpu_node("a"),
        vgpu_node("b"),
        podgroup("g").admitted(),
        pod("p").gang("g").cpu(1).volcano(vgpu_memory=1).annotation("volcano.sh/vgpu-use-gpuuuid", "x, b-0"),
    )
    assert binds(cycle_on(made, VGPU)) == {"p": "b"}


def test_pods_of_one_rule_never_share_a_card() -> None:
    loud, quiet = {"noise": "loud", "x": "1"}, {"noise": "quiet"}
    conf = rules(VGPUEnable=True, GPUSharingEnable=True, GPUExclusiveRules=[{"noise": "loud"}, {"noise": "quiet"}, {}])
    holder = pod("h").gang("g").on("n").cpu(1).volcano(vgpu_memory=1).labels(loud).annotation(IDS, "n-0,NVIDIA,1,0:")
    things = [
        pod("a").gang("g").cpu(1).volcano(vgpu_memory=1).labels(loud),
        pod("b").gang("g").cpu(1).volcano(vgpu_memory=1).labels(quiet),
        pod("c").gang("g").cpu(1).volcano(vgpu_memory=1),
    ]
    session = opened(cluster(vgpu_node("n"), podgroup("g").admitted(), holder, *things), conf)
    assert [name for name in "abc" if refusals(session, name)] == ["a"]
    loud_share = pod("s").gang("g").on("m").cpu(1).volcano(gpu_memory=1).labels(loud).annotation(INDEX, "0")
    session = opened(
        cluster(gpu_node("m", 1), podgroup("g").admitted(), loud_share, pod("t").gang("g").cpu(1).volcano(gpu_memory=1).labels(loud)), conf
    )
    assert refusals(session, "t")


def test_pods_of_a_group_that_spreads_take_different_cards() -> None:
    spread = {"volcano.sh/vgpu-podgroup-policy": "spread"}
    pods = [pod(f"p-x-{i}").gang("g").cpu(1).volcano(vgpu_memory=1).annotations(spread) for i in range(3)]
    stranger = pod("stranger").gang("other").cpu(1).volcano(vgpu_memory=1).annotations(spread)
    two = vgpu_node("n", "u0,10,8000,A100,true", "u1,10,8000,A100,true")
    decisions = cycle_on(cluster(two, podgroup("g").admitted(), podgroup("other").admitted(), *pods, stranger), VGPU)
    assert {bind.task.name: bind.annotations[IDS][:2] for bind in decisions.binds} == {"p-x-0": "u1", "p-x-1": "u0", "stranger": "u1"}


# -- one at a time

LOCKING = rules(VGPUEnable=True, NodeLockEnable=True)


def test_with_the_lock_a_node_hands_out_devices_to_one_pod_at_a_time() -> None:
    pods = [pod(name).gang("g").cpu(1).volcano(vgpu_memory=1) for name in "ab"]
    made = cluster(vgpu_node("n"), podgroup("g").admitted(), *pods)
    assert binds(cycle_on(made, LOCKING)) == {"a": "n"}
    session = opened(made, LOCKING)
    assert refusals(session, "b") == {"n": "node(s) are handing out devices to another pod"}
    running = made.tasks["default/a"]
    made.move(running, status.RUNNING, running.node)
    assert binds(cycle_on(made, LOCKING)) == {"b": "n"}


@pytest.mark.parametrize(("lock", "free"), [("2025-12-31T23:59:00Z", False), ("2025-12-31T23:55:00Z", True), ("soon", True), (None, True)])
def test_somebody_else_s_lock_is_respected_for_five_minutes(lock: str | None, free: bool) -> None:
    thing = vgpu_node("n").annotations({"volcano.sh/mutex.lock": lock} if lock else {})
    session = opened(cluster(thing, podgroup("g").admitted(), pod("p").gang("g").cpu(1).volcano(vgpu_memory=1)), LOCKING)
    assert bool(refusals(session, "p")) is not free
