"""One pod at a time, in the order of the queue, each as if the earlier ones stood."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused
from pumice.scheduler.engine.view import View
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import Nowhere
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import CPU
from pumice.scheduler.registry import PLUGINS
from pumice.testing.builders import PodBuilder, podgroup, queue
from tests.kube_scheduler import native
from tests.kube_scheduler.stage import KUBE_DEFAULT, Outcome, cluster, document, existing, machine, play, policy, profile, run, waiting

PACK = (
    "{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}, pluginConfig: [{name: NodeResourcesFit, args: %s}]}"
)
MOST = PACK % "{scoringStrategy: {type: MostAllocated}}"
NO_SCORES = "{plugins: {score: {disabled: [{name: '*'}]}, preScore: {disabled: [{name: '*'}]}}}"


def test_the_more_important_pod_comes_first_then_the_older() -> None:
    one = machine("a", 1)
    late, early = (waiting(name).created(f"2026-01-01T0{hour}:00:00Z") for name, hour in (("late", 2), ("early", 1)))
    assert play(one, late, early).binds == {"early": "a"}
    assert play(one, early, late.priority(1)).binds == {"late": "a"}
    assert play(one, late, waiting("unknown")).binds == {"unknown": "a"}


def test_tolerations_compare_numbers_only_with_the_gate() -> None:
    tainted = machine("n1").taint("level", "5")
    above = waiting("p").having("spec", "tolerations", value=[{"key": "level", "operator": "Gt", "value": "3"}])
    assert play(tainted, above).waiting["p"].startswith("0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    assert native.play(tainted, above, gates={"TaintTolerationComparisonOperators": True}).binds == {"p": "n1"}


def test_of_equal_pods_the_first_in_the_input_comes_first() -> None:
    assert play(machine("a", 1), waiting("b"), waiting("a")).binds == {"b": "a"}


def test_a_gated_pod_is_not_tried_and_is_told_so() -> None:
    gated = waiting("p").having("spec", "schedulingGates", value=[{"name": "quota"}, {"name": "image"}])
    outcome = play(machine("a"), gated)
    assert outcome.binds == {}
    assert outcome.waiting == {"p": "waiting for scheduling gates: [quota image]"}


def test_on_the_network_of_its_node_all_ports_of_a_pod_are_the_nodes() -> None:
    def listening(made: PodBuilder, **port: int) -> PodBuilder:
        return made.having("spec", "containers", 0, "ports", value=[{"containerPort": 80} | port])

    on_host = listening(existing("x", "a")).having("spec", "hostNetwork", value=True)
    both = machine("a"), machine("b")
    assert play(*both, on_host, listening(waiting("p"), hostPort=80), listening(waiting("q"))).binds == {"p": "b", "q": "a"}
    elsewhere = listening(existing("x", "a"), hostPort=81).having("spec", "hostNetwork", value=True)
    assert play(machine("a"), elsewhere, listening(waiting("p"), hostPort=80)).binds == {"p": "a"}


def test_equal_totals_go_to_the_first_node() -> None:
    assert play(machine("b"), machine("a"), waiting("p")).binds == {"p": "b"}


def test_a_run_of_equal_pods_goes_where_pods_one_by_one_would_go() -> None:
    nodes = [machine(f"n{i}", 2 + i % 3) for i in range(5)]
    for conf in (KUBE_DEFAULT, profile(MOST)):
        chosen = policy(conf)
        planned = run(cluster(chosen, *nodes, *waiting("p").times(12)), chosen).binds
        apart = [each.label("own", str(number)) for number, each in enumerate(waiting("p").times(12))]
        apart = [each.having("spec", "tolerations", value=[{"key": f"k{n}"}]) for n, each in enumerate(apart)]
        assert run(cluster(chosen, *nodes, *apart), chosen).binds == planned


def test_a_run_ends_where_the_room_does_and_the_next_kind_of_pod_finds_its_own_way() -> None:
    rooms = (machine("a", 3), machine("b", 3))
    many = play(*rooms, *waiting("p").times(9), *waiting("small", "10m").times(5))
    assert sorted(many.binds) == [f"p-{number}" for number in range(6)]
    assert many.waiting["p-8"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    short = play(*rooms, *waiting("p").times(5), *waiting("small", "10m").times(5), *waiting("late").times(4))
    assert set(short.binds) == {f"p-{number}" for number in range(5)} | {f"small-{number}" for number in range(5)}


def test_pods_of_unknown_schedulers_are_left_alone() -> None:
    outcome = play(machine("a"), waiting("p").scheduler("somebody"))
    assert (outcome.binds, outcome.waiting) == ({}, {})


def test_profiles_work_side_by_side() -> None:
    packer = MOST.replace("{plugins", "{schedulerName: packer, plugins", 1)
    conf = f"{KUBE_DEFAULT}profiles: [{{schedulerName: default-scheduler}}, {packer}]\n"
    crowd = (machine("a", 4), machine("b", 4), existing("x", "b", 2))
    assert play(*crowd, waiting("p"), waiting("q").scheduler("packer"), conf=conf).binds == {"p": "a", "q": "b"}


def test_the_reason_counts_nodes_and_lists_every_shortage() -> None:
    nodes = (machine("a", 1), machine("b").cordoned(), machine("c").taint("t"), machine("d", 1).memory("50Mi"))
    message = play(*nodes, waiting("p", 2)).waiting["p"]
    assert message == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
        "2 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )


def test_without_nodes_there_is_nothing_to_say_about_them() -> None:
    chosen = policy()
    (told,) = cycle(cluster(chosen, waiting("p")), chosen, 0.0).waiting
    assert (told.reason, told.message) == ("Unschedulable", "no nodes available to schedule pods")


# -- nominations


def test_a_nominated_node_is_taken_without_comparing() -> None:
    assert play(machine("a", 2), machine("b", 64), waiting("p").having("status", "nominatedNodeName", value="a")).binds == {"p": "a"}


def test_a_nomination_holds_its_room_against_equals_but_not_against_the_more_important() -> None:
    held = waiting("held", 2, priority=5).having("status", "nominatedNodeName", value="a").created("2026-01-01T09:00:00Z")
    full = (
        existing("x", "a", 2)
        .leaving()
        .having("status", "conditions", value=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])
    )
    room = (machine("a", 3), machine("b", 1), full)
    assert play(*room, held, waiting("equal", 1, 5), waiting("more", 1, 9)).binds == {"more": "a", "equal": "b"}


@pytest.mark.parametrize("column", ["used", "used_for_filters", "idle"])
def test_a_nomination_holds_its_room_in_the_eyes_of_every_rule_that_reads_columns(column: str) -> None:
    """The rule leaves a core free on each node: with the pod that is expected on a there is none to spare there."""

    class Spare(Filter):
        name = "spare"
        reach, plannable = Reach.NODE, True

        def refuse(self, state: Any, nodes: View) -> list[Refused]:
            shown = getattr(nodes, column)[CPU]
            idle = shown if column == "idle" else nodes.allocatable[CPU] - shown
            return [Refused(idle < 2000, Reason("none to spare"))]

    class Sparing(Plugin):
        name = "spare"

        def filters(self) -> list[Filter]:
            return [Spare()]

    held = waiting("held", 2, priority=5).having("status", "nominatedNodeName", value="a").created("2026-01-01T09:00:00Z")
    slow = held.having("spec", "nodeSelector", value={"not": "yet"})
    text = profile("{plugins: {filter: {enabled: [{name: spare}]}}}")
    chosen, _ = read_kube(document(text), {"spare": Sparing})
    for expected, extra in (("b", slow), ("a", slow.priority(0))):
        made = cluster(chosen, machine("a", 3), machine("b", 2), extra, waiting("p", 1, 5))
        assert run(made, chosen).binds == {"p": expected}


def test_a_nomination_for_a_node_that_is_gone_holds_nothing() -> None:
    lost = waiting("lost", 2, priority=5).having("status", "nominatedNodeName", value="gone")
    assert play(machine("a", 2), lost).binds == {"lost": "a"}


# -- some nodes only


def nodes(count: int, zone: bool = False) -> list[object]:
    return [machine(f"n{i}", 2, **({"topology.kubernetes.io/zone": f"z{i % 2}"} if zone else {})) for i in range(count)]


def test_without_scores_the_first_node_that_fits_is_taken_and_the_next_search_goes_on_from_there() -> None:
    binds = play(*nodes(3), *waiting("p").times(4), conf=profile(NO_SCORES)).binds
    assert list(binds.values()) == ["n0", "n1", "n2", "n0"]


def test_the_search_goes_round_the_zones_and_on_in_the_next_cycle() -> None:
    uneven = [machine(f"n{i}", 2, **{"topology.kubernetes.io/zone": "ab"[i == 2]}) for i in range(3)]
    chosen = policy(profile(NO_SCORES))
    made = cluster(chosen, *uneven, waiting("p"))
    assert run(made, chosen).binds == {"p": "n0"}
    made.put(*waiting("q").build())
    assert run(made, chosen).binds == {"q": "n2"}


def test_a_percentage_ends_the_search_but_never_below_a_hundred_nodes() -> None:
    best = machine("best", 64)
    some = f"{KUBE_DEFAULT}percentageOfNodesToScore: 50\n"
    assert play(*nodes(98), best, waiting("p"), conf=some).binds == {"p": "best"}
    assert play(*nodes(120), best, waiting("p"), conf=some).binds == {"p": "n0"}
    assert play(*nodes(120), best, waiting("p")).binds == {"p": "best"}


def named(made: PodBuilder, *names: str) -> PodBuilder:
    """A pod that may only go to nodes of these names, as a DaemonSet's pods are made."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    return made.having(*path, value=terms)


