"""The action consolidate against an exact solver: random small states, and the fewest moves that let the waiting gang start.

A mixed-integer model (HiGHS) says the fewest moves: every pod is in one place, a pod that moves leaves its node (unless its whole gang
moves), no node holds more than it has, gangs lose no more than they can spare. In states with rules, pods are where selectors, taints and
volumes allow it, those that keep away from each other are on different nodes, a zone to which pods come that are to be spread has at most
one more of them than any other, and no more go than budgets allow. `judge` compares the plan of the action with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

import highspy

from pumice.api.times import Duration
from pumice.scheduler.actions.consolidate import Consolidate, ConsolidateArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.testing import cluster, manifest, node, pod, podgroup, queue
from pumice.testing.builders import Builder, NodeBuilder, PodBuilder, PodGroupBuilder
from pumice.testing.scene import NOW, policy

BIG = "default/big"
EVEN = ((32, 8),)  #: sizes of nodes, in CPUs and GPUs
UNEVEN = (16, 4), (48, 8), (96, 16)
GIB_PER_CPU = 4


class Rules(NamedTuple):
    """What is to be kept besides room and gangs, by names of pods and nodes."""

    nodes: dict[str, set[str]]  #: the nodes where a pod may be, if not all
    apart: list[set[str]]  #: pods of which a node has one at most
    budgets: list[tuple[set[str], int]]  #: pods, and how many of them may go
    spread: list[set[str]]  #: pods that are spread over the zones
    zones: dict[str, str]  #: by node


NO_RULES = Rules({}, [], [], [], {})


class State(NamedTuple):
    """A random small state: nodes with running gangs, and a gang that waits."""

    objects: list[Builder]
    policy: Policy
    rules: Rules = NO_RULES


def small_state(seed: int, sizes: tuple[tuple[int, int], ...] = EVEN) -> State:
    """Three to eight nodes with jobs of single pods, gangs that can spare pods, and gangs that cannot. The waiting gang is called big. If
    nodes differ in size, pods request parts of CPUs, and memory."""
    random, is_even = Random(seed), len(sizes) == 1
    nodes = [f"n{number}" for number in range(random.randint(3, 8))]
    idle: dict[str, list[float]] = {name: [*(sizes[0] if is_even else random.choice(sizes))] for name in nodes}
    objects: list[Builder] = [
        node(name).cpu(int(cpu)).gpu(int(gpus)).memory(f"{GIB_PER_CPU * int(cpu)}Gi") for name, (cpu, gpus) in idle.items()
    ]
    filled, all_gpus = random.uniform(0.35, 0.75), sum(gpus for _, gpus in idle.values())

    def request(most: int) -> tuple[float, int]:
        """CPUs, and GiB of memory."""
        return (random.randint(1, most), 0) if is_even else (random.randint(1, 10 * most) / 10, random.randint(1, GIB_PER_CPU * most))

    def place(cpu: float, gpus: int) -> str:
        free = [name for name in nodes if idle[name][0] >= cpu and idle[name][1] >= gpus]
        name = random.choice(free) if free else ""
        if name:
            idle[name][0] -= cpu
            idle[name][1] -= gpus
        return name

    job = 0
    while sum(gpus for _, gpus in idle.values()) > (1 - filled) * all_gpus:
        job += 1
        (cpu, gib), gpus, size = request(8), random.choice((0, 1, 1, 2, 2, 3, 4)), random.choice((1, 1, 1, 2, 3))
        least = random.randint(1, size)
        where = [name for _ in range(size) if (name := place(max(cpu, gib / GIB_PER_CPU), gpus))]
        if len(where) < least:
            break
        ran = NOW - random.randint(600, 36_000)
        objects.append(podgroup(f"j{job}", least).phase("Running").created(ran))
        objects += [
            pod(f"j{job}-{number}")
            .asks(cpu=str(cpu), gpu=gpus, memory=f"{gib}Gi")
            .gang(f"j{job}")
            .owned("Job", f"j{job}")
            .on(name)
            .started(ran)
            for number, name in enumerate(where)
        ]
    count, gpus, (cpu, gib) = random.randint(1, 3), random.choice((3, 4, 6, 8)), request(16)
    objects += podgroup("big", count).admitted().pods(count, cpu=str(cpu), gpu=gpus, memory=f"{gib}Gi")
    made = policy("enqueue, allocate, consolidate", ["gang", "predicates", "nodeorder"])
    any_work = Consolidate(ConsolidateArgs(maximum_lost_work=Duration(0)))
    return State(objects, Policy(tuple(any_work if each.name == "consolidate" else each for each in made.actions), made.tiers))


def uneven_state(seed: int) -> State:
    """A state with rules whose nodes differ in size."""
    return state_with_rules(seed, UNEVEN)


def state_with_rules(seed: int, sizes: tuple[tuple[int, int], ...] = EVEN) -> State:
    """A small state in which nodes have zones and taints, and each job has a rule of its own, or none."""
    state, random = small_state(seed, sizes), Random(f"{seed}/rules")
    zones = {each.document["metadata"]["name"]: random.choice("ab") for each in state.objects if isinstance(each, NodeBuilder)}
    tainted = {name for name in zones if random.random() < 0.2}
    pods: dict[str, list[PodBuilder]] = {}
    for each in state.objects:
        if isinstance(each, PodBuilder):
            pods.setdefault(each.document["metadata"]["annotations"]["scheduling.k8s.io/group-name"], []).append(each)
    rules, objects = Rules({}, [], [], [], zones), list[Builder]()
    for each in state.objects:
        if isinstance(each, NodeBuilder):
            name = each.document["metadata"]["name"]
            objects.append(each.label("zone", zones[name]).taint("special") if name in tainted else each.label("zone", zones[name]))
    for group in (each for each in state.objects if isinstance(each, PodGroupBuilder)):
        name = group.document["metadata"]["name"]
        of_running = ("", "", "selector", "volume", "apart", "budget", "quota", "spread")
        kind = random.choice(of_running if name != "big" else ("", "selector", "spread"))
        objects += _with_rule(kind, random, group, pods[name], zones, tainted, rules)
    return State(objects, state.policy, rules)


def _with_rule(
    kind: str, random: Random, group: PodGroupBuilder, pods: list[PodBuilder], zones: dict[str, str], tainted: set[str], rules: Rules
) -> list[Builder]:
    """The objects of a job with a rule of this kind, which its running pods keep. The rule is added to `rules`."""
    name = group.document["metadata"]["name"]
    where = [each.document["spec"].get("nodeName", "") for each in pods]
    names = [each.document["metadata"]["name"] for each in pods]
    nodes, more = set(zones), list[Builder]()
    if tainted & set(where) or random.random() < 0.4:
        pods = [each.tolerates("special") for each in pods]
    else:
        nodes -= tainted
    if kind in ("selector", "volume") and len({zones[node] for node in where if node}) < 2:
        zone = zones[where[0]] if where[0] else random.choice("ab")
        nodes &= {node for node in zones if zones[node] == zone}
        if kind == "selector":
            pods = [each.selector("zone", zone) for each in pods]
        else:
            terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
            source = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}
            pods = [each.having("spec", "volumes", value=source["volumes"]) for each in pods]
            claim = {"volumeName": name, "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
            bound = {"pv.kubernetes.io/bind-completed": "yes"}
            volume = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "capacity": {"storage": "1Gi"}}
            volume |= {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}}
            more += [
                manifest("PersistentVolumeClaim", name, spec=claim, status={"phase": "Bound"}).annotations(bound),
                manifest("PersistentVolume", name, "", spec=volume, status={"phase": "Bound"}),
            ]
    elif kind == "apart" and len(set(where)) == len(where):
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
        away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        pods = [each.label("app", name).having("spec", "affinity", value=away) for each in pods]
        rules.apart.append(set(names))
    elif kind == "spread" and _is_spread([zones[node] for node in where if node], set(zones.values())):
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        constraint |= {"labelSelector": {"matchLabels": {"app": name}}}
        pods = [each.label("app", name).having("spec", "topologySpreadConstraints", value=[constraint]) for each in pods]
        rules.spread.append(set(names))
    elif kind == "budget":
        allowed = random.randint(0, len(pods))
        pods = [each.label("app", name) for each in pods]
        spec = {"selector": {"matchLabels": {"app": name}}, "minAvailable": 1}
        more.append(manifest("PodDisruptionBudget", name, spec=spec, status={"disruptionsAllowed": allowed}))
        rules.budgets.append((set(names), allowed))
    elif kind == "quota":
        gpus = sum(int(each.document["spec"]["containers"][0]["resources"]["requests"].get("nvidia.com/gpu", 0)) for each in pods)
        group, more = group.queue(name), [queue(name).capability(gpu=gpus)]
    rules.nodes.update(dict.fromkeys(names, nodes) if nodes < set(zones) else {})
    return [*more, group, *pods]


def _is_spread(held: list[str], zones: set[str]) -> bool:
    counts = [held.count(zone) for zone in zones]
    return max(counts) - min(counts) <= 1


def fewest_moves(made: Cluster, rules: Rules = NO_RULES) -> int | None:
    """The fewest moves that let the waiting gang start; None if no moves do."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    nodes = made.nodes
    rows, columns = list(nodes), range(nodes.allocatable.shape[0])
    load: dict[tuple[int, int], list[tuple[Any, float]]] = {}
    moved: dict[Task, Any] = {}
    comes_to: dict[tuple[str, int], Any] = {}

    def allowed(task: Task) -> list[int]:
        names = rules.nodes.get(task.name)
        return rows if names is None else [row for row in rows if nodes.names[row] in names]

    def put(task: Task, variable: Any, row: int) -> None:
        comes_to[task.name, row] = variable
        for column, amount in task.template.needs:
            load.setdefault((row, column), []).append((variable, amount))

    for task in made.jobs[BIG].pending.values():
        choice = {row: solver.addBinary() for row in allowed(task)}
        if not choice:
            return None
        solver.addConstr(solver.qsum(choice.values()) == 1)
        for row, variable in choice.items():
            put(task, variable, row)
    for job in made.jobs.values():
        running = [task for task in job.tasks.values() if task.status == status.RUNNING]
        spare = job.ready_count - job.min_member
        for task in running:
            moved[task] = solver.addBinary()
            choice = {row: solver.addBinary() for row in allowed(task) if row != task.node or (spare <= 0 and len(running) > 1)}
            solver.addConstr(solver.qsum(choice.values()) - moved[task] == 0)
            for row, variable in choice.items():
                put(task, variable, row)
        if spare <= 0:
            for one, other in itertools.pairwise(running):
                solver.addConstr(moved[one] == moved[other])
        else:
            solver.addConstr(solver.qsum(moved[task] for task in running) <= spare)
    for row in rows:
        for column in columns:
            stays = [(moved[task], amount) for task in nodes.tasks[row].values() for c, amount in task.template.needs if c == column]
            comes = load.get((row, column), [])
            if stays or comes:
                room = float(nodes.allocatable[column, row]) - sum(amount for _, amount in stays)
                scale = max(float(nodes.allocatable[column, row]), 1.0)
                held = solver.qsum([(amount / scale) * variable for variable, amount in comes])
                left = solver.qsum([(amount / scale) * variable for variable, amount in stays])
                solver.addConstr(held - left <= room / scale + 1e-9)
    _keep_rules(solver, rules, moved, comes_to, nodes.names)
    solver.minimize(solver.qsum(moved.values()))
    is_possible = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return round(solver.getInfo().objective_function_value) if is_possible else None


