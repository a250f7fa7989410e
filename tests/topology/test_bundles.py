"""Which pods of a job go together, and which bundle goes first."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.eviction.bundles import Bundle, approved, in_order, split
from pumice.model.cluster import Cluster
from pumice.model.job import Job
from pumice.model.resources import MEMORY
from pumice.testing import PodBuilder, cluster, node, pod, podgroup
from pumice.testing.builders import PodGroupBuilder
from tests.topology.racks import part


def job_of(group: PodGroupBuilder, *pods: PodBuilder) -> Job:
    made = cluster(node("n").cpu(100), group, *pods)
    return made.jobs["default/a"]


def bundles(job: Job, *left_out: str) -> dict[bool, list[str]]:
    """Names by whether they are safe to take."""
    return {b.safe: [t.name for t in b.tasks] for b in split(job, [t for t in job.tasks.values() if t.name not in left_out])}


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


def two_jobs() -> tuple[Cluster, Bundle, Bundle]:
    """b runs here only, a here and elsewhere."""
    here = [pod(f"{name}-{number}").cpu(1).gang(name).on("n") for name in "ab" for number in range(2)]
    elsewhere = [pod("a-2").cpu(1).gang("a").on("m")]
    made = cluster(node("n").cpu(9), node("m").cpu(9), podgroup("a", 3), podgroup("b", 2), *here, *elsewhere)
    first, second = (
        Bundle(made.jobs[uid], False, [task for task in made.jobs[uid].tasks.values() if task.node_name == "n"])
        for uid in ("default/a", "default/b")
    )
    return made, first, second


def need(made: Cluster, cpu_milli: float) -> np.ndarray:
    vector = made.dimensions.zeros()
    vector[0] = cpu_milli
    return vector


def test_what_costs_little_elsewhere_goes_first() -> None:
    made, spread, local = two_jobs()
    assert in_order([spread, local], need(made, 2000), list) == [local, spread]


@pytest.mark.parametrize(("elsewhere", "first"), [(1, "memory"), (5, "cpu")])
def test_gain_and_cost_are_measured_in_parts_of_what_is_needed(elsewhere: int, first: str) -> None:
    """One gang gives both cpus that are needed and has as many elsewhere; the other gives all the memory, and has so much elsewhere."""
    gangs = {"cpu": [pod(f"cpu-{n}").cpu(1).gang("cpu") for n in range(4)]}
    gangs["memory"] = [pod(f"memory-{n}").memory("2Gi").gang("memory") for n in range(2 + elsewhere)]
    standing = [one.on("n" if number < 2 else "m") for pods in gangs.values() for number, one in enumerate(pods)]
    made = cluster(node("n").cpu(9), node("m").cpu(9), podgroup("cpu", 4), podgroup("memory", 2 + elsewhere), *standing)
    jobs = [made.jobs[f"default/{name}"] for name in gangs]
    both = [Bundle(job, False, [task for task in job.tasks.values() if task.node_name == "n"]) for job in jobs]
    wanted = need(made, 2000)
    wanted[MEMORY] = 4 * 2**30
    assert in_order(both, wanted, list)[0].job.name == first


def test_bundles_alike_go_by_name_and_safe_ones_before_all() -> None:
    made, spread, local = two_jobs()
    safe = [Bundle(bundle.job, True, bundle.tasks[:1]) for bundle in (local, spread)]
    assert in_order([local, *safe], need(made, 2000), list) == [safe[1], safe[0], local]


def test_what_plugins_refuse_shrinks_a_safe_bundle_and_drops_a_whole_one() -> None:
    _, whole, other = two_jobs()
    safe = Bundle(other.job, True, other.tasks)
    left = approved([safe, whole], [other.tasks[0], whole.tasks[0]])
    assert [(bundle.safe, [task.name for task in bundle.tasks]) for bundle in left] == [(True, ["b-0"])]
    assert approved([whole], whole.tasks) == [whole]
    assert approved([safe], []) == []