def test_a_pod_for_nodes_by_name_is_looked_for_among_them_alone() -> None:
    """Its search passes one node, so the next one goes on from the second."""
    binds = play(*nodes(3), named(waiting("first", priority=1), "n2"), *waiting("p").times(2), conf=profile(NO_SCORES)).binds
    assert binds == {"first": "n2", "p-0": "n1", "p-1": "n2"}
    lost = play(*nodes(3), named(waiting("lost"), "gone"), conf=profile(NO_SCORES))
    assert lost.waiting["lost"].startswith("0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].")


# -- with a backlog


def test_who_is_due_but_gone_or_somebody_elses_is_neither_tried_nor_remembered() -> None:
    chosen = policy()
    made = cluster(chosen, machine("a", 9), waiting("gone"), waiting("theirs"), waiting("stays"))
    scheduling_queue = SchedulingQueue(made)
    for task in made.without_job.values():
        scheduling_queue.add(task)
    gone, theirs = (made.tasks[f"default/{name}"] for name in ("gone", "theirs"))
    made.remove("Pod", gone.key)
    made.put(*waiting("theirs").scheduler("somebody").build())
    assert run(made, chosen, queue=scheduling_queue).binds == {"stays": "a"}
    assert not scheduling_queue.knows(gone)
    assert not scheduling_queue.knows(theirs)


