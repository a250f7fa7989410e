"""Which pods of a job form its parts."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.subjob import SubJob
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.builders import PodBuilder, PodGroupBuilder


def policies(*given: dict[str, Any], least: int = 3) -> PodGroupBuilder:
    return podgroup("a", least).having("spec", "subGroupPolicy", value=list(given))


def one(name: str, **labels: str) -> PodBuilder:
    made = pod(name).cpu(1).gang("a")
    for key, value in labels.items():
        made = made.label(key, value)
    return made


def parts(group: PodGroupBuilder, *pods: PodBuilder) -> dict[str, list[str]]:
    """Names of pods by sub-job."""
    return {part.uid: [task.name for task in part.tasks.values()] for part in cluster(group, *pods).jobs["default/a"].subjobs}


BY_PART = {"name": "w", "matchLabelKeys": ["part"]}


def test_without_policies_a_job_is_one_part_with_its_minimum_and_topology() -> None:
    job = cluster(podgroup("a", 2).topology(1), one("x")).jobs["default/a"]
    (part,) = job.subjobs
    assert (part.uid, part.min_member, part.topology) == ("default/a", 2, job.subjobs.topology)


def test_pods_with_the_same_values_belong_together_and_the_others_to_the_default_part() -> None:
    pods = one("x", part="0"), one("y", part="1"), one("z", part="0"), one("u"), one("v", part="")
    assert parts(policies(BY_PART), *pods) == {"default/a/w-0": ["x", "z"], "default/a/w-1": ["y"], "default/a": ["u", "v"]}


def test_the_first_policy_that_matches_takes_a_pod() -> None:
    picky = {"name": "p", "matchLabelKeys": ["part"], "labelSelector": {"matchLabels": {"role": "ps"}}}
    pods = one("x", part="0", role="ps"), one("y", part="0", role="w")
    assert parts(policies(picky, BY_PART), *pods) == {"default/a/p-0": ["x"], "default/a/w-0": ["y"]}


def test_all_keys_must_be_there() -> None:
    both = {"name": "w", "matchLabelKeys": ["row", "part"]}
    assert parts(policies(both), one("x", row="r", part="0"), one("y", row="r")) == {"default/a/w-r-0": ["x"], "default/a": ["y"]}


def test_a_policy_without_keys_takes_nobody() -> None:
    assert list(parts(policies({"name": "w"}), one("x", part="0"))) == ["default/a"]


def test_long_values_are_shortened() -> None:
    (uid,) = parts(policies(BY_PART), one("x", part="v" * 200))
    assert len(uid) < 60


def the_part(group: PodGroupBuilder, *pods: PodBuilder) -> SubJob:
    (part,) = cluster(node("n").cpu(9), group, *pods).jobs["default/a"].subjobs
    return part


@pytest.mark.parametrize(("value", "index"), [("7", 7), ("x", 0), ("-2", -2), ("00", 0)])
def test_the_first_value_orders_parts_if_it_is_a_number(value: str, index: int) -> None:
    assert the_part(policies(BY_PART), one("x", part=value)).match_index == index


def test_a_part_is_as_important_as_its_most_important_pod() -> None:
    assert the_part(policies(BY_PART), one("x", part="0").priority(3), one("y", part="0").priority(9)).priority == 9


def test_a_part_is_ready_with_its_size_and_best_effort_pods_count() -> None:
    sized = policies({**BY_PART, "subGroupSize": 2})
    running, waiting, free = one("x", part="0").on("n"), one("y", part="0"), pod("z").gang("a").label("part", "0")
    assert not the_part(sized, running, waiting).is_ready
    assert the_part(sized, running, waiting, free).is_ready
    assert the_part(sized, running, one("y", part="0").on("n")).is_pipelined
    assert (the_part(sized, running).ready_margin, the_part(sized, running).pipelined_margin) == (-1, -1)


def test_parts_follow_their_pods() -> None:
    made: Cluster = cluster(policies(BY_PART), one("x", part="0"), one("y", part="1"))
    subjobs = made.jobs["default/a"].subjobs
    made.put(*one("z", part="2").build())
    made.remove("Pod", "default/x")
    made.put(*one("y", part="2").build())
    assert {part.uid: list(part.tasks) for part in subjobs} == {"default/a/w-2": ["default-z", "default-y"]}
    assert subjobs.get("default/a/w-0") is None
    assert repr(subjobs.get("default/a/w-2")) == "<SubJob default/a/w-2>"
