"""Policies for shared GPUs: which node, which card, and that a batch is decided as pods one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import exp, floor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from pumice.api.meta import Metadata
from pumice.api.pod import Named
from pumice.api.volcano import Queue
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.framework.policy import PluginOption
from pumice.scheduler.model import CPU, gpu_cards
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.fragment_growth import FragmentGrowth
from pumice.scheduler.model.fragmentation import PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import Ask, GpuCards
from pumice.scheduler.plugins.shared_gpu_packing import Packing
from pumice.scheduler.plugins.volcano.fgd import Fgd
from pumice.simulate import fgd_arrivals
from pumice.simulate.inputs import Source, read_policy
from pumice.simulate.scenario import Scenario
from pumice.simulate.time_series import kind_of
from pumice.simulate.workload import GPU_MILLI, Work, group_of, instant_text, node, pods_of, priority_class
from pumice.testing import cluster, pod, podgroup, session
from pumice.testing.scene import policy

NAMES = ["FGD", "DotProd", "GpuPacking", "GpuClustering", "BestFit", "Random"]
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def gpu_cluster(**gpus: int) -> Cluster:
    made = cluster()
    for name, count in gpus.items():
        made.put("Node", node(name, {"cpu": 64, "memory": "256Gi", GPU_MILLI: 1000 * count}))
    return made


def never(eviction: Evict) -> None:
    raise AssertionError(f"{eviction.task.key} is evicted")


def come(made: Cluster, plugin: Any, *asked: int, cpu: int = 1) -> list[str]:
    """Pods that ask for so many thousandths, one after the other: node and cards of each."""
    places = []
    for milli in asked:
        name = f"p{len(made.tasks)}"
        made.put(*podgroup(name).build())
        made.put(*pod(name).cpu(cpu).request(GPU_MILLI, milli).gang(name).build())
        decided = cycle(made, policy("allocate", ["gang", plugin]), 0.0)
        carry_out(made, decided, 0.0, never)
        places += [f"{bind.node}:{bind.annotations['alibabacloud.com/gpu-index']}" for bind in decided.binds]
        made.check()
    return places


def test_a_part_goes_to_the_fullest_card_that_holds_it_and_whole_ones_to_free_cards() -> None:
    assert come(gpu_cluster(a=3), "best-fit", 600, 300, 300, 1000, 400) == ["a:0", "a:0", "a:1", "a:2", "a:1"]


def test_what_a_pod_gave_back_is_there_again() -> None:
    made = gpu_cluster(a=1)
    assert come(made, "best-fit", 700, 700) == ["a:0"]
    made.remove("Pod", "default/p0")
    made.check()
    assert come(made, "best-fit", 700) == ["a:0"]
    assert made.index(GpuCards).left[0, 0] == 300


def test_cards_that_pods_brought_with_them_are_taken() -> None:
    made = gpu_cluster(a=2)
    held = pod("held").cpu(1).request(GPU_MILLI, 500).annotation("alibabacloud.com/gpu-index", "1").on("a")
    made.put(*held.build())
    assert come(made, "best-fit", 600, 500) == ["a:0", "a:1"]


def test_a_node_that_comes_later_has_cards_as_well() -> None:
    made = gpu_cluster(a=1)
    assert come(made, "best-fit", 1000) == ["a:0"]
    made.put("Node", node("b", {"cpu": 64, GPU_MILLI: 4000}))
    assert come(made, "best-fit", 1000, 2000) == ["b:0", "b:1-2"]


def test_a_pod_without_gpu_holds_no_card_when_nodes_change() -> None:
    made = gpu_cluster(a=2)
    made.put(*pod("plain").cpu(1).on("a").build())
    assert come(made, "best-fit", 1000) == ["a:0"]
    made.put("Node", node("b", {"cpu": 64, GPU_MILLI: 1000}))
    assert come(made, "best-fit", 1000, 1000) == ["a:1", "b:0"]


def test_a_card_that_its_node_does_not_have_is_not_counted() -> None:
    """Neither a card beyond those of all nodes, nor one that only another node has."""
    made = gpu_cluster(a=1, b=2)
    for name, index in (("far", "7"), ("near", "1")):
        made.put(*pod(name).cpu(1).request(GPU_MILLI, 500).annotation("alibabacloud.com/gpu-index", index).on("a").build())
    cards = made.index(GpuCards)
    assert cards.left.tolist() == [[1000, 0], [1000, 1000]]
    made.remove("Pod", "default/far")
    made.remove("Pod", "default/near")
    made.check()
    assert cards.left.tolist() == [[1000, 0], [1000, 1000]]


def test_lists_of_cards_that_no_node_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [300, 300, 100, 500, 1000, 250, 250, 250]
    expected = come(gpu_cluster(a=1, b=2), "fgd", *asked)
    made = gpu_cluster(a=1, b=2)
    assert come(made, "fgd", *asked) == expected
    assert len(made.index(GpuCards).lists) > len(asked)
    monkeypatch.setattr(gpu_cards, "MOST_STATES", 0)
    cards = made.index(GpuCards)
    assert [cards.lists[state] for state in cards.states] == [tuple(sorted(left)) for left in cards.left.tolist()]
    assert len(cards.lists) == 2
    assert come(gpu_cluster(a=1, b=2), "fgd", *asked) == expected


def test_what_is_undone_leaves_no_annotation() -> None:
    made = gpu_cluster(a=1)
    made.put(*podgroup("p").build())
    made.put(*pod("p").cpu(1).request(GPU_MILLI, 500).gang("p").build())
    (task,) = made.tasks.values()
    with session(made, "gang", "best-fit") as opened:
        with opened.statement() as statement:
            statement.allocate(task, 0)
            assert opened.annotations[task.uid] == {"alibabacloud.com/gpu-index": "0"}
        assert not opened.annotations[task.uid]


def test_best_fit_takes_the_node_with_the_least_left() -> None:
    assert come(gpu_cluster(a=8, b=2, c=4), "best-fit", 1000) == ["b:0"]


def test_ties_go_to_the_first_node_or_to_the_fullest_or_are_drawn() -> None:
    from pumice.scheduler.plugins.shared_gpu_packing import PackingArgs
    from pumice.scheduler.plugins.volcano.dot_product import DotProduct
    from pumice.scheduler.plugins.volcano.random_node import RandomNode

    drawn = {come(gpu_cluster(a=2, b=2, c=2), PluginOption(RandomNode, PackingArgs(seed=seed)), 500)[0] for seed in range(20)}
    assert {place[0] for place in drawn} == set("abc") and {place[2] for place in drawn} == set("01")
    full = gpu_cluster(a=2, b=2)
    assert come(full, PluginOption(DotProduct, PackingArgs("random", seed=2)), 1) in (["a:0"], ["b:0"])
    assert come(gpu_cluster(b=2, a=1), PluginOption(DotProduct, PackingArgs("best-fit")), 1, cpu=1) == ["a:0"]
    assert come(gpu_cluster(b=2, a=1), PluginOption(DotProduct, PackingArgs("random")), 3000) == []
    assert come(gpu_cluster(b=2, a=1), PluginOption(DotProduct, PackingArgs("best-fit")), 3000) == []


def test_clustering_keeps_kinds_together() -> None:
    made = gpu_cluster(a=4, b=4)
    assert come(made, "gpu-clustering", 1000, 500, 1000, 500, 2000) == ["a:0", "b:0", "a:1", "b:0", "a:2-3"]


def test_packing_uses_what_is_in_use() -> None:
    assert come(gpu_cluster(a=8, b=2, c=2), "gpu-packing", 400, 400, 1000, 2000) == ["b:0", "b:0", "b:1", "c:0-1"]


def test_fgd_leaves_what_others_can_use() -> None:
    """Half a card is gone on a: another half goes there, though b is as good a place for it; a whole card goes to b."""
    from pumice.scheduler.plugins.volcano.fgd import Fgd, FgdArgs

    typical = FgdArgs(typical_pods=[(1000.0, 1, 1000.0, 1), (1000.0, 1, 500.0, 1)])
    assert come(gpu_cluster(a=2, b=2), PluginOption(Fgd, typical), 500, 500, 2000) == ["a:0", "a:0", "b:0-1"]
    assert come(gpu_cluster(a=2, b=2), "fgd", 500, 500) == ["a:0", "a:0"]


def test_fgd_counts_a_pod_that_waits_once() -> None:
    made = gpu_cluster(a=1)
    assert come(made, "fgd", 500, 3000, 500) == ["a:0", "a:0"]
    assert made.memory["fgd"]["counts"] == {PodShape(1000.0, Ask(1, 500.0)): 2, PodShape(1000.0, Ask(3, 1000.0)): 1}


@pytest.mark.parametrize(("rare", "weights"), [(5, [1.0]), (6, [0.94, 0.06])])
def test_rare_kinds_are_not_typical(rare: int, weights: list[float]) -> None:
    counts = Counter({PodShape(1.0, Ask(1, 500.0)): 100 - rare, PodShape(1.0, Ask(2, 1000.0)): rare})
    assert TypicalPods(counts).weight.tolist() == weights


def test_fragments_by_hand() -> None:
    """A node with 300, 1000 and 600 left. Half of the pods ask for 500 of a card, a quarter for two cards, a quarter for no GPU."""
    typical = TypicalPods(Counter({PodShape(1.0, Ask(1, 500.0)): 2, PodShape(1.0, Ask(2, 1000.0)): 1, PodShape(1.0, Ask()): 1}))
    cpu, left = np.array([8.0]), np.array([[300.0, 1000.0, 600.0]])
    assert typical.fragments(cpu, left).tolist() == [0.5 * 300 + 0.25 * 1900 + 0.25 * 1900]
    assert typical.fragments(np.zeros(1), left).tolist() == [1900]


def some_typical_pods(random: np.random.Generator) -> TypicalPods:
    kinds = [PodShape(float(cpu), Ask(1, float(milli))) for cpu, milli in random.integers(1, 1000, (6, 2))]
    kinds += [PodShape(4.0, Ask(2, 1000.0)), PodShape(9.0, Ask()), PodShape(100.0, Ask(1, 1000.0))]
    kinds.append(PodShape(1.0, Ask(1, 350.0)))  # for which 600 less 250 is just enough
    return TypicalPods(Counter(dict(zip(kinds, random.integers(20, 40, len(kinds)).tolist(), strict=True))))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ask", [Ask(), Ask(1, 250.0), Ask(1, 1000.0), Ask(2, 1000.0)])
def test_fragments_grow_to_those_of_the_node_as_it_would_be(seed: int, ask: Ask) -> None:
    random = np.random.default_rng(seed)
    typical = some_typical_pods(random)
    cpu, left = random.integers(0, 1000, 30).astype(float), random.choice([0.0, 250.0, 600.0, 1000.0], (30, 4))
    growth, request = FragmentGrowth(typical, [tuple(sorted(cards)) for cards in left.tolist()]), 100.0
    found = growth.of(np.arange(30), cpu, request, ask)
    before = typical.fragments(cpu, left)
    for row, cards in enumerate(left.tolist()):
        fine = [card for card in range(4) if cards[card] >= ask.milli]
        chosen = [[card] for card in fine] if ask.is_share and ask.cards else [fine[: ask.cards]] if len(fine) >= ask.cards else []
        after = np.array([[cards[card] - ask.milli * (card in taken) for card in range(4)] for taken in chosen]).reshape(-1, 4)
        grown = typical.fragments(np.full(len(after), cpu[row] - request), after) - before[row]
        assert np.isclose(found[row], grown.min(initial=np.inf))
        assert found[row] == growth.of_one(row, cpu[row], request, ask)
        if ask.is_share and ask.cards:
            by_card = np.array(growth.by_card(cards, cpu[row], request, ask.milli))
            assert np.isinf(by_card).tolist() == [card not in fine for card in range(4)]
            assert np.allclose(by_card[fine], grown)


def published(typical: TypicalPods, cpu: float, left: list[float], request: float, ask: Ask) -> int:
    """FGD's rating of a node by its definition: of its cards the best one."""
    before = typical.fragments(np.array([cpu]), np.array([left]))[0]
    fine = [card for card, has in enumerate(left) if has >= ask.milli]
    ratings = [0]
    for taken in [[card] for card in fine] if ask.is_share and ask.cards else [fine[: ask.cards]]:
        after = np.array([[has - ask.milli * (card in taken) for card, has in enumerate(left)]])
        grown = round(typical.fragments(np.array([cpu - request]), after)[0] - before, 6)
        ratings.append(floor(100 / (1 + exp(grown / 1000))))
    return max(ratings)