# -- beside Volcano

VOLCANO = """\
actions: "%senqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def mixed(conf: str, *more: str) -> Cluster:
    gang = [waiting("w").scheduler("volcano").gang("g").times(2)]
    return cluster(
        policy(conf, *more),
        queue("default"),
        machine("a", 3),
        podgroup("g", 2),
        *gang[0],
        waiting("plain"),
        waiting("mine").scheduler("other"),
    )


def test_gangs_and_plain_pods_share_the_nodes_in_one_session() -> None:
    for texts in ((VOLCANO % "schedule, ",), (VOLCANO % "", KUBE_DEFAULT), (VOLCANO % "schedule, ", KUBE_DEFAULT)):
        outcome = run(mixed(*texts), policy(*texts))
        assert outcome.binds == {"plain": "a", "w-0": "a", "w-1": "a"}


def test_where_schedule_stands_decides_who_comes_first() -> None:
    texts = ((VOLCANO % "").replace("backfill", "backfill, schedule"),)
    made = mixed(*texts)
    made.remove("Node", "a")
    made.put(*machine("b", 2).build())
    assert run(made, policy(*texts)).binds == {"w-0": "b", "w-1": "b"}
    first = (VOLCANO % "schedule, ",)
    made = mixed(*first)
    made.remove("Node", "a")
    made.put(*machine("b", 2).build())
    assert run(made, policy(*first)).binds == {"plain": "b"}


def test_alone_it_serves_pods_that_a_pod_group_would_claim_too() -> None:
    assert play(machine("a"), podgroup("g", 2), waiting("p").gang("g")).binds == {"p": "a"}


def test_a_claimed_pod_that_waits_alone_is_told_in_kube_schedulers_words() -> None:
    assert (
        play(queue("default"), machine("a", 1), podgroup("g", 2), waiting("p", 2).gang("g"))
        .waiting["p"]
        .startswith("0/1 nodes are available")
    )


def promised(plain: PodBuilder, *more: Any, cpu: int = 4, leaves: int = 1) -> Outcome:
    """A gang of two waits for a pod that leaves: one of them would have room at once, beside a core that the other waits for."""
    leaving = existing("old", "a", leaves).leaving()
    gang = waiting("w", 2).scheduler("volcano").gang("g").times(2)
    text = (VOLCANO % "").replace("backfill", "backfill, schedule")
    return run(cluster(policy(text), queue("default"), machine("a", cpu), leaving, podgroup("g", 2), *gang, plain, *more), policy(text))


def test_room_that_is_promised_to_a_gang_is_not_taken() -> None:
    assert promised(waiting("plain", "10m"), machine("b", 1)).binds == {"plain": "b"}
    assert promised(waiting("plain", 1), cpu=5, leaves=2).binds == {"plain": "a"}  # a core more than the gang needs
    assert promised(waiting("plain", "1001m"), cpu=5, leaves=2).binds == {}
    outcome = promised(waiting("plain", "10m"))
    assert outcome.binds == {}
    assert outcome.waiting["plain"].startswith("0/1 nodes are available: 1 node(s) had no room but what is promised to a gang.")


@pytest.mark.parametrize("cpu", ["10m", 2])
def test_nobody_is_evicted_where_a_gang_waits_least_of_all_the_pods_of_the_gang(cpu: str | int) -> None:
    outcome = promised(waiting("plain", cpu, priority=9))
    assert (outcome.binds, outcome.evictions, outcome.nominations) == ({}, [], {})
    outcome = promised(waiting("plain", cpu, priority=9), machine("b", 2), existing("other", "b", 2))
    assert (outcome.evictions, outcome.nominations) == (["other"], {"plain": "b"})


def test_who_would_evict_where_a_gang_waits_only_backs_off() -> None:
    """No event tells that the gang waits there no longer."""
    text = (VOLCANO % "").replace("backfill", "backfill, schedule")
    gang = waiting("w", 2).scheduler("volcano").gang("g").times(2)
    there = (machine("a", 6), existing("old", "a", 1).leaving(), existing("low", "a", 2))
    made = cluster(policy(text), queue("default"), *there, podgroup("g", 2), *gang, waiting("high", 4, priority=9), waiting("equal", 4))
    scheduling_queue = SchedulingQueue(made)
    assert run(made, policy(text), queue=scheduling_queue).waiting["high"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert [entry.task.name for entry in scheduling_queue.backoff.values()] == ["high"]
    assert [entry.task.name for entry in scheduling_queue.waiting.values()] == ["equal"]


@pytest.mark.parametrize("shares", ["capacity", "proportion"])
@pytest.mark.parametrize("group", [(), (podgroup("g").queue("gone"),)])
def test_pods_of_a_group_or_a_queue_that_is_gone_hold_nothing_of_any_queue(shares: str, group: tuple[Any, ...]) -> None:
    """Plain pods are placed, and less important ones give way, whatever their annotation names."""
    texts = ((VOLCANO % "").replace("proportion", shares), KUBE_DEFAULT)
    objects = (queue("default"), machine("a", 3), *group, existing("old", "a", 2).gang("g"))
    small = run(cluster(policy(*texts), *objects, waiting("plain").gang("none")), policy(*texts))
    large = run(cluster(policy(*texts), *objects, waiting("plain", 2, priority=9)), policy(*texts))
    assert (small.binds, large.evictions) == ({"plain": "a"}, ["old"])


class Later(Plugin):
    """Keeps every job waiting: without gang's word on it a reservation may stand alone."""

    name = "later"

    def job_ready(self, job: Job) -> bool:
        return False


