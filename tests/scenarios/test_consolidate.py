"""The action consolidate, and comeback, which it implies: who moves for a gang, who does not, and that everybody comes back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.times import Duration
from pumice.scheduler.actions.consolidate import Consolidate, ConsolidateArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.held_places import GIVEN_BACK, HeldPlace, held_places
from pumice.scheduler.framework.last_decisions import MEMORY
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.pipelined_room import pipelined_room
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.simulate.inputs import policy_of
from pumice.testing import cluster, hypernode, manifest, node, pod, podgroup, priority_class, queue
from pumice.testing.builders import Builder, PodBuilder
from pumice.testing.scene import NOW, policy

ACTIONS = "enqueue, allocate, consolidate, backfill"
PLUGINS = ("gang", "conformance", "predicates", "proportion", "nodeorder")


class Story:
    """A cluster and what happens in it. Pods that are bound run at once; pods that are evicted leave when the story says so."""

    def __init__(self, *objects: Any, actions: str = ACTIONS, plugins: tuple[str, ...] = PLUGINS, **args: Any) -> None:
        self.builders = {builder.document["metadata"]["name"]: builder for builder in _flat(objects) if isinstance(builder, PodBuilder)}
        self.cluster: Cluster = cluster(_flat(objects))
        made = policy(actions, plugins)
        rules = ConsolidateArgs(**{"maximum_lost_work": Duration(0), **args})
        chosen = tuple(Consolidate(rules) if each.name == "consolidate" else each for each in made.actions)
        self.policy = Policy(chosen, made.tiers)
        self.now = NOW
        self.left: list[str] = []  #: pods that have been evicted and are still there
        self.gone: list[str] = []  #: pods that have left, and whose successors have not come

    def cycle(self, seconds: float = 1.0) -> Decisions:
        self.now += seconds
        decisions = cycle(self.cluster, self.policy, self.now)
        self.cluster.check()
        for bind in decisions.binds:
            self.cluster.move(bind.task, status.RUNNING, bind.task.node)
            bind.task.started = self.now
        for task, name in decisions.nominations.items():
            task.nominated = name
        self.left += [eviction.task.name for eviction in decisions.evictions]
        return decisions

    def evicted(self) -> list[str]:
        """The pods that the next cycle evicts."""
        return [eviction.task.name for eviction in self.cycle().evictions]

    def leave(self, *names: str) -> None:
        """Evicted pods leave: these, or all."""
        for name in names or tuple(self.left):
            self.left.remove(name)
            self.gone.append(name)
            self.cluster.remove("Pod", f"default/{name}")

    def return_(self, *names: str) -> None:
        """Successors of pods that have left come: of these, or of all."""
        for name in names or tuple(self.gone):
            self.gone.remove(name)
            fresh = self.builders[name].having("metadata", "uid", value=f"new {name}").having("spec", "nodeName", value="")
            self.put(fresh.phase("Pending").created(self.now))

    def put(self, *objects: Any) -> None:
        for builder in _flat(objects):
            self.cluster.put(*builder.build())

    def regroup(self, name: str, least: int) -> None:
        """Somebody changes the minimum of a PodGroup. What the scheduler has noted on it stays."""
        noted = self.cluster.jobs[f"default/{name}"].held_places
        self.put(podgroup(name, least).phase("Running").annotation("pumice.io/held-places", noted))

    @property
    def held(self) -> list[HeldPlace]:
        return [place for job in self.cluster.jobs.values() for place in held_places(job)]

    @property
    def expecting(self) -> list[str]:
        """The jobs for which places are held."""
        return [job.name for job in self.cluster.expecting.values()]

    @property
    def places(self) -> dict[str, str]:
        return {task.name: task.node_name for task in self.cluster.tasks.values() if task.status == status.RUNNING}


def _flat(objects: Any) -> list[Builder]:
    return [each for entry in objects for each in ([entry] if isinstance(entry, Builder) else _flat(entry))]


def single(name: str, on: str, gpus: int = 2, **also: Any) -> list[Builder]:
    """A job of one running pod."""
    return gang(name, 1, [on], gpus, **also)


def gang(name: str, least: int, on: list[str], gpus: int = 2, ran: float = 3600, role: str = "") -> list[Builder]:
    """A job with a pod on each of these nodes."""
    pods = [pod(f"{name}-{number}").gpu(gpus).gang(name).owned("Job", name).on(where).started(NOW - ran) for number, where in enumerate(on)]
    return [podgroup(name, least).phase("Running"), *([each.role(role) for each in pods] if role else pods)]


def big(count: int = 1, gpus: int = 8, name: str = "big") -> list[Builder]:
    return podgroup(name, count).admitted().created(NOW - 60).pods(count, gpu=gpus)


def nodes(count: int = 3) -> list[Builder]:
    return [node(f"n{number}").gpu(8) for number in range(count)]


def in_pieces() -> list[Any]:
    """Three nodes, each with a job of one pod of 2 GPUs."""
    return [nodes(), [single(f"s{number}", f"n{number}") for number in range(3)]]


def test_one_pod_moves_and_the_gang_has_a_whole_node() -> None:
    story = Story(in_pieces(), big())
    decided = story.cycle()
    assert [(each.task.name, each.beneficiary, each.action) for each in decided.evictions] == [("s0-0", "default/big", "consolidate")]
    assert {each.task.name: each.node for each in decided.pipelined} == {"big-0": "n0"}
    assert [(event.job.name, event.reason, event.message) for event in decided.events] == [
        ("big", "Consolidate", "pods that move to make room: 1, such as default/s0-0"),
        ("s0", "Moved", "s0-0 makes room for default/big, and has a place on node n1"),
    ]
    story.leave()
    story.cycle()
    story.return_()
    story.cycle()
    assert story.places == {"big-0": "n0", "s0-0": "n1", "s1-0": "n1", "s2-0": "n2"}


def test_without_the_action_in_the_configuration_nobody_moves() -> None:
    assert Story(in_pieces(), big(), actions="enqueue, allocate").evicted() == []


def test_nobody_moves_if_the_idle_room_is_too_little_or_needs_no_moves() -> None:
    assert Story(nodes(2), single("s0", "n0", 5), single("s1", "n1", 5), big()).evicted() == []
    assert Story(nodes(2), single("s0", "n0", 5), big()).evicted() == []
    assert Story(nodes(2), single("s0", "n0", 5), big(), actions="enqueue, consolidate, allocate").evicted() == []


def test_nobody_moves_if_not_all_have_a_place() -> None:
    assert Story(nodes(2), single("s0", "n0", 5), single("s1", "n1", 5), big(), node("small").gpu(3)).evicted() == []


def test_the_places_are_held_from_the_cycle_that_evicts_until_all_are_there() -> None:
    story = Story(in_pieces(), big(), nodes(2)[:0])
    story.cycle()
    story.put(podgroup("thief", 1).admitted().created(NOW - 999).pods(2, gpu=4))
    story.put(podgroup("large", 1).admitted().created(NOW - 999).pods(1, gpu=8))
    for _ in range(3):
        decided = story.cycle()
        assert "large-0" not in story.places
        assert story.cluster.tasks["default/big-0"].status == status.PENDING
        assert not decided.evictions
    assert {"thief-0", "thief-1"} & story.places.keys() == {"thief-0", "thief-1"}, "there is room for two of 4 besides what is held"
    story.leave()
    story.cycle()
    assert story.places["big-0"] == "n0"
    story.cycle()
    story.return_()
    story.cycle()
    assert "s0-0" in story.places and "large-0" not in story.places


def test_a_place_that_nobody_takes_is_given_back() -> None:
    story = Story(in_pieces(), big())
    story.cycle()
    story.leave()
    story.cycle()
    story.put(podgroup("late", 1).admitted().pods(2, gpu=6))
    story.cycle()
    assert len(story.places.keys() & {"late-0", "late-1"}) == 1
    told = story.cycle(601).events
    assert {"late-0"} < story.places.keys() and story.held == []
    assert [(event.job.name, event.reason, event.message) for event in told if event.reason == GIVEN_BACK] == [
        ("s0", GIVEN_BACK, "the place on node n1 is given back: no pod took it in time")
    ]


def test_a_job_that_has_moved_is_let_in_though_its_own_place_was_the_last_room() -> None:
    jobs = [[group.needs(gpu=gpus), one] for gpus, (group, one) in ((2, single("s0", "n0")), (6, single("s1", "n1", 6)))]  # type: ignore[attr-defined]
    large = [podgroup("big", 1).needs(gpu=8).admitted(), pod("big-0").gpu(8).gang("big")]
    story = Story(nodes(2), jobs, large)
    assert story.evicted() == ["s0-0"]
    story.leave()
    for _ in range(3):
        story.cycle()
    assert story.cluster.jobs["default/s0"].phase == "Inqueue", "nobody makes pods of a job that is not let in"
    story.return_()
    story.cycle()
    assert story.places["s0-0"] == "n1"


def test_evictions_that_failed_are_followed_by_another_plan_but_not_at_once() -> None:
    story = Story(nodes(4), [single(f"s{number}", f"n{number}") for number in range(4)], big(2))
    assert story.evicted() == ["s0-0", "s1-0"]
    task = story.cluster.tasks["default/s1-0"]  # the server refused to let it go
    story.cluster.move(task, status.RUNNING, task.node)
    task.deleting = False
    story.leave("s0-0")
    assert story.evicted() == []
    story.put(podgroup("s1", 1).phase("Running").annotation("pumice.io/stays", "true"))
    story.now += 10
    assert story.evicted() == ["s3-0"]
    assert sorted(place.node for place in held_places(story.cluster.jobs["default/big"])) == ["n0", "n3"]


def test_a_place_is_given_back_with_its_job_or_its_node() -> None:
    story = Story(in_pieces(), big())
    story.cycle()
    story.leave()
    story.cluster.remove("PodGroup", "default/s0")
    story.cycle()
    story.cycle()
    assert story.expecting == []
    other = Story(in_pieces(), big())
    other.cycle()
    other.cluster.remove("Node", "n1")
    other.cycle()
    assert other.expecting == ["big"]


def test_a_node_that_shrinks_holds_no_place_but_the_pod_finds_another() -> None:
    story = Story(in_pieces(), big())
    story.cycle()
    story.leave()
    story.cycle()
    story.put(node("n1").gpu(3))
    story.return_()
    story.cycle()
    assert story.places["s0-0"] == "n2"


def test_the_next_scheduler_goes_on_to_hold_the_places() -> None:
    """All that a new scheduler knows are the objects of the API server: PodGroups with their annotations, pods, nodes."""
    story = Story(in_pieces(), big())
    story.cycle()
    story.leave()
    story.cluster.memory.clear()
    for name in ("big", "s0"):
        job = story.cluster.jobs[f"default/{name}"]
        group = podgroup(name, 1).created(NOW - 60).annotation("pumice.io/held-places", job.held_places)
        story.put(group.phase("Inqueue" if name == "big" else "Running"))
    story.put(podgroup("thief", 1).admitted().created(NOW - 999).pods(3, gpu=6))
    story.cycle()
    assert story.places["big-0"] == "n0" and len(story.places.keys() & {"thief-0", "thief-1", "thief-2"}) == 1
    story.return_()
    story.cycle()
    assert story.places["s0-0"] == "n1"


def test_an_annotation_that_cannot_be_read_holds_nothing() -> None:
    story = Story(in_pieces(), podgroup("odd", 1).annotation("pumice.io/held-places", "{oops").admitted())
    story.cycle()
    assert story.expecting == [] and story.cluster.jobs["default/odd"].held_places == ""


def test_a_mover_whose_successor_fits_better_elsewhere_goes_there() -> None:
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}}
    group, one = single("s0", "n0")
    likes = one.having("spec", "affinity", value={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
    story = Story(nodes(), group, likes, single("s1", "n1"), single("s2", "n2"), big())
    story.cycle()
    assert sorted(place.node for place in story.held) == ["n0", "n1"]
    story.leave()
    story.cycle()
    story.return_()
    story.cycle()
    assert story.places["s0-0"] == "n2"
    story.cycle()
    assert story.held == []


def test_a_whole_gang_moves_together_and_starts_together() -> None:
    story = Story(nodes(3), gang("pair", 2, ["n0", "n0"]), single("s1", "n1", 5), single("s2", "n2", 5), big())
    assert sorted(story.evicted()) == ["pair-0", "pair-1"]
    story.leave()
    story.cycle()
    assert story.places["big-0"] == "n0"
    story.return_("pair-0")
    story.cycle()
    assert "pair-0" not in story.places
    story.put(podgroup("other", 1).admitted().created(NOW - 999).pods(3, gpu=2))
    story.cycle()
    assert not story.places.keys() & {"other-0", "other-1", "other-2"}
    story.return_("pair-1")
    story.cycle()
    assert {"pair-0", "pair-1"} < story.places.keys()


def test_a_gang_loses_no_pod_below_its_minimum() -> None:
    """Of a gang of three that needs two one pod may go, not two. If it needs all three, it moves as a whole."""
    assert len(Story(nodes(3), gang("elastic", 2, ["n0", "n1", "n2"]), big()).evicted()) == 1
    assert Story(nodes(3), gang("elastic", 2, ["n0", "n1", "n2"]), big(2)).evicted() == []
    assert len(Story(nodes(3), gang("whole", 3, ["n0", "n1", "n2"]), big(2)).evicted()) == 3


def test_a_role_loses_no_pod_below_its_minimum() -> None:
    roles = [podgroup("roles", 1).roles(driver=1).phase("Running"), *_of_roles()]
    story = Story(nodes(2), roles, single("s1", "n1", 3), big())
    assert story.evicted() == ["s1-0"]


def _of_roles() -> list[Builder]:
    made = pod("roles-0").gang("roles").owned("Job", "roles").started(NOW - 3600)
    return [made.gpu(2).role("driver").on("n0"), made.having("metadata", "name", value="roles-1").gpu(1).role("worker").on("n0")]


def test_a_pod_disruption_budget_is_kept() -> None:
    def budget(allowed: int) -> Builder:
        spec = {"selector": {"matchLabels": {"app": "s"}}, "minAvailable": 1}
        return manifest("PodDisruptionBudget", "keep", spec=spec, status={"disruptionsAllowed": allowed})

    def labelled() -> list[Builder]:
        return [each.label("app", "s") if isinstance(each, PodBuilder) else each for each in _flat(in_pieces())]

    assert Story(labelled(), budget(0), big()).evicted() == []
    assert Story(labelled(), budget(1), big()).evicted() == ["s0-0"]
    both = Story(labelled(), budget(1), nodes(5)[3:], single("s3", "n3"), single("s4", "n4"), big(), big(name="next"))
    assert len([name for name in both.evicted() if name in ("s0-0", "s1-0", "s2-0")]) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each.preemptable(False),
        lambda each: each.annotation("pumice.io/stays", "true"),
        lambda each: each.priority(2_000_000_000).having("spec", "priorityClassName", value="system-node-critical"),
        lambda each: each.having("metadata", "ownerReferences", value=[]),
        lambda each: each.owned("DaemonSet", "d"),
        lambda each: each.started(NOW - 60),
        lambda each: each.phase("Pending"),
        lambda each: each.leaving(),
        lambda each: each.gang("none"),
        lambda each: each.having("metadata", "annotations", value={}),
        lambda each: each.scheduler("another"),
        lambda each: each.selector("kubernetes.io/hostname", each.document["spec"]["nodeName"]),
    ],
)
def test_pods_that_do_not_move(change: Any) -> None:
    objects = [change(each) if isinstance(each, PodBuilder) else each for each in _flat(in_pieces())]
    assert Story(objects, big()).evicted() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda group: group.annotation("pumice.io/stays", "true"),
        lambda group: group.annotation("volcano.sh/preemptable", "false"),
        lambda group: group.queue("other"),
        lambda group: group.having("spec", "minMember", value=2),
        lambda group: group.topology(1).parts("part", 1),
    ],
)
def test_jobs_whose_pods_do_not_move(change: Any) -> None:
    objects = [each if isinstance(each, PodBuilder) or each.kind == "Node" else change(each) for each in _flat(in_pieces())]
    assert Story(queue("other"), objects, big(), protected_queues=["other"]).evicted() == []


def test_a_pod_group_with_a_controller_vouches_for_its_pods() -> None:
    bare = [each.having("metadata", "ownerReferences", value=[]) if isinstance(each, PodBuilder) else each for each in _flat(in_pieces())]
    assert Story(bare, big()).evicted() == []
    owner = [{"kind": "Job", "name": "j", "controller": True}]
    owned = [each.having("metadata", "ownerReferences", value=owner) if each.kind == "PodGroup" else each for each in bare]
    assert Story(owned, big()).evicted() == ["s0-0"]


def test_arguments_say_for_whom_and_how_much_moves() -> None:
    assert Story(in_pieces(), big(), protected_namespaces=["default"]).evicted() == []
    assert Story(in_pieces(), big(), protected_queues=["default"]).evicted() == []
    assert Story(in_pieces(), big(), minimum_priority=1).evicted() == []
    assert Story(in_pieces(), big(), minimum_wait=Duration(300)).evicted() == []
    assert Story(in_pieces(), big(), minimum_run_time=Duration(7200)).evicted() == []
    urgent = [priority_class("urgent", 1), podgroup("big", 1).priority_class("urgent").admitted().pods(1, gpu=8)]
    assert Story(in_pieces(), urgent, minimum_priority=1).evicted() == ["s0-0"]
    two = [nodes(4), [single(f"s{number}", f"n{number}") for number in range(4)], big(), big(name="next")]
    assert len(Story(two).evicted()) == 2
    assert len(Story(two, moves_per_cycle=1).evicted()) == 1
    assert len(Story(two, moves_per_cycle=0).evicted()) == 2
    assert len(Story(two, moves_per_hour=1).evicted()) == 1


def test_a_time_that_is_none_leaves_the_default_and_that_is_said() -> None:
    given = "configurations: [{name: consolidate, arguments: {minimumRunTime: soon, maximumLostWork: -5m, quietPeriod: 1h}}]"
    made, warnings = policy_of(f'actions: "consolidate"\n{given}', "conf")
    args = [action.args for action in made.actions if action.name == "consolidate"]
    assert args == [ConsolidateArgs(quiet_period=Duration(3600))]
    assert [("minimumRunTime" in warnings[0], "maximumLostWork" in warnings[1]), len(warnings)] == [(True, True), 2]


def test_a_job_is_moved_so_often_in_an_hour_and_a_pod_not_soon_again() -> None:
    def moved_twice(**args: Any) -> list[str]:
        group, stays = single("s2", "n2", 6)
        story = Story(nodes(3), single("s0", "n0", 1), single("s1", "n1", 6), group, stays.preemptable(False), big(), **args)  # type: ignore[attr-defined]
        assert story.evicted() == ["s0-0"]
        story.leave()
        story.cycle()
        story.return_()
        story.cycle()
        story.cluster.remove("Pod", "default/big-0")
        story.cluster.remove("Pod", "default/s1-0")
        story.put(big(2, name="next"))
        story.cycle(700)
        return story.left

    assert moved_twice() == []
    assert moved_twice(quiet_period=Duration(0)) == ["s0-0"]
    assert moved_twice(quiet_period=Duration(0), moves_per_owner=1) == []
    assert moved_twice(quiet_period=Duration(0), moves_per_owner=2) == ["s0-0"]


def test_those_go_that_lose_the_least() -> None:
    story = Story(nodes(3), single("old", "n0", ran=9000), single("young", "n1", ran=400), single("s2", "n2", ran=5000), big())
    assert story.evicted() == ["young-0"]


def test_who_would_lose_too_much_work_stays_but_services_lose_none() -> None:
    assert ConsolidateArgs().maximum_lost_work == 3600
    assert Story(in_pieces(), big(), maximum_lost_work=Duration(1800)).evicted() == []
    assert Story(in_pieces(), big(), maximum_lost_work=Duration(3660)).evicted() == ["s0-0"]
    saves = [each.annotation("pumice.io/checkpoint-every", "50m") if each.kind == "PodGroup" else each for each in _flat(in_pieces())]
    assert Story(saves, big(), maximum_lost_work=Duration(1800)).evicted() == ["s0-0"]
    serves = [each.owned("ReplicaSet", "web") if isinstance(each, PodBuilder) else each for each in _flat(in_pieces())]
    assert Story(serves, big(), maximum_lost_work=Duration(1800)).evicted() == ["s0-0"]


def test_a_queue_that_may_have_no_more_gets_no_room() -> None:
    poor = podgroup("big", 1).queue("poor").admitted().pods(1, gpu=8)
    assert Story(queue("poor").capability(gpu=4), in_pieces(), poor, plugins=(*PLUGINS, "capacity")).evicted() == []


def test_filters_that_refuse_a_place_in_a_plan_lead_to_another_plan() -> None:
    """Two pods of one application must not share a node: the move to the fullest node is refused, another one is found."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def web(name: str, on: str, gpus: int) -> list[Builder]:
        group, one = single(name, on, gpus)
        return [group, one.label("app", "web").having("spec", "affinity", value=apart)]

    story = Story(nodes(3), web("a", "n0", 1), web("b", "n1", 5), single("c", "n2", 3), big(1, 8))
    assert story.evicted() == ["a-0"]
    story.leave()
    story.cycle()
    story.return_()
    story.cycle()
    assert story.places["a-0"] == "n2"