def _keep_rules(
    solver: highspy.Highs, rules: Rules, moved: dict[Task, Any], comes_to: dict[tuple[str, int], Any], node_names: list[str]
) -> None:
    for names, most in rules.budgets:
        solver.addConstr(solver.qsum(variable for task, variable in moved.items() if task.name in names) <= most)
    for names in rules.apart:
        for row in range(len(node_names)):
            here = [variable for task, variable in moved.items() if task.name in names and task.node == row]
            comes = [comes_to[name, row] for name in sorted(names) if (name, row) in comes_to]
            if here and comes:
                solver.addConstr(solver.qsum(comes) - solver.qsum(here) <= 1 - len(here))
            elif comes:
                solver.addConstr(solver.qsum(comes) <= 1)
    for names in rules.spread:
        left = {zone: list[Any]() for zone in rules.zones.values()}  #: by zone: whether a pod has left it, or has come to it
        come = {zone: list[Any]() for zone in left}
        for task, variable in moved.items():
            if task.name in names:
                left[rules.zones[task.node_name]].append(variable)
        for (name, row), variable in comes_to.items():
            if name in names:
                come[rules.zones[node_names[row]]].append(variable)
        held = {zone: len(left[zone]) + solver.qsum(come[zone]) - solver.qsum(left[zone]) for zone in left}
        for zone, other in itertools.permutations(left, 2):
            for variable in come[zone]:
                solver.addConstr(held[zone] - held[other] + len(names) * variable <= 1 + len(names))