@pytest.mark.parametrize("name", ["fgd", "best-fit", "dot-product", "gpu-packing"])
def test_ratings_that_are_kept_are_those_of_a_fresh_look(name: str) -> None:
    """While a cluster fills up, of each kind of pod only the nodes that have changed since its last pod are rated again."""
    random = Random(1)
    made = gpu_cluster(**{f"n{number}": random.choice([1, 2, 4, 8]) for number in range(40)})
    for number in range(300):
        asked = pod(f"p{number}").cpu(random.choice([1, 4, 16])).request(GPU_MILLI, random.choice([0, 250, 300, 500, 1000, 2000]))
        made.put(*asked.gang(f"p{number}").build())
        made.put(*podgroup(f"p{number}").build())
    with session(made, name) as opened, opened.statement() as statement:
        plugin = next(each for each in opened.plugins.everyone if isinstance(each, Packing))
        for task in list(made.tasks.values()):
            evaluation, fresh = opened.evaluation(task), Evaluations(made, *opened.plugins.rules).of(task)
            candidates = evaluation.admitted & evaluation.fits_idle
            totals, rows = evaluation.totals(candidates), np.flatnonzero(candidates).tolist()
            assert totals.tolist() == fresh.totals(candidates).tolist()
            ask = plugin.cards.ask(task.template)
            assert [plugin.rate_one(task, ask, made.nodes, row) for row in rows] == totals[rows].tolist()
            if isinstance(plugin, Fgd):
                cpu, left, request = made.nodes.idle[CPU], plugin.cards.left.tolist(), float(task.template.request[CPU])
                assert [published(plugin.typical, cpu[row], left[row], request, ask) for row in rows] == totals[rows].tolist()
            if rows:
                statement.allocate(task, int(totals.argmax()))


