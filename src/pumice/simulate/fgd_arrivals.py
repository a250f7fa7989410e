"""Pods that only arrive, until they request a given part of the cluster's GPUs: the experiment of FGD's authors.

The list of pods is shuffled, then cut, or filled up with draws from itself. Each pod is tried once, in turn; a pod that finds no node is
not tried again. Ties go to the node with the smallest name, and the authors name nodes at random in each run: here the seed shuffles them.
No pod ends, so no time passes, and one cycle decides for all: each pod is a job of its own, and a cycle tries each job once. With a policy
that decides nothing but nodes the jobs can be left out.
"""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from msgspec import structs

from pumice.api import InputError
from pumice.api.annotations import ALIBABA_GPU_INDEX
from pumice.scheduler.actions.allocate import Allocate
from pumice.scheduler.actions.giveback import Giveback
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.plugin_guard import is_ours
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, Cluster, status
from pumice.scheduler.model.fragmentation import PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import GPU_MILLI_NAME, WHOLE
from pumice.scheduler.model.task import key_of
from pumice.scheduler.plugins.shared_gpu_packing import Packing
from pumice.scheduler.plugins.volcano.fgd import Fgd
from pumice.scheduler.plugins.volcano.gang import Gang
from pumice.scheduler.plugins.volcano.predicates import Predicates
from pumice.simulate.packing_bound import most_gpus
from pumice.simulate.scenario import Scenario, cluster_of
from pumice.simulate.time_series import kind_of
from pumice.simulate.workload import Work, group_of, instant_text, pods_of

Curve = dict[str, float]


def play(scenario: Scenario, load: float) -> dict[str, Any]:
    """The results: `curve` and `fragmentation`, in per cent of all GPUs, by the per cent of them that were requested; `measures` of the
    end; and `jobs`, one for each pod. Raises InputError."""
    seed = scenario.seed or 0
    workload = scenario.workload.read(scenario.cluster, seed)
    trace = list(workload.jobs)
    workload.nodes = Random(seed).sample(workload.nodes, len(workload.nodes))
    cluster = cluster_of(scenario.policy, workload)
    column = cluster.dimensions.columns.get(GPU_MILLI_NAME)
    capacity = 0.0 if column is None else float(cluster.nodes.total()[column]) / 1000
    if not capacity:
        raise InputError("there are no GPUs, so that no load can be told", where=workload.name)
    kinds = Counter(kind_of(work.roles[0]) for work in trace)
    pods = sequence(trace, load * capacity, Random(seed))
    placed = decide(cluster, informed(scenario.policy, kinds, seed), pods)
    return _curves(cluster, pods, placed, TypicalPods(kinds), capacity, load)


def gpu_milli(work: Work) -> float:
    ask = kind_of(work.roles[0]).ask
    return ask.cards * ask.milli


def sequence(trace: list[Work], wanted: float, random: Random) -> list[Work]:
    """Pods in the order in which they arrive, until they request `wanted` thousandths of GPUs. Raises InputError."""
    if not any(map(gpu_milli, trace)):
        raise InputError("no pod asks for a GPU, so that no load can be reached")
    drawn = trace.copy()
    random.shuffle(drawn)
    pods, total = list[Work](), 0.0
    while total < wanted:
        work = drawn[len(pods)] if len(pods) < len(drawn) else random.choice(trace)
        pods.append(replace(work, name=f"{len(pods):06d}-{work.name}", submit=float(len(pods))))
        total += gpu_milli(work)
    return pods


def informed(policy: Policy, kinds: Counter[PodShape], seed: int) -> Policy:
    """The policy, in which FGD knows the trace's typical pods, and packing plugins have the seed."""

    def with_facts(choice: PluginOption) -> PluginOption:
        if not issubclass(choice.plugin, Packing):
            return choice
        args: Any = choice.args or choice.plugin.Args()
        more: dict[str, Any] = {"seed": args.seed or seed}
        if issubclass(choice.plugin, Fgd) and not args.typical_pods:
            more["typical_pods"] = [(kind.cpu_milli, *kind.ask, count) for kind, count in kinds.items()]
        return structs.replace(choice, args=_changed(args, more))

    return structs.replace(policy, tiers=tuple(tuple(with_facts(choice) for choice in tier) for tier in policy.tiers))


def _changed(args: Any, more: dict[str, Any]) -> Any:
    fields = {name: getattr(args, name) for name in args.__struct_fields__}
    return type(args)(**fields | more)


class Unasked(Observer):
    """Observer of a cycle in which nobody reads why pods found no node."""

    needs_full_cycles = reads_reasons = False


Places = dict[str, tuple[str, tuple[int, ...]]]  #: by job, its node and its cards on it; without jobs that found no node


def decide(cluster: Cluster, policy: Policy, pods: list[Work]) -> Places:
    place = _place_in_turn if policy.shortcuts and _only_nodes_matter(cluster, policy, pods) else _place_in_a_cycle
    return place(cluster, policy, pods)