def test_pods_that_keep_away_from_each_other_get_a_node_each() -> None:
    """Both would fit on n2: that is refused for two of them, not for one."""
    term = {"labelSelector": {"matchLabels": {"app": "big"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    wanted = [pod(f"big-{number}").gpu(4).gang("big").label("app", "big").having("spec", "affinity", value=away) for number in range(2)]
    wanted = [each.having("spec", "topologySpreadConstraints", value=spread("big", 5)) for each in wanted]
    running = [single("a", "n0", 4), single("a2", "n0", 1), single("b", "n1", 5)]
    story = Story(zoned("aaa"), running, podgroup("big", 2).admitted(), wanted)
    assert story.evicted() == ["a2-0"]
    story.leave()
    story.cycle()
    assert {story.places["big-0"], story.places["big-1"]} == {"n0", "n2"}


def zoned(zones: str) -> list[Builder]:
    """Nodes in these zones, one each."""
    return [node(f"n{number}").gpu(8).label("zone", zone) for number, zone in enumerate(zones)]


def spread(app: str, skew: int = 1) -> list[dict[str, Any]]:
    """The constraints of pods that are to be spread over the zones."""
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def fixed(name: str, on: str, gpus: int) -> list[Builder]:
    group, one = single(name, on, gpus)
    return [group, one.preemptable(False)]  # type: ignore[attr-defined]


def test_pods_that_are_to_be_spread_are_placed_in_an_order_that_allows_it() -> None:
    """The fullest nodes first would be two of one zone, before the other zone has any."""
    wanted = [pod(f"big-{number}").gpu(8).gang("big").label("app", "big") for number in range(3)]
    wanted = [each.having("spec", "topologySpreadConstraints", value=spread("big")) for each in wanted]
    running = [single("s", "n2", 2), fixed("r", "n3", 4)]
    assert Story(zoned("bbaa"), running, podgroup("big", 3).admitted(), wanted).evicted() == ["s-0"]


def test_of_pods_that_are_to_be_spread_no_more_go_to_a_zone_than_it_may_have() -> None:
    """The fullest nodes with room for both are in one zone."""
    two = [each.label("app", "two") if isinstance(each, PodBuilder) else each for each in gang("two", 2, ["n0", "n0"], 4)]
    two = [each.having("spec", "topologySpreadConstraints", value=spread("two")) if isinstance(each, PodBuilder) else each for each in two]
    rest = [fixed("r1", "n1", 4), fixed("r2", "n2", 4), fixed("r3", "n3", 3)]
    story = Story(zoned("baab"), two, rest, big())
    assert story.evicted() == ["two-0", "two-1"]
    story.leave()
    story.cycle()
    story.return_()
    story.cycle()
    assert story.places["big-0"] == "n0" and "n3" in (story.places["two-0"], story.places["two-1"])


def test_of_pods_that_would_make_room_those_go_that_may_be_elsewhere() -> None:
    """However cheap it is to let those go that are bound to the node."""
    there = [node(f"n{number}").gpu(8).label("name", f"n{number}") for number in range(4)]
    group, one = single("bound", "n0")
    running = [group, one.selector("name", "n0"), single("free", "n0"), gang("trio", 3, ["n0", "n1", "n1"])]  # type: ignore[attr-defined]
    running += [single("a", "n1", 3), single("b", "n2", 3), single("c", "n2", 1), single("d", "n3", 2)]
    wanted = [each.selector("name", "n0") for each in pod("big").gpu(3).gang("big").times(2)]
    assert sorted(Story(there, running, podgroup("big", 2).admitted(), wanted).evicted()) == ["free-0", "trio-0", "trio-1", "trio-2"]


def test_two_pods_go_where_one_large_pod_gives_way_though_a_small_one_would_do_for_one_of_them() -> None:
    """n0 has room for one of them once the small pod is gone, but for two once the large one is, which fits on n1."""
    rest = [fixed("r1", "n1", 4), fixed("r2", "n2", 5)]
    story = Story(nodes(), single("small", "n0", 2), single("large", "n0", 4), rest, big(3, 3))
    assert story.evicted() == ["large-0"]


def test_nobody_goes_beside_others_whose_going_is_enough() -> None:
    """n0 lacks 2 GPUs. One of a, b and c is enough, but none has room elsewhere. The pair has, and is not left out for a with b."""
    there = [node("n0").gpu(24), node("n1").gpu(8)]
    running = [single(name, "n0", gpus) for name, gpus in (("a", 3), ("b", 4), ("c", 5))]
    pair = gang("pair", 2, ["n0", "n1"], 2, ran=36_000)
    assert sorted(Story(there, running, pair, fixed("r", "n1", 4), big(1, 12)).evicted()) == ["pair-0", "pair-1"]


def test_plans_are_tried_only_so_often() -> None:
    """A pod that no other may stand beside: each plan proposes another node, and none stands."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = [single(f"w{number}", f"n{number}", 1 if number == 0 else 5) for number in range(10)]
    webs = [
        each.label("app", "web").having("spec", "affinity", value=apart) if isinstance(each, PodBuilder) else each for each in _flat(made)
    ]
    assert Story(nodes(10), webs, big()).evicted() == []


def test_of_many_different_pods_on_a_node_the_large_ones_are_considered() -> None:
    small = [single(f"c{number}", "n0", 0) for number in range(10)]
    different = [each.cpu(number) if isinstance(each, PodBuilder) else each for number, each in enumerate(_flat(small), 1)]
    wanted = podgroup("big", 1).admitted().pods(1, gpu=8, cpu=181)
    story = Story(node("n0").gpu(8).cpu(200), node("n1").gpu(7).cpu(200), different, single("s0", "n0", 2), wanted)
    assert {"c9-0", "c8-0", "s0-0"} < set(story.evicted()) and len(story.left) == 8


def test_of_pods_that_cost_the_same_one_goes() -> None:
    """Two gangs that can spare a pod each, alike in all that counts."""
    two = [gang(name, 1, ["n0", "n1"], 1) for name in ("one", "two")]
    assert Story(nodes(2), two, big(1, 7)).evicted() in (["one-0"], ["two-0"])


def test_pods_that_hold_nothing_of_what_is_short_stay() -> None:
    assert Story(in_pieces(), single("idle", "n0", 0), big()).evicted() == ["s0-0"]


def test_a_place_is_held_on_while_its_pod_cannot_take_it() -> None:
    story = Story(in_pieces(), big())
    story.cycle()
    story.leave()
    story.cycle()
    story.builders["s0-0"] = story.builders["s0-0"].selector("never", "there")
    story.return_()
    story.put(podgroup("thief", 1).admitted().created(NOW - 999).pods(2, gpu=6))
    story.cycle()
    assert len(story.places.keys() & {"thief-0", "thief-1"}) == 1
    story.regroup("s0", 3)
    story.cycle()
    assert story.expecting == ["s0"], "a job that lacks pods is not served, and keeps its places"


def test_a_successor_that_has_grown_takes_the_room_of_two() -> None:
    story = Story(node("n0").gpu(8), node("n1").gpu(4), gang("pair", 2, ["n0", "n0"]), big())
    assert len(story.evicted()) == 2
    story.leave()
    story.cycle()
    story.regroup("pair", 1)
    story.builders["pair-0"] = story.builders["pair-0"].gpu(4)
    story.return_()
    story.cycle()
    assert story.places == {"big-0": "n0", "pair-0": "n1"}


def test_after_a_search_in_vain_there_is_none_for_a_while() -> None:
    story = Story(nodes(2), single("s0", "n0", 5), single("s1", "n1", 5), node("small").gpu(3), big())
    assert story.evicted() == []
    story.put(node("small").gpu(5))
    assert story.evicted() == []
    story.now += 10
    assert len(story.evicted()) == 1


def test_time_alone_lets_a_job_have_room() -> None:
    """Nothing changes in the cluster, so that the decisions of the last cycle would hold; but by now the job has waited long enough."""
    story = Story(in_pieces(), big(), minimum_wait=Duration(300))
    assert story.evicted() == [] and MEMORY in story.cluster.memory
    assert story.cycle(100).evictions == []
    assert len(story.cycle(200).evictions) == 1
    vain = Story(nodes(2), single("s0", "n0", 5), single("s1", "n1", 5), node("small").gpu(3), big())
    vain.cycle()
    vain.cycle()
    assert MEMORY in vain.cluster.memory, "what was in vain is not tried again at once"
    vain.cycle(10)
    assert MEMORY not in vain.cluster.memory


def test_a_job_with_a_network_topology_gets_room_in_one_domain() -> None:
    tree = [hypernode("left").holds("n0", "n1"), hypernode("right").holds("n2", "n3")]
    running = [single("s0", "n0", 1), single("s1", "n1", 2), single("s2", "n2", 1), single("s3", "n3", 5)]
    asks = podgroup("big", 2).topology(1).admitted().pods(2, gpu=7)
    plugins = (*PLUGINS, "network-topology-aware")
    story = Story(nodes(5), tree, running, single("s4", "n4", 4), asks, plugins=plugins)
    assert story.evicted() == ["s1-0"]
    story.leave()
    story.cycle()
    assert (story.places["big-0"], story.places["big-1"]) in (("n0", "n1"), ("n1", "n0"))
    assert Story(nodes(5), running, single("s4", "n4", 4), asks, plugins=plugins).evicted() == []


def test_a_mover_stays_within_its_own_domain() -> None:
    tree = [hypernode("left").holds("n0", "n1"), hypernode("right").holds("n2")]

    def bound(name: str, on: str) -> list[Builder]:
        group, one = single(name, on)
        return [group.topology(1), one]  # type: ignore[attr-defined]

    plugins = (*PLUGINS, "network-topology-aware")
    assert Story(nodes(3), tree, bound("s0", "n0"), single("s1", "n1", 7), bound("s2", "n2"), big(), plugins=plugins).evicted() == []
    free = Story(nodes(3), tree, bound("s0", "n0"), single("s1", "n1", 6), single("s2", "n2", 7), big(), plugins=plugins)
    assert free.evicted() == ["s0-0"]


def test_a_mover_stays_near_where_it_was() -> None:
    """n3 is fuller, but n1 is in the same rack, and n2 in the same block."""
    tree = [
        hypernode("rack").holds("n0", "n1"),
        hypernode("other").holds("n2"),
        hypernode("block", 2).holds("rack", "other", kind="HyperNode"),
    ]
    running = [single("s0", "n0"), single("s1", "n1", 1), single("s2", "n2", 2), single("s3", "n3", 4)]
    for objects, place in (([tree, running], "n0"), (running, "n3")):
        story = Story(nodes(4), objects, big(), plugins=(*PLUGINS, "network-topology-aware"))
        assert story.evicted() == ["s1-0"]
        assert [held.node for held in held_places(story.cluster.jobs["default/s1"])] == [place]


def in_parts(count: int, gpus: int, tier: int | None = None) -> list[Builder]:
    """A gang of two parts with so many pods each."""
    group = podgroup("big", 2 * count).parts("part", count, 2, tier).admitted()
    return [group, *(pod(f"big-{n}").gpu(gpus).gang("big").label("part", str(n // count)) for n in range(2 * count))]


def test_a_gang_in_parts_gets_room_for_all_that_it_needs() -> None:
    story = Story(nodes(4), [single(f"s{number}", f"n{number}") for number in range(4)], in_parts(1, 8))
    assert len(story.evicted()) == 2
    story.leave()
    story.cycle()
    assert {"big-0", "big-1"} <= story.places.keys() and story.places["big-0"] != story.places["big-1"]
    story.return_()
    story.cycle()
    assert len(story.places) == 6


def test_each_part_of_a_gang_gets_room_in_one_domain() -> None:
    tree = [hypernode("left").holds("n0", "n1"), hypernode("right").holds("n2", "n3")]
    running = [single(f"s{number}", f"n{number}") for number in range(4)]
    plugins = (*PLUGINS, "network-topology-aware")
    story = Story(nodes(5), tree, running, in_parts(2, 7, tier=1), plugins=plugins)
    assert sorted(story.evicted()) == ["s0-0", "s1-0", "s2-0", "s3-0"]
    story.leave()
    story.cycle()
    racks = [{story.places[f"big-{number}"] for number in numbers} for numbers in ((0, 1), (2, 3))]
    assert sorted(map(sorted, racks)) == [["n0", "n1"], ["n2", "n3"]]
    assert Story(nodes(5), tree, running, in_parts(2, 7, tier=0), plugins=plugins).evicted() == []


def test_parts_that_a_gang_does_not_need_get_no_room() -> None:
    group = podgroup("big", 1).parts("part", 1, 1, 1).admitted()
    parts = [group, *(pod(f"big-{n}").gpu(8).gang("big").label("part", str(n)) for n in range(2))]
    tree = [hypernode("left").holds("n0", "n1"), hypernode("right").holds("n2", "n3")]
    running = [single(f"s{number}", f"n{number}") for number in range(4)]
    assert len(Story(nodes(4), tree, running, parts, plugins=(*PLUGINS, "network-topology-aware")).evicted()) == 1


def test_roles_that_a_gang_lacks_come_first() -> None:
    member = pod("big").gang("big").gpu(8)
    wanted = [member.having("metadata", "name", value="big-a").role("extra").gpu(9), member.role("driver")]
    story = Story(in_pieces(), podgroup("big", 1).roles(driver=1).admitted(), wanted)
    assert story.evicted() == ["s0-0"]


def test_plain_pods_of_kube_scheduler_leave_held_places_alone() -> None:
    """With profiles beside Volcano's actions, the action schedule takes no room that is promised."""
    story = Story(in_pieces(), big())
    for expected in (0, 1):
        with Session(story.cluster, story.policy, story.now) as session:
            assert len(pipelined_room(session)) == expected
        story.cycle()


def test_a_cycle_that_fails_leaves_neither_places_nor_placeholders() -> None:
    class Broken(Action):
        name = "broken"

        def run(self, session: Session) -> None:
            raise RuntimeError("boom")

    story = Story(in_pieces(), big())
    whole = story.policy
    for seconds in (0, 1):
        before = story.held
        story.policy = replace(whole, actions=(*whole.actions, Broken()))
        with pytest.raises(RuntimeError, match="boom"), Session(story.cluster, story.policy, NOW + seconds) as session:
            for action in story.policy.actions:
                action.run(session)
        story.cluster.check()
        assert story.held == before
        assert not any("~" in key for key in story.cluster.tasks)
        story.policy = whole
        story.cycle()