def trace(path: Path, pods: int = 60) -> Source:
    random = Random(7)
    kinds = [
        (4000, 1, 300, ""),
        (8000, 1, 500, ""),
        (16000, 1, 1000, "T4"),
        (2000, 0, 0, ""),
        (8000, 2, 1000, ""),
        (1000, 1, 700, "T4|A10"),
    ]
    rows = [f"pod-{number},{cpu},1024,{gpus},{milli},{spec}" for number in range(pods) for cpu, gpus, milli, spec in [random.choice(kinds)]]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return Source("openb", str(path))


def machines(path: Path) -> list[Any]:
    rows = [
        f"n{number:02d},64000,262144,{gpus},{model}"
        for number, (gpus, model) in enumerate([(2, "T4"), (8, "A10"), (4, "T4"), (2, "P100")] * 3)
    ]
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "\n".join(rows) + "\n")
    return Source("openb", str(path)).nodes()


@pytest.mark.parametrize("name", NAMES)
def test_a_cycle_for_all_pods_decides_as_a_cycle_for_each(tmp_path: Path, name: str) -> None:
    """The experiment decides all pods in one cycle. The same pods, coming one by one, go to the same places."""
    decided, _ = read_policy(name)
    source, nodes = trace(tmp_path / "pods.csv"), machines(tmp_path / "nodes.csv")
    works = fgd_arrivals.sequence(list(source.read(nodes).jobs), 1.3 * 48 * 1000, Random(3))
    informed = fgd_arrivals.informed(decided, Counter(kind_of(work.roles[0]) for work in works), 3)

    def fresh() -> Cluster:
        made = cluster()
        for each in nodes:
            made.put("Node", each)
        return made

    together = fgd_arrivals.decide(fresh(), informed, works)
    made, apart = fresh(), {}
    for work in works:
        created = instant_text(work.submit)
        made.put("PodGroup", group_of(work, created))
        made.put("Pod", pods_of(work, created, "volcano", grouped=True)[0])
        decided = cycle(made, informed, work.submit)
        carry_out(made, decided, work.submit, never)
        for bind in decided.binds:
            cards = bind.annotations.get("alibabacloud.com/gpu-index", "")
            apart[work.name] = bind.node, tuple(map(int, cards.split("-"))) if cards else ()
        for job in list(made.waiting):
            made.remove("Pod", f"{job}-0")
            made.remove("PodGroup", job)
    made.check()
    assert together == apart == fgd_arrivals.decide(fresh(), structs.replace(informed, shortcuts=False), works)
    assert 0 < len(together) < len(works)