def _place_in_a_cycle(cluster: Cluster, policy: Policy, pods: list[Work]) -> Places:
    for work in pods:
        created = instant_text(work.submit)
        cluster.put("PodGroup", group_of(work, created))
        for pod in pods_of(work, created, "volcano", grouped=True):
            cluster.put("Pod", pod)
    placed = {}
    for bind in cycle(cluster, policy, float(len(pods)), observer=Unasked()).binds:
        assert bind.task.job is not None
        cards = bind.annotations.get(ALIBABA_GPU_INDEX, "")
        placed[bind.task.job.name] = bind.node, tuple(map(int, cards.split("-"))) if cards else ()
    return placed


def _only_nodes_matter(cluster: Cluster, policy: Policy, pods: list[Work]) -> bool:
    """Whether the cycle would try all pods in the order in which they come, and only look for room that is idle."""
    actions = all(isinstance(action, Allocate | Giveback) for action in policy.actions) and policy.has_action("allocate")
    kinds = [choice.plugin for choice in policy.choices]
    plugins = all(kind in (Gang, Predicates) or (issubclass(kind, Packing) and is_ours(kind)) for kind in kinds)
    works = all(work.pods == 1 and work.queue == pods[0].queue and work.is_grouped(True) and not work.group for work in pods)
    return actions and plugins and works and not cluster.nodes.moving


def _place_in_turn(cluster: Cluster, policy: Policy, pods: list[Work]) -> Places:
    """The same places, found for pods without jobs, one after the other."""
    tasks = []
    for work in pods:
        (pod,) = pods_of(work, instant_text(work.submit), "volcano", grouped=False)
        cluster.put("Pod", pod)
        tasks.append(cluster.tasks[key_of(pod)])
    placed = {}
    with Session(cluster, policy, float(len(pods)), observer=Unasked()) as session:
        held = next((plugin.cards.held for plugin in session.plugins.everyone if isinstance(plugin, Packing)), {})
        for work, task in zip(pods, tasks, strict=True):
            if task.gated or task.best_effort:
                continue
            evaluation = session.evaluation(task)
            row = -1 if evaluation.rejected else session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_idle)
            if row >= 0:
                cluster.move(task, status.ALLOCATED, row)
                placed[work.name] = task.node_name, held.get(task.uid, ())
    return placed


def _curves(cluster: Cluster, pods: list[Work], placed: Places, typical: TypicalPods, capacity: float, load: float) -> dict[str, Any]:
    """The results, read at each whole per cent of load while the pods are put on their nodes once more, one by one."""
    nodes = cluster.nodes
    count = nodes.allocatable[cluster.dimensions.columns[GPU_MILLI_NAME]] // (1000 * WHOLE)
    left = np.where(np.arange(int(count.max())) < count[:, None], WHOLE, 0.0)
    cpu = nodes.allocatable[CPU].copy()
    fragments, changed = typical.fragments(cpu, left), set[int]()

    def fragmented() -> float:
        rows = [*changed]
        changed.clear()
        fragments[rows] = typical.fragments(cpu[rows], left[rows])
        return float(fragments.sum())

    arrived = allocated = 0.0
    curve, fragmentation, reached = Curve(), Curve(), 0
    for work in pods:
        kind = kind_of(work.roles[0])
        arrived += gpu_milli(work)
        if work.name in placed:
            node, cards = placed[work.name]
            row = nodes.rows[node]
            allocated += gpu_milli(work)
            cpu[row] -= kind.cpu_milli
            for card in cards:
                left[row, card] -= kind.ask.milli
            changed.add(row)
        while reached < load * 100 and 100 * arrived >= (reached + 1) * capacity:
            reached += 1
            curve[str(reached)] = round(100 * allocated / capacity, 6)
            fragmentation[str(reached)] = round(100 * fragmented() / capacity, 6)
    gpus, left_over = capacity / 1000, fragmented()
    curves = {
        "arrived": {"gpu": arrived / capacity},
        "utilisation": {"cpu": 1 - float(cpu.sum() / nodes.allocatable[CPU].sum()), "gpu": allocated / capacity},
        "bound": {"gpu": most_gpus(cluster) / gpus},
        "fragmentation": {"gpu": left_over / 1000, "share": left_over / 1000 / gpus},
        "pods": len(pods),
        "placed": len(placed),
        "refused": len(pods) - len(placed),
    }
    return {"measures": curves, "jobs": [_job(work, placed) for work in pods], "curve": curve, "fragmentation": fragmentation}


def _job(work: Work, placed: Places) -> dict[str, Any]:
    node, cards = placed.get(work.name, (None, ()))
    state = "refused" if node is None else "placed"
    return {"job": work.name, "gpu": gpu_milli(work) / 1000, "state": state, "node": node, "cards": list(cards)}
