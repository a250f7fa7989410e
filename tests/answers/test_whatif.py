"""What would help is true: made again from nothing it helps, and one step smaller it does not."""

from __future__ import annotations

import pytest

from pumice.answers import TrialCluster, compare, whatif, why
from pumice.answers.changes import ClusterChange, Gone, MoreNodes, MoreQuota, MovePod, make_all
from pumice.answers.request_changes import Drain, FewerPods, MoreObjects, OtherPriority, OtherQueue, QueueField, SmallerPods
from pumice.answers.whatif import WhatIf
from pumice.api.errors import InputError
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.builders import PodBuilder
from pumice.testing.scene import NOW, policy

PLUGINS = ("gang", "priority", "predicates", "nodeorder", "binpack", "capacity", "conformance")


def scheduler() -> Policy:
    return policy("enqueue, allocate, preempt, backfill", PLUGINS)


def crowded() -> Cluster:
    """Two nodes of 8: `old` holds 6 of one, `little` 2 of the other; `train` wants 4 pods of 3, in a queue of 8."""
    queues = (queue("research").capability(cpu=8), queue("web"))
    running = (podgroup("old").queue("web").phase("Running"), podgroup("little").queue("web").phase("Running"))
    held = (pod("old").cpu(6).gang("old").on("n1"), pod("little").cpu(2).gang("little").on("n2"))
    train = [pod(f"train-{number}").cpu(3).gang("train") for number in range(4)]
    return cluster(node("n1").cpu(8), node("n2").cpu(8), *queues, *running, podgroup("train", 4).queue("research"), *held, *train)


def plain() -> Cluster:
    """One pod of 6 too many on two nodes of 8."""
    classes = (priority_class("low", 1), priority_class("high", 10))
    groups = [podgroup(name, 0).phase("Running").priority_class("low") for name in ("a", "b")]
    held = [pod(name).cpu(4).gang(name).on(where).priority(1) for name, where in (("a", "n1"), ("b", "n2"))]
    return cluster(node("n1").cpu(8), node("n2").cpu(8), *classes, *groups, podgroup("j"), *held, pod("j").cpu(6).gang("j").priority(0))


def helps(made: Cluster, changes: tuple[ClusterChange, ...], subject: str) -> bool:
    with TrialCluster(made) as trial:
        make_all(trial, changes)
        told = why(made, scheduler(), NOW, subject)
        return told.state == "starts" or (told.headline is not None and told.headline.because == "releasing")


def smaller(change: ClusterChange) -> ClusterChange | None:
    """One step less of the same; None for what has no steps."""
    match change:
        case FewerPods(group=group, count=count):
            return FewerPods(group, count + 1)
        case SmallerPods(whose=whose, amounts={"cpu": amount}):
            milli = int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000
            return SmallerPods(whose, {"cpu": f"{milli + 100}m"})
        case MoreNodes(like=like, count=count) if count > 1:
            return MoreNodes(like, count - 1)
        case MoreQuota(queue=queue, field=field, amounts={"cpu": amount}):
            return MoreQuota(queue, field, {"cpu": f"{int(amount) * 1000 - 1}m"})
    return None


@pytest.mark.parametrize(("make", "subject"), [(crowded, "job/train"), (plain, "job/j")])
def test_each_option_helps_and_one_step_smaller_does_not(make: object, subject: str) -> None:
    told = whatif(make(), scheduler(), NOW, subject)  # type: ignore[operator]
    assert told.options
    for option in told.options:
        assert helps(make(), option.changes, subject), option.change  # type: ignore[operator]
        for number, change in enumerate(option.changes):
            less = smaller(change)
            if less is not None:
                changes = (*option.changes[:number], less, *option.changes[number + 1 :])
                assert not helps(make(), changes, subject), (option.change, less)  # type: ignore[operator]


def test_the_options_are_told_with_what_they_do_to_others() -> None:
    options = {option.change: option for option in whatif(plain(), scheduler(), NOW, "job/j").options}
    assert list(options) == [
        "pods of 4 cpu",
        "pod/default/a moved to node n2",
        "without podgroup/default/a",
        "priority class high",
        "1 more node like n1",
    ]
    evicting = options["priority class high"]
    assert evicting.room_is_made
    assert evicting.others.evicted == {"podgroup/default/a": 1}
    assert str(options["1 more node like n1"].others) == "nobody else is affected"