def in_other_queues(made: Cluster, works: list[Work]) -> None:
    made.put("Queue", Queue(Metadata("another")))
    for work in works[::2]:
        work.queue = "another"


def with_gates_or_without_requests(made: Cluster, works: list[Work]) -> None:
    for number, work in enumerate(works):
        (role,) = work.roles
        gated = structs.replace(role.spec, scheduling_gates=[Named("later")])
        nothing = structs.replace(role.spec, containers=[structs.replace(role.spec.containers[0], resources=None)])
        work.roles = (replace(role, spec=[role.spec, gated, nothing][number % 3]),)


def of_two_pods(made: Cluster, works: list[Work]) -> None:
    for work in works:
        work.roles = (replace(work.roles[0], count=2),)


def while_others_leave(made: Cluster, works: list[Work]) -> None:
    """A pod may be promised the room of the one that leaves, and with it the idle room: then that is nobody else's."""
    for name in made.nodes.rows:
        made.put(*pod(f"{name}-stays").cpu(56).on(name).build())
        made.put(*pod(f"{name}-leaves").cpu(4).on(name).leaving().build())


@pytest.mark.parametrize(("actions", "plugins"), [("allocate", []), ("allocate", ["priority"]), ("allocate, backfill", [])])
@pytest.mark.parametrize("changed", [in_other_queues, with_gates_or_without_requests, of_two_pods, while_others_leave])
def test_whatever_else_decides_pods_get_the_places_of_a_cycle(
    tmp_path: Path, changed: Callable[[Cluster, list[Work]], None], actions: str, plugins: list[str]
) -> None:
    source, nodes = trace(tmp_path / "pods.csv"), machines(tmp_path / "nodes.csv")
    works = fgd_arrivals.sequence(list(source.read(nodes).jobs), 1.3 * 48 * 1000, Random(3))
    for number, work in enumerate(works):
        work.priority = number % 2

    def decided(*, shortcuts: bool) -> fgd_arrivals.Places:
        made, coming = cluster(), [replace(work) for work in works]
        for each in nodes:
            made.put("Node", each)
        for priority in range(2):
            made.put("PriorityClass", priority_class(priority))
        changed(made, coming)
        chosen = structs.replace(policy(actions, ["gang", "predicates", "best-fit", *plugins]), shortcuts=shortcuts)
        return fgd_arrivals.decide(made, chosen, coming)

    assert 0 < len(places := decided(shortcuts=True)) < len(works)
    assert places == decided(shortcuts=False)


