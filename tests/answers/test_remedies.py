"""What `why` can name as a remedy `whatif` tries. The list is read from the code, and for each kind there is a job that lacks it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.causes import failed, job, node as bench_node, situations
from pumice import answers
from pumice.answers import whatif, why
from pumice.answers.changes import ClusterChange
from pumice.answers.subject import called
from pumice.answers.whatif import WhatIf
from pumice.api.json_objects import Object
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.scene import NOW, policy
from tests.answers.test_pods_to_come import made

ANSWERS = Path(answers.__file__).parent
#: definitions, other answers
NOT_OF_WHY = {"changes", "pod_changes", "request_changes", "whatif", "useful_moves", "other_remedies", "difference", "defrag"}

LACKING = {
    "AskScheduler": "other scheduler, capacity, g1",
    "Drop": "selector, capacity, j1",
    "FewerPods": "gang short, capacity, j4",
    "Gone": "anti-affinity, capacity, j1",
    "MakeClaim": "claim, capacity, j1",
    "MorePods": "pods missing, capacity, g3",
    "MoreQuota": "capability, capacity, j1",
    "MoreNodes": "gang too large, capacity, j3",
    "MoreRoom": "no such device, capacity, j1",
    "OpenQueue": "closed queue, capacity, j1",
    "RaiseQuota": "gpu quota, capacity, j1",
    "Recover": "unhealthy, capacity, j1",
    "StateAmounts": "limits unsaid, capacity, j1",
    "OtherQueue": "inner queue, hierarchy, g1",
    "SmallerPods": "too large, capacity, j1",
    "Tolerate": "taint, capacity, j1",
    "Uncordon": "cordoned, capacity, j1",
    "Ungate": "gate, capacity, j1",
    "WiderTopology": "no such tier, hierarchy, j2",
}  #: kinds of changes, and a situation in which each helps
IN_PLACE = {"Untaint": "taint, capacity, j1", "LabelNodes": "selector, capacity, j1", "WiderTopology": "rack, hierarchy, j3"}
KINDS = {kind.__name__: kind for kind in ClusterChange.__subclasses__()}


def named_by_why() -> set[str]:
    """The kinds of changes that stand anywhere in the modules of `why`."""
    trees = [ast.parse(path.read_text()) for path in ANSWERS.glob("*.py") if path.stem not in NOT_OF_WHY]
    return {each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)} & KINDS.keys()


SITUATIONS = {each.name: each for each in situations()}


UNADMITTED = {
    "MakeGroup": lambda: cluster(node("n1").cpu(4), pod("waits").cpu(1).gang("nobody's")),
    "MakeQueue": lambda: cluster(node("n1").cpu(4), podgroup("waits").queue("nope"), pod("waits").cpu(1).gang("waits")),
}  #: what webhooks and controllers keep from happening


def kinds(answer: WhatIf) -> set[str]:
    return {type(change).__name__ for option in answer.options for change in option.changes}


def test_a_queue_is_made_before_it_gets_more() -> None:
    others = podgroup("others").admitted(), *pod("others").cpu(1).gang("others").times(9)
    made = cluster(node("n1").cpu(4), *others, podgroup("waits").queue("nope"), pod("waits").cpu(3).gang("waits"))
    told = why(made, policy("allocate", ("gang", "predicates", "proportion")), NOW, "podgroup/waits", advise=True)
    assert "; ".join(map(str, told.advice)) == "create queue nope; guarantee and deserved of 3 cpu for queue nope"


def test_the_list_has_every_kind_that_why_can_name() -> None:
    assert named_by_why() == {*LACKING, *UNADMITTED}


def test_a_pod_that_names_no_podgroup_and_is_too_large_gets_both_remedies() -> None:
    """The second one is about the PodGroup that the first one makes, so it cannot be tried alone."""
    made, conf = cluster(node("n1").cpu(4), pod("waits").cpu(8)), policy("allocate", ("gang", "predicates"))
    advice = [str(change) for change in why(made, conf, NOW, "pod/waits", advise=True).advice]
    assert advice == ["create the PodGroup of pod/default/waits", "pods of 4 cpu"]
    assert [option.change for option in whatif(made, conf, NOW, "pod/waits").options] == ["; ".join(advice)]


@pytest.mark.parametrize("kind", UNADMITTED)
def test_whatif_tries_what_no_cluster_with_webhooks_lacks(kind: str) -> None:
    conf = policy("enqueue, allocate, backfill", ("gang", "priority", "predicates"))
    assert kind in kinds(whatif(UNADMITTED[kind](), conf, NOW, "pod/waits"))


@pytest.mark.parametrize(("kind", "name"), [*LACKING.items(), *IN_PLACE.items()])
def test_whatif_tries_what_why_can_name_and_what_would_do_in_its_place(kind: str, name: str) -> None:
    ready = SITUATIONS[name].prepared()
    assert ready is not None
    assert kind in kinds(whatif(*ready.state, SITUATIONS[name].subject))


SSD = {"nodeSelector": {"disk": "ssd"}}
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("closed", "pod", "change"),
    [
        (bench_node("n2", cordoned=True), {}, "uncordon node n2"),
        (bench_node("n2", taints=[TAINT]), {}, "remove the taint gpu=yes:NoSchedule from node n2"),
        (bench_node("n2", taints=[TAINT]), {}, "a toleration of gpu=yes:NoSchedule for job/waits"),
        (failed("n2"), {}, "node n2 healthy again"),
        (bench_node("n2"), SSD, "job/waits without its node selector and affinity"),
    ],
)
def test_a_closed_node_with_room_is_tried_where_open_nodes_lack_it(closed: Object, pod: Object, change: str) -> None:
    full = bench_node("n1", {"disk": "ssd"})
    ready = made(full, job("old", 1, {"cpu": "6"}, pod=SSD), closed, job("waits", 1, {"cpu": "4"}, pod=pod))
    options = whatif(*ready.state, "job/waits").options
    assert change in [called(ready.state[0], option.change) for option in options]


@pytest.mark.parametrize(
    ("name", "helps"),
    [
        ("too large, capacity, j1", "pods of 8 cpu"),
        ("gang too large, capacity, j3", "1 more node like n1"),
        ("fragmented, capacity, j1", "1 cpu more on node n1"),
        ("devices beyond, built-in, j3", "1 more node like gpu8-0"),
        ("no such device, capacity, j1", "1 nvidia.com/gpu more on node n1"),
    ],
)
def test_nobody_is_told_to_give_a_node_more_than_it_can_have(name: str, helps: str) -> None:
    """As much as others would free there; beyond that more nodes like it, or smaller pods where no node can take one."""
    ready = SITUATIONS[name].prepared()
    assert ready is not None
    assert [str(change) for change in why(*ready.state, SITUATIONS[name].subject, advise=True).advice] == [helps]


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_of_jobs_that_start_in_order_the_missing_room_is_told(backfill: str) -> None:
    """Also of one of the gang's pods: the action in-order places gangs, as allocate does."""
    by = policy("in-order", ("gang", "predicates"))
    by.actions[0].args.backfill = backfill
    waits = podgroup("waits", 3), *pod("waits").cpu(3).gang("waits").times(3)
    made = cluster(node("n1").cpu(4), node("n2").cpu(4), *waits)
    for subject in ("podgroup/waits", "pod/waits-1"):
        told = why(made, by, NOW, subject, advise=True)
        assert told.line == "its 3 pods start together, and even empty nodes would hold only 2 (1 short)"
        assert [str(change)[:-1] for change in told.advice] == ["1 more node like n"]