def test_where_several_things_lack_they_are_told_together() -> None:
    options = whatif(crowded(), scheduler(), NOW, "job/train").options
    assert isinstance(options[0].changes[0], FewerPods)
    assert options[0].changes[0].count == 2
    assert {type(change) for change in options[-1].changes} >= {MoreQuota}
    assert len(options[-1].changes) > 1


def test_another_queue_is_named_where_it_would_do() -> None:
    made = cluster(
        node("n1").cpu(8), queue("small").capability(cpu=1), queue("large"), podgroup("j").queue("small"), pod("j").cpu(2).gang("j")
    )
    options = whatif(made, scheduler(), NOW, "job/j").options
    assert OtherQueue("default/j", "large") in options[1].changes


def test_who_starts_has_no_options() -> None:
    made = cluster(node("n1").cpu(8), podgroup("j"), pod("j").cpu(2).gang("j"))
    assert whatif(made, scheduler(), NOW, "job/j").options == ()


def test_a_drained_node_sends_its_pods_elsewhere_and_delays_others() -> None:
    made = plain()
    told = compare(made, scheduler(), NOW, [Drain("n1")])
    assert told.starts == {"podgroup/default/a": 1}
    made.check()
    assert made.tasks["default/a"].node_name == "n1"


def test_a_field_of_a_queue_and_new_objects_can_be_tried() -> None:
    made = cluster(node("n1").cpu(8), queue("q").capability(cpu=1), podgroup("j").queue("q"), pod("j").cpu(2).gang("j"))
    assert compare(made, scheduler(), NOW, [QueueField.read("q.capability.cpu=2")]).starts == {"podgroup/default/j": 1}
    more = MoreObjects((podgroup("k").build(), pod("k").cpu(3).gang("k").build()))
    assert compare(made, scheduler(), NOW, [more]).starts == {"podgroup/default/k": 1}
    assert compare(made, scheduler(), NOW, []).parts == compare(made, scheduler(), NOW, [QueueField.read("q.weight=3")]).parts


def test_another_policy_can_be_tried() -> None:
    told = compare(plain(), scheduler(), NOW, [Gone(("podgroup/default/a",))], policy("enqueue", PLUGINS))
    assert told.starts == {}


@pytest.mark.parametrize("text", ["q", "q.colour=3", "q.capability=3", "q.weight", "weight=3"])
def test_what_changes_no_queue_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="changes no queue"):
        QueueField.read(text)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="there is no node n9"):
        compare(plain(), scheduler(), NOW, [Drain("n9")])
    with pytest.raises(InputError, match="there is no queue nope"):
        compare(plain(), scheduler(), NOW, [QueueField("nope", "weight", "3")])


def test_priority_is_only_offered_where_it_helps() -> None:
    changes = [change for option in whatif(crowded(), scheduler(), NOW, "job/train").options for change in option.changes]
    assert not any(isinstance(change, OtherPriority) for change in changes)


def test_a_search_that_is_ended_tells_what_it_found_and_leaves_no_trace() -> None:
    made, tries = crowded(), iter(range(100))
    everything = whatif(made, scheduler(), NOW, "job/train").options
    found = whatif(made, scheduler(), NOW, "job/train", goes_on=lambda: next(tries) < 8)
    assert not found.whole
    assert 0 < len(found.options) < len(everything)
    assert found.options == everything[: len(found.options)]
    made.check()