def test_the_experiment_reads_its_curves_at_each_per_cent(tmp_path: Path) -> None:
    decided, _ = read_policy("FGD")
    scenario = Scenario(trace(tmp_path / "pods.csv"), machines(tmp_path / "nodes.csv"), decided, "FGD", seed=1)
    found = fgd_arrivals.play(scenario, 1.3)
    assert list(found["curve"]) == list(found["fragmentation"]) == [str(percent) for percent in range(1, 131)]
    assert found["curve"]["20"] >= 20 and found["curve"]["130"] <= 100
    told, jobs = found["measures"], found["jobs"]
    assert round(100 * told["utilisation"]["gpu"], 6) == found["curve"]["130"]
    assert round(100 * told["fragmentation"]["share"], 6) == found["fragmentation"]["130"]
    assert told["pods"] == len(jobs) == told["placed"] + told["refused"]
    assert told["utilisation"]["gpu"] <= told["bound"]["gpu"] <= 1
    assert told["placed"] == sum(job["state"] == "placed" and job["node"] is not None for job in jobs)
    assert told["arrived"]["gpu"] >= 1.3
    assert found == fgd_arrivals.play(scenario, 1.3) != fgd_arrivals.play(replace(scenario, seed=2), 1.3)


def test_ties_go_to_nodes_in_an_order_of_the_seed(tmp_path: Path) -> None:
    """Two GPUs each, but one node has CPUs for a single pod: if that comes first, its other GPU is a fragment once the pod is there."""
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4\nb,64000,1024,2,T4\n")
    (tmp_path / "pods.csv").write_text(HEAD + "p,8000,1,1,1000,\n")
    nodes, (decided, _) = Source("openb", str(tmp_path / "nodes.csv")).nodes(), read_policy("GpuClustering")
    found = set()
    for seed in range(10):
        scenario = Scenario(Source("openb", str(tmp_path / "pods.csv")), nodes, decided, "GpuClustering", seed=seed)
        found.add(fgd_arrivals.play(scenario, 0.25)["fragmentation"]["25"])
    assert found == {0.0, 25.0}
    assert [node.metadata.name for node in nodes] == ["a", "b"]
