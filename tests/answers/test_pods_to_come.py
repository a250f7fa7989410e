"""Jobs that are not admitted yet, so that their pods do not exist: answers are rehearsed with the pods that their controller will make."""

from __future__ import annotations

from typing import Any

import pytest

from bench.causes import CLAIM, CONFIGURATIONS, KUBE, TWO, affinity, job, node, policy_of, queue, rack, resource_quota
from bench.small_cluster import SmallCluster
from pumice.answers import Because, Why, whatif, why
from pumice.answers.answer_text import options, page
from pumice.answers.changes import Gone, MoreNodes, OpenQueue
from pumice.answers.pods_to_come import roles_to_come
from pumice.answers.request_changes import FewerPods, OtherQueue, SmallerPods
from pumice.answers.subject import called
from pumice.api.annotations import GROUP_NAME
from pumice.api.json_objects import Object

GPU = "nvidia.com/gpu"


def made(*objects: Object, configuration: str = "capacity") -> SmallCluster:
    """A cluster with these objects, each submitted when the one before it has settled."""
    cluster = SmallCluster(policy_of(configuration, CONFIGURATIONS[configuration], KUBE))
    for obj in objects:
        cluster.create([obj])
        if obj["kind"] == "Job":
            cluster.settle()
    return cluster


def told(cluster: SmallCluster, subject: str = "job/waits") -> Why:
    return why(*cluster.state, subject, advise=True)


def test_every_kind_of_change_is_tried_before_the_pods_exist() -> None:
    cluster = made(*TWO, queue("spare"), job("old", 2, {"cpu": "8"}), job("waits", 2, {"cpu": "4"}))
    assert not any(pod["metadata"]["name"].startswith("waits") for pod in cluster.store.all("pods"))
    found = [option.changes for option in whatif(*cluster.state, "job/waits").options]
    kinds = {type(change) for changes in found for change in changes}
    assert kinds >= {Gone, MoreNodes}
    assert [called(cluster.state[0], str(change)) for changes in found for change in changes if isinstance(change, Gone)] == [
        "without job/old"
    ]


def test_smaller_gangs_and_smaller_pods_are_told_of_pods_that_do_not_exist() -> None:
    cluster = made(*TWO, queue("spare"), queue("small", capability={"cpu": "4"}), job("waits", 3, {"cpu": "2"}, "small"))
    kinds = {type(option.changes[0]) for option in whatif(*cluster.state, "job/waits").options}
    assert kinds >= {OtherQueue, FewerPods, SmallerPods}


def test_a_closed_queue_is_to_be_opened() -> None:
    fresh = SmallCluster(policy_of("capacity", CONFIGURATIONS["capacity"], KUBE))
    fresh.create([*TWO, queue("shut")])
    fresh.create([job("waits", 2, {"cpu": "2"}, "shut")])
    fresh.update_status(queue("shut", "Closed"))
    fresh.settle()
    assert told(fresh).advice == (OpenQueue("shut"),)
    assert (OpenQueue("shut"),) in [option.changes for option in whatif(*fresh.state, "job/waits").options]


def test_of_a_job_that_runs_it_is_said_that_it_runs() -> None:
    cluster = made(*TWO, job("old", 2, {"cpu": "4"}))
    found = whatif(*cluster.state, "job/old")
    assert (found.state, found.options) == ("runs", ())
    assert options(found).startswith("job/old runs: old-w-0, one of its 2 pods, on n1")


def test_a_guarantee_that_admission_would_refuse_is_not_advised() -> None:
    """The cluster has 16 cpu, and all of them are held: no queue can be guaranteed 24."""
    cluster = made(*TWO, job("old", 2, {"cpu": "8"}), job("waits", 1, {"cpu": "8"}))
    remedies = [str(change) for change in told(cluster).advice]
    assert remedies == ["1 more node like n1"]


