"""Which pods of a job go together, and which bundle goes first."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.scheduler.eviction.gang_bundles import safe_ones
from pumice.scheduler.eviction.gang_offer import Offer
from pumice.scheduler.eviction.gang_roster import Roster
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import CPU, MEMORY
from pumice.testing import PodBuilder, cluster, node, pod, podgroup
from pumice.testing.builders import PodGroupBuilder
from tests.topology.racks import part


def job_of(group: PodGroupBuilder, *pods: PodBuilder) -> Job:
    made = cluster(node("n").cpu(100), group, *pods)
    return made.jobs["default/a"]


def bundles(job: Job, *left_out: str) -> dict[bool, list[str]]:
    """Names by whether they are safe to take."""
    here = sorted((task for task in job.tasks.values() if task.name not in left_out), key=lambda task: (task.priority, task.uid))
    found: dict[bool, list[str]] = {}
    for task, safe in zip(here, safe_ones(job, here), strict=True):
        found.setdefault(safe, []).append(task.name)
    return found


def run(role: str, count: int) -> list[PodBuilder]:
    return [one.on("n").role(role) for one in pod(role).cpu(1).gang("a").times(count)]


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (0, {True: ["w-0", "w-1", "w-2"]}),
        (1, {True: ["w-0", "w-1"], False: ["w-2"]}),
        (3, {False: ["w-0", "w-1", "w-2"]}),
        (4, {True: ["w-0", "w-1", "w-2"]}),
    ],
)
def test_what_a_gang_has_above_its_minimum_is_safe_and_so_is_all_of_a_broken_one(least: int, expected: dict[bool, list[str]]) -> None:
    assert bundles(job_of(podgroup("a", least), *run("w", 3))) == expected


def test_the_least_important_pods_are_the_surplus() -> None:
    pods = [pod(name).cpu(1).gang("a").on("n").priority(priority) for name, priority in (("x", 5), ("y", 1), ("z", 5))]
    assert bundles(job_of(podgroup("a", 1), *pods)) == {True: ["y", "x"], False: ["z"]}


def test_pods_that_run_elsewhere_count_for_the_minimum() -> None:
    assert bundles(job_of(podgroup("a", 2), *run("w", 3)), "w-0") == {True: ["w-1"], False: ["w-2"]}


def roles(group: PodGroupBuilder, **least: int) -> PodGroupBuilder:
    return group.having("spec", "minTaskMember", value=least)


def test_no_role_goes_below_its_minimum() -> None:
    waiting = pod("worker-5").cpu(1).gang("a").role("worker")
    job = job_of(roles(podgroup("a", 4), driver=1, worker=3), *run("driver", 1), *run("worker", 4), waiting)
    assert bundles(job, "worker-5") == {True: ["worker-0"], False: ["driver-0", "worker-1", "worker-2", "worker-3"]}


def test_a_role_without_a_minimum_may_go() -> None:
    job = job_of(roles(podgroup("a", 2), driver=2), *run("driver", 2), *run("extra", 2))
    assert bundles(job) == {True: ["extra-0", "extra-1"], False: ["driver-0", "driver-1"]}


def test_role_minima_above_the_job_minimum_mean_nothing() -> None:
    job = job_of(roles(podgroup("a", 1), driver=1, worker=2), *run("driver", 1), *run("worker", 2))
    assert bundles(job) == {True: ["driver-0", "worker-0"], False: ["worker-1"]}


def parts(least: int, *counts: int) -> list[PodBuilder]:
    return [one.on("n") for value, count in enumerate(counts) for one in part("a", str(value), count)]


def test_a_policy_loses_only_sub_jobs_it_can_spare() -> None:
    """Two of three sub-jobs are needed: the pods of one may go."""
    job = job_of(podgroup("a", 1).parts("part", 2, least=2), *parts(2, 2, 2, 2))
    assert bundles(job)[True] == ["a-0-0", "a-0-1"]


def test_a_broken_sub_job_may_go() -> None:
    job = job_of(podgroup("a", 1).parts("part", 2, least=1), *parts(1, 2, 1))
    assert bundles(job) == {True: ["a-1-0"], False: ["a-0-0", "a-0-1"]}


def test_a_sub_job_with_more_than_its_size_still_belongs_to_its_policy() -> None:
    job = job_of(podgroup("a", 1).parts("part", 1, least=1), *parts(1, 3, 1))
    assert bundles(job) == {True: ["a-0-0", "a-0-1", "a-0-2"], False: ["a-1-0"]}


# -- order


def two_jobs(least: int = 2) -> Cluster:
    """b runs here only, a here and elsewhere."""
    here = [pod(f"{name}-{number}").cpu(1).gang(name).on("n") for name in "ab" for number in range(2)]
    elsewhere = [pod("a-2").cpu(1).gang("a").on("m")]
    return cluster(node("n").cpu(9), node("m").cpu(9), podgroup("a", least + 1), podgroup("b", least), *here, *elsewhere)


def offered(made: Cluster, **need: float) -> Offer:
    """What goes from the node n, all of equal standing."""
    wanted = made.dimensions.zeros()
    wanted[[CPU, MEMORY]] = need.get("cpu", 0) * 1000, need.get("memory", 0)
    here = np.array([name == "n" for name in made.nodes.names])
    return Roster(made, here, lambda task: task.status == status.RUNNING, lambda job: None).offer(wanted, list)


def names(offer: Offer) -> list[list[str]]:
    return [[task.name for task in offer.bundle(place)] for place in range(len(offer))]


def test_what_costs_little_elsewhere_goes_first() -> None:
    assert names(offered(two_jobs(), cpu=2)) == [["b-0", "b-1"], ["a-0", "a-1"]]


@pytest.mark.parametrize(("elsewhere", "first"), [(1, "memory"), (5, "cpu")])
def test_gain_and_cost_are_measured_in_parts_of_what_is_needed(elsewhere: int, first: str) -> None:
    """One gang gives both cpus that are needed and has as many elsewhere; the other gives all the memory, and has so much elsewhere."""
    gangs = {"cpu": [pod(f"cpu-{n}").cpu(1).gang("cpu") for n in range(4)]}
    gangs["memory"] = [pod(f"memory-{n}").memory("2Gi").gang("memory") for n in range(2 + elsewhere)]
    existing = [one.on("n" if number < 2 else "m") for pods in gangs.values() for number, one in enumerate(pods)]
    made = cluster(node("n").cpu(9), node("m").cpu(9), podgroup("cpu", 4), podgroup("memory", 2 + elsewhere), *existing)
    assert names(offered(made, cpu=2, memory=4 * 2**30))[0] == [f"{first}-0", f"{first}-1"]


def test_bundles_alike_go_by_name_and_safe_ones_before_all() -> None:
    assert names(offered(two_jobs(1), cpu=2)) == [["a-0"], ["b-0"], ["b-1"], ["a-1"]]


def test_a_bundle_that_breaks_a_gang_takes_what_the_gang_had_to_spare_along() -> None:
    offer = offered(two_jobs(1), cpu=2)
    assert offer.safe.tolist() == [-1, -1, 1, 0]
    assert offer.hangs_together([0, 3]) and not offer.hangs_together([1, 3])


def test_what_plugins_refuse_shrinks_a_safe_bundle_and_drops_a_whole_one() -> None:
    safe = offered(two_jobs(0), cpu=2)
    assert names(safe) == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert names(safe.approved(safe.tasks[:3], whole=True)) == [["a-0", "a-1"], ["b-0"]]
    both = offered(two_jobs(1), cpu=2)
    assert names(both.approved(both.tasks, whole=False)) == [["a-0"], ["b-0"]]
    assert names(both.approved(both.tasks[1:], whole=True)) == [["b-0"], ["b-1"], ["a-1"]]
    whole = offered(two_jobs(), cpu=2)
    assert names(whole.approved(whole.tasks[:3], whole=True)) == [["b-0", "b-1"]]
    assert len(whole.approved([], whole=True)) == 0


def test_a_job_that_has_lost_a_pod_since_is_looked_at_anew() -> None:
    made = two_jobs(1)
    here = np.array([name == "n" for name in made.nodes.names])
    roster = Roster(made, here, lambda task: task.status == status.RUNNING, lambda job: None)
    lost = made.tasks["default/b-0"]
    made.move(lost, status.RELEASING, lost.node)
    assert names(roster.offer(made.dimensions.zeros() + 1, list)) == [["a-0"], ["b-1"], ["a-1"]]
    made.move(lost, status.RUNNING, lost.node)
    assert names(roster.offer(made.dimensions.zeros() + 1, list)) == [["a-0"], ["b-0"], ["b-1"], ["a-1"]]