class Verdict(NamedTuple):
    fewest: int  #: by the exact solver
    moves: int  #: of the action; 0 if it has no plan
    all_run: bool  #: whether all pods run in the end


def judge(state: State) -> Verdict | None:
    """The verdict on one state; None if the gang needs no moves, or if there are none that help."""
    made = cluster(*state.objects)
    fewest = fewest_moves(made, state.rules)
    if not fewest:
        return None
    decisions = cycle(made, state.policy, NOW)
    moves = len(decisions.evictions)
    return Verdict(fewest, moves, not moves or everybody_runs(made, state, decisions))


def everybody_runs(made: Cluster, state: State, decisions: Decisions) -> bool:
    """Whether all pods run once the movers have left one by one, and their successors have come one by one."""
    builders = {f"default/{each.document['metadata']['name']}": each for each in state.objects if isinstance(each, PodBuilder)}
    number, gone = len(made.tasks), [eviction.task.key for eviction in decisions.evictions]
    for key in gone:
        made.remove("Pod", key)
        _run(made, cycle(made, state.policy, NOW + 1))
    for key in gone:
        fresh = builders[key].having("metadata", "uid", value=f"{key} again").having("spec", "nodeName", value="").phase("Pending")
        made.put(*fresh.created(NOW + 1).build())
        _run(made, cycle(made, state.policy, NOW + 2))
    made.check()
    return len(made.tasks) == number and all(task.status == status.RUNNING for task in made.tasks.values())


def _run(made: Cluster, decisions: Decisions) -> None:
    for bind in decisions.binds:
        made.move(bind.task, status.RUNNING, bind.task.node)


def verdicts(count: int, first: int = 0, make: Callable[[int], State] = small_state) -> Iterator[tuple[int, Verdict]]:
    """The verdicts on the first states in which moves help, each with its seed."""
    judged = ((seed, judge(make(seed))) for seed in itertools.count(first))
    return itertools.islice(((seed, verdict) for seed, verdict in judged if verdict is not None), count)


class Rates(NamedTuple):
    """Of states in which moves help: in which part a plan is found, has the fewest moves, has at most one more, and lets all pods run."""

    states: int
    found: float
    optimal: float
    within_one: float
    all_run: float


def rates(judged: Iterable[Verdict]) -> Rates:
    each = list(judged)
    count, found = len(each), [verdict for verdict in each if verdict.moves]
    optimal, within_one = (sum(verdict.moves <= verdict.fewest + more for verdict in found) for more in (0, 1))
    return Rates(count, len(found) / count, optimal / count, within_one / count, sum(verdict.all_run for verdict in each) / count)