@pytest.mark.parametrize("configuration", ["capacity", "built-in"])
def test_it_is_told_to_whom_is_promised_what_is_short_and_that_their_end_would_help(configuration: str) -> None:
    """The first job is admitted and fits on no node: what it is promised keeps the second one out, though all nodes are empty."""
    cluster = made(*TWO, job("hoards", 1, {"cpu": "12"}), job("waits", 3, {"cpu": "4"}), configuration=configuration)
    assert (
        called(cluster.state[0], told(cluster).line)
        .split(", of which ")[1]
        .startswith("12 are held or promised (12 to job/hoards, which is admitted and waits); it asks for 12")
    )
    changes = [called(cluster.state[0], option.change) for option in whatif(*cluster.state, "job/waits").options]
    assert "without job/hoards" in changes
    assert "there is room for it" in [link.answer for link in told(cluster).chain]


def test_it_is_not_told_that_there_is_room_where_there_is_room_for_a_part_only() -> None:
    cluster = made(*TWO, job("old", 2, {"cpu": "5"}), job("waits", 4, {"cpu": "3"}))
    assert told(cluster).chain[-1].answer == "its 4 pods start together, and there is room for 2 (2 short)"


def test_a_gang_whose_pods_keep_away_from_each_other_is_told_for_how_many_there_are_nodes() -> None:
    apart = affinity("podAntiAffinity", {"volcano.sh/job-name": "waits"})
    cluster = made(*TWO, job("waits", 3, {"cpu": "1"}, pod=apart))
    assert told(cluster).line.startswith(
        "its 3 pods start together, and there are nodes for 2 (1 short): for one more, all 2 nodes are closed"
    )
    assert [each.change for each in whatif(*cluster.state, "job/waits").options if "node" in each.change] == ["1 more node like n1"]


def test_devices_that_are_short_are_not_looked_for_on_nodes_that_have_none() -> None:
    nodes = (node("cpu4-0", cpu=4), node("gpu8-0", cpu=64, memory="512Gi", gpu=8))
    cluster = made(*nodes, job("waits", 2, {"cpu": "8", GPU: "8"}), configuration="built-in")
    assert [type(change).__name__ for change in told(cluster).advice] == ["MoreNodes"]
    assert "gpu8-0" in str(told(cluster).advice[0])
    assert told(cluster).like == "gpu8-0"


