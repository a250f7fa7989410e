"""One pod at a time, in the order of the queue, each as if the earlier ones stood."""

from __future__ import annotations

from pumice.model.cluster import Cluster
from pumice.testing.builders import podgroup, queue
from tests.kube_scheduler.stage import KUBE_DEFAULT, cluster, machine, play, policy, profile, run, standing, waiting

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


def test_of_equal_pods_the_first_in_the_input_comes_first() -> None:
    assert play(machine("a", 1), waiting("b"), waiting("a")).binds == {"b": "a"}


def test_a_gated_pod_is_not_tried_and_is_told_so() -> None:
    gated = waiting("p").having("spec", "schedulingGates", value=[{"name": "quota"}, {"name": "image"}])
    outcome = play(machine("a"), gated)
    assert outcome.binds == {}
    assert outcome.waiting == {"p": "waiting for scheduling gates: [quota image]"}


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


def test_pods_of_unknown_schedulers_are_left_alone() -> None:
    outcome = play(machine("a"), waiting("p").scheduler("somebody"))
    assert (outcome.binds, outcome.waiting) == ({}, {})


def test_profiles_work_side_by_side() -> None:
    packer = MOST.replace("{plugins", "{schedulerName: packer, plugins", 1)
    conf = f"{KUBE_DEFAULT}profiles: [{{schedulerName: default-scheduler}}, {packer}]\n"
    crowd = (machine("a", 4), machine("b", 4), standing("x", "b", 2))
    assert play(*crowd, waiting("p"), waiting("q").scheduler("packer"), conf=conf).binds == {"p": "a", "q": "b"}


def test_the_reason_counts_nodes_and_lists_every_shortage() -> None:
    nodes = (machine("a", 1), machine("b").cordoned(), machine("c").taint("t"), machine("d", 1).memory("50Mi"))
    message = play(*nodes, waiting("p", 2)).waiting["p"]
    assert message == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
        "2 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )


def test_without_nodes_there_is_nothing_to_say_about_them() -> None:
    assert play(waiting("p")).waiting == {"p": "no nodes available to schedule pods"}


# -- nominations


def test_a_nominated_node_is_taken_without_comparing() -> None:
    assert play(machine("a", 2), machine("b", 64), waiting("p").having("status", "nominatedNodeName", value="a")).binds == {"p": "a"}


def test_a_nomination_holds_its_room_against_equals_but_not_against_the_more_important() -> None:
    held = waiting("held", 2, priority=5).having("status", "nominatedNodeName", value="a").created("2026-01-01T09:00:00Z")
    full = (
        standing("x", "a", 2)
        .leaving()
        .having("status", "conditions", value=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])
    )
    room = (machine("a", 3), machine("b", 1), full)
    assert play(*room, held, waiting("equal", 1, 5), waiting("more", 1, 9)).binds == {"more": "a", "equal": "b"}


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


def test_room_that_is_promised_to_a_gang_is_not_taken() -> None:
    leaving = standing("old", "a", 2).leaving()
    gang = waiting("w", 2).scheduler("volcano").gang("g").times(2)
    text = (VOLCANO % "").replace("backfill", "backfill, schedule")
    made = cluster(policy(text), queue("default"), machine("a", 4), leaving, podgroup("g", 2), *gang, waiting("plain", 2))
    assert run(made, policy(text)).binds == {}