def test_of_several_remedies_only_those_are_told_that_are_needed_and_devices_are_whole() -> None:
    """It is not let in, its queue deserves too little, and no node is large enough: all of that is one thing. Nobody adds 44 GPUs to a
    node that has 4: what helps are more nodes or smaller pods."""
    amounts = {"cpu": 1, "nvidia.com/gpu": 48}
    made = cluster(node("n1").cpu(8).gpu(4), queue("default"), podgroup("big", 1).needs(**amounts), pod("big").cpu(1).gpu(48).gang("big"))
    asking = policy("enqueue, allocate, backfill", ("gang", "overcommit", "predicates", "proportion"))
    told = whatif(made, asking, NOW, "job/big")
    assert [option.change for option in told.options] == ["pods of 4 nvidia.com/gpu"]
    headline = why(made, asking, NOW, "job/big").headline
    assert headline is not None and [str(change) for change in headline.remedy] == ["10 more nodes like n1"]
    assert [str(change) for change in why(made, asking, NOW, "job/big", advise=True).advice] == ["pods of 4 nvidia.com/gpu"]


def test_of_devices_that_the_cluster_lacks_as_many_are_advised_as_are_wanted() -> None:
    """One less would be let in, as overcommit admits 1.2 times the cluster, but would start only as a smaller pod."""
    made = cluster(node("n1").cpu(8), queue("default"), podgroup("npu", 1).needs(**{"nvidia.com/gpu": 8}), pod("npu").gpu(8).gang("npu"))
    told = whatif(made, policy("enqueue, allocate, backfill", ("gang", "overcommit", "predicates")), NOW, "job/npu")
    assert [option.change for option in told.options] == ["8 nvidia.com/gpu more on node n1"]


def test_several_pods_that_move_together_make_room_for_a_gang() -> None:
    """Four nodes of 8, each with two pods of 2: a gang of two whole nodes starts when four of them have moved."""
    nodes = [node(f"n{number}").cpu(8) for number in range(4)]
    small = [(podgroup(f"s{n}{m}").phase("Running"), _small(f"s{n}{m}", f"n{n}")) for n in range(4) for m in range(2)]
    made = cluster(nodes, *small, podgroup("train", 2).pods(2, cpu=8))
    found = {
        option.change: option for option in whatif(made, policy("enqueue, allocate", ("gang", "predicates")), NOW, "podgroup/train").options
    }
    moved = next(option for option in found.values() if option.change.count("moved to node") == 4)
    assert set(moved.places.values()) <= {"n0", "n1", "n2", "n3"} and len(moved.places) == 2
    made.check()
    assert all(task.node_name == f"n{task.name[1]}" for task in made.tasks.values() if task.name.startswith("s"))


def test_of_a_gang_only_those_pods_move_that_get_another_node() -> None:
    gang = podgroup("old", 2).phase("Running"), *(pod(f"old-{n}").cpu(3).gang("old").owned("Job", "old").on(n) for n in ("n1", "n2"))
    waits = podgroup("train", 2), *pod("train").cpu(4).gang("train").selector("disk", "ssd").times(2)
    made = cluster(node("n1").cpu(8), node("n2").cpu(8).label("disk", "ssd"), *gang, *waits)
    found = whatif(made, policy("enqueue, allocate", ("gang", "predicates")), NOW, "podgroup/train")
    assert changes_of(found, MovePod) == ["pod/default/old-n2 moved to node n1"]


def _small(name: str, where: str) -> PodBuilder:
    return pod(name).cpu(2).gang(name).owned("Job", name).on(where)


def changes_of(answer: WhatIf, kind: type[ClusterChange]) -> list[str]:
    return [option.change for option in answer.options if isinstance(option.changes[0], kind)]


def test_of_pods_of_several_sizes_the_large_ones_become_smaller() -> None:
    """The smallest change that helps: pods that ask for no more than others have left stay as they are."""
    made = cluster(node("n1").cpu(8), podgroup("j", 3), *(pod(f"j-{n}").cpu(cpu).gang("j") for n, cpu in enumerate((1, 6, 6))))
    assert changes_of(whatif(made, scheduler(), NOW, "podgroup/j"), SmallerPods) == ["pods of 3500m cpu"]


def test_of_pods_with_several_containers_the_first_becomes_smaller() -> None:
    two = [{"name": name, "resources": {"requests": {"cpu": amount}}} for name, amount in (("main", "6"), ("side", "3"))]
    made = cluster(node("n1").cpu(8), podgroup("j"), pod("j").containers(*two).gang("j"))
    assert changes_of(whatif(made, scheduler(), NOW, "podgroup/j"), SmallerPods) == ["pods of 5 cpu"]