def test_pods_to_come_have_the_annotations_of_their_template() -> None:
    body = job("waits", 2, {"cpu": "8"})
    body["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {"example.com/colour": "blue"}}
    cluster = made(*TWO, job("old", 2, {"cpu": "8"}), body).state[0]
    waits = next(each for each in cluster.jobs.values() if each.name.startswith("waits"))
    (role,) = roles_to_come(cluster, waits)
    assert role.annotations is not None and role.annotations["example.com/colour"] == "blue" and GROUP_NAME not in role.annotations


QUOTAS: list[tuple[dict[str, Any], str]] = [
    (
        {"requests__cpu": 3},
        "1 of its 2 pods: 2 of 3 requests.cpu are used, and it asks for 2 (1 short)",
    ),
    ({"pods": 1}, "1 of its 2 pods: 1 of 1 pods are used, and it asks for 1 (1 short)"),
    ({"limits__memory": "8Gi"}, "2 of its 2 pods: container main lacks limits.memory, which it demands of each container"),
]


@pytest.mark.parametrize(("hard", "line"), QUOTAS, ids=[next(iter(hard)) for hard, _ in QUOTAS])
def test_the_resource_quota_that_refuses_the_pods_is_named(hard: dict[str, Any], line: str) -> None:
    cluster = made(*TWO, resource_quota(**hard), job("waits", 2, {"cpu": "2"}))
    answer = told(cluster)
    assert answer.headline is not None and answer.headline.because is Because.POD_QUOTA
    assert answer.headline.text == f"ResourceQuota default/compute refuses {line}"
    assert answer.advice
    assert answer.advice in [option.changes for option in whatif(*cluster.state, "job/waits").options]


def test_a_quota_that_refuses_admission_is_named_with_its_amounts() -> None:
    cluster = made(*TWO, resource_quota(requests__cpu=3), job("waits", 2, {"cpu": "2"}), configuration="hierarchy")
    line = "ResourceQuota default/compute has no room for it: 0 of 3 requests.cpu are used, and it asks for 4 (1 short)"
    assert told(cluster).line == line


def test_a_hard_topology_is_told_with_its_tier_and_the_roomiest_hypernode() -> None:
    nodes = [node(f"n{number}", cpu=4) for number in range(1, 5)]
    asked = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    racks = (rack("r1", "n1", "n2"), rack("r2", "n3", "n4"))
    cluster = made(*nodes, *racks, job("waits", 3, {"cpu": "3"}, **asked), configuration="hierarchy")
    assert told(cluster).line == "its 3 pods must be in one HyperNode of tier 1 or lower; the roomiest, r1, has room for 2 (1 short)"
    unheeded = made(*nodes, *racks, job("waits", 6, {"cpu": "3"}, **asked))
    assert "its hard network topology has no effect: add the plugin network-topology-aware" in page(told(unheeded))
    beyond_each_rack = made(*nodes, *racks, job("old", 2, {"cpu": "3"}), job("waits", 3, {"cpu": "3"}, **asked))
    assert not told(beyond_each_rack).never


def test_a_job_is_called_by_the_name_that_its_user_gave_it() -> None:
    cluster = made(*TWO, job("old", 2, {"cpu": "8"}), job("waits", 1, {"cpu": "8"}))
    naming = lambda text: called(cluster.state[0], text)  # noqa: E731
    text = options(whatif(*cluster.state, "job/waits"), naming) + page(told(cluster), naming)
    assert "without job/old" in text and "00000000" not in text
    assert (
        called(cluster.state[0], "8 nvidia.com/gpu for pod/default/x and podgroup/team/y")
        == "8 nvidia.com/gpu for pod/x and podgroup/team/y"
    )


def test_the_state_is_afterwards_as_it_was() -> None:
    cluster = made(*TWO, resource_quota(requests__cpu=20), job("old", 2, {"cpu": "8"}), job("waits", 2, {"cpu": "4"}))
    state, policy, now = cluster.state
    before = sorted(state.tasks)
    for _ in range(2):
        why(state, policy, now, "job/waits", advise=True)
        whatif(state, policy, now, "job/waits")
        assert sorted(state.tasks) == before
        state.check()


def test_what_is_promised_in_vain_is_to_be_given_up_where_others_take_all_that_is_added() -> None:
    """Whatever is added, the job that fits on no node is promised, and others after it; and the job itself has a gate."""
    gate = {"schedulingGates": [{"name": "example.com/quota"}]}
    rivals = [job("hoards", 1, {"cpu": "16"}), job("held", 1, {"cpu": "8"}, pod=CLAIM), job("waits", 1, {"cpu": "1"}, pod=gate)]
    cluster = made(*TWO, job("old", 2, {"cpu": "8"}), *rivals)
    cluster.follow(Gone(("podgroup/default/" + next(each.name for each in cluster.state[0].jobs.values() if each.name.startswith("old")),)))
    cluster.settle()
    helps = ["without job/hoards", "remove the scheduling gate example.com/quota from job/waits"]
    assert [called(cluster.state[0], str(change)) for change in told(cluster).advice] == helps
    assert "; ".join(helps) in [called(cluster.state[0], option.change) for option in whatif(*cluster.state, "job/waits").options]


HALF = (TWO[0], node("n2", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]))  #: the second node counts, and takes nobody


def test_what_is_enough_is_advised_though_others_take_what_would_be_added() -> None:
    """The gang that came before takes the nodes that are added, so that more and more of them would be needed."""
    cluster = made(*HALF, job("gang", 3, {"cpu": "8"}), job("waits", 1, {"cpu": "20"}))
    assert [str(change) for change in told(cluster).advice] == ["pods of 8 cpu"]


def test_more_nodes_are_advised_where_the_job_itself_fills_those_there_are() -> None:
    """The gang would fill the nodes: nobody else holds anything there that could end."""
    cluster = made(*HALF, job("waits", 3, {"cpu": "8"}))
    assert [str(change) for change in told(cluster).advice] == ["2 more nodes like n1"]
