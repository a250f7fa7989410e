"""Pods beyond a job's minimum wait for jobs that are just arriving, if those could want the room; in an empty cluster nobody waits."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.builders import Builder
from pumice.testing.scene import NOW, policy

GATHERS = replace(policy("enqueue, allocate", ["gang"]), gathering_s=1.0)


def placed(*objects: Builder, at: float = NOW) -> list[str]:
    return bound(cluster(*objects), at)


def bound(made: Cluster, at: float = NOW) -> list[str]:
    return [bind.task.name for bind in cycle(made, GATHERS, at).binds]


def job(name: str, pods: int, minimum: int = 1) -> list[Builder]:
    return [podgroup(name, minimum), *(pod(f"{name}-{number}").cpu(1).gang(name) for number in range(pods))]


def test_in_an_empty_cluster_a_whole_job_starts_at_once() -> None:
    assert placed(node("a").cpu(8), *job("j", 4)) == ["j-0", "j-1", "j-2", "j-3"]


def test_what_leaves_no_room_for_one_more_job_of_its_size_waits_for_a_period() -> None:
    made = cluster(node("a").cpu(7), *job("j", 4))
    assert bound(made) == ["j-0"]
    assert len(bound(made, NOW + 1.1)) == 3


def test_a_job_that_comes_is_kept_room_for_if_its_pods_are_not_all_there() -> None:
    coming = podgroup("big", 9)
    assert placed(node("a").cpu(20), *job("j", 4), coming.needs(cpu=9)) == ["j-0", "j-1", "j-2", "j-3"]
    assert placed(node("a").cpu(16), *job("j", 4), coming.needs(cpu=9)) == ["j-0"], "with what it needs, room for one more is left for none"
    assert placed(node("a").cpu(90), *job("j", 4), podgroup("big", 9)) == ["j-0"], "nobody knows what it needs"


def test_a_job_that_lacks_pods_of_its_own_waits_for_others_only() -> None:
    made = cluster(node("a").cpu(9), *job("j", 3, minimum=4))
    assert bound(made) == []
    for each in (pod(f"j-{number}").cpu(1).gang("j") for number in (3, 4)):
        made.put(*each.build())
    assert len(bound(made, NOW + 0.1)) == 4, "it has its minimum, and takes more than half of the room"
    assert len(bound(made, NOW + 1.2)) == 1