KEPT_WAITING = (VOLCANO % "").replace("backfill", "backfill, schedule").replace("{name: gang}", "{name: later}")


def kept_waiting(kube: str = KUBE_DEFAULT) -> Policy:
    return read_configurations([config_text(text, "test") for text in (KEPT_WAITING, kube)], {**PLUGINS, "later": Later})[0]


def test_a_pod_that_holds_a_place_for_its_gang_is_no_victim() -> None:
    chosen = kept_waiting()
    made = cluster(
        chosen, queue("default"), machine("a", 2), podgroup("g"), waiting("w", 2).scheduler("volcano").gang("g"), waiting("p", 2, 9)
    )
    outcome = run(made, chosen)
    assert (outcome.binds, outcome.evictions, outcome.nominations) == ({}, [], {})


class Naming(Nowhere):
    """A world with an extender that names a victim whatever it is asked."""

    def __init__(self, uid: str) -> None:
        self.uid = uid

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> Any:
        return self

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        return {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": self.uid}]}}}


@pytest.mark.parametrize(("named", "evicted"), [("x", ["x"]), ("w", [])])
def test_nor_may_an_extender_name_it(named: str, evicted: list[str]) -> None:
    chosen = kept_waiting(f"{KUBE_DEFAULT}extenders: [{{urlPrefix: 'http://e', preemptVerb: preempt}}]\n")
    gang = podgroup("g"), waiting("w").scheduler("volcano").gang("g")
    made = cluster(chosen, queue("default"), machine("a", 2), *gang, existing("x", "a"), waiting("p", 1, 9))
    outcome = run(made, chosen, world=Naming(f"default-{named}"))
    assert outcome.evictions == evicted
    assert ("is not on node" in outcome.waiting["p"]) is (named == "w")


class Silent(Nowhere):
    """A world with an extender that keeps no node, and says of some why."""

    def __init__(self, **reasons: str) -> None:
        self.reasons = reasons

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> Any:
        return self

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        return {"nodenames": [], "failedNodes": self.reasons}


def test_nobody_is_evicted_where_an_extender_leaves_a_node_out_without_a_word() -> None:
    conf = f"{KUBE_DEFAULT}extenders: [{{urlPrefix: 'http://e', filterVerb: filter, nodeCacheCapable: true}}]\n"
    crowd = machine("a"), existing("low", "a"), waiting("high", priority=9)
    assert "1 Preemption is not helpful for scheduling" in play(*crowd, conf=conf, world=Silent()).waiting["high"]
    needless = 'expected at least one victim pod on node "{}"'.format
    assert play(*crowd, conf=conf, world=Silent(a="no")).waiting["high"].endswith(f"preemption: {needless('a')}")
    two = *crowd, machine("b"), existing("other", "b")
    assert play(*two, conf=conf, world=Silent(a="no", b="no")).waiting["high"].endswith(f"preemption: [{needless('a')}, {needless('b')}]")
