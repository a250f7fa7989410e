"""Values of any type at any place: the rules answer, for what comes to a webhook has not met a schema yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.api.json_objects import Object, copied
from pumice.controllers.admission import CREATE, UPDATE, Problem, mutate, validate
from tests.controllers.stage import plain_pod, queue, task, vcjob
from tests.controllers.test_admission import GROUPS, cluster

JUNK: list[Any] = [None, 0, -1, 1.5, "x", "", [], {}, True, [None], ["x"], {"a": 1}, [{}], [[]]]
Path = tuple[str | int, ...]


def of(kind: str, **spec: Any) -> Object:
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": {"name": "x", "namespace": "default"}, "spec": spec}


def job() -> Object:
    policy = {"event": "PodFailed", "events": ["PodEvicted"], "action": "AbortJob", "timeout": "5s"}
    split = {"totalPartitions": 2, "partitionSize": 1, "networkTopology": {"highestTierAllowed": 1}}
    first = task("m", 2, policies=[policy], dependsOn={"name": ["w"]}, topologyPolicy="best-effort", partitionPolicy=split)
    volumes = [{"mountPath": "/x", "volumeClaimName": "a"}]
    return vcjob(tasks=[first, task("w")], plugins={"mpi": ["--master=m"]}, volumes=volumes, networkTopology={"mode": "hard"})


def subjects() -> Iterator[Object]:
    ways = ({"exactMatch": {"name": "n"}}, {"regexMatch": {"pattern": "n"}}, {"labelMatch": {"matchLabels": {"a": "b"}}})
    yield job()
    yield queue("q", capability={"cpu": "1"}, guarantee={"resource": {"cpu": "1"}}, deserved={"cpu": "1"})
    yield of("PodGroup", minMember=1, queue="default", subGroupPolicy=[{"name": "a", "networkTopology": {"highestTierName": "x"}}])
    yield of("HyperNode", tier=1, members=[{"type": "Node", "selector": way} for way in ways])
    yield of("JobFlow", flows=[{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}])
    yield of("CronJob", schedule="* * * * *", timeZone="UTC", jobTemplate={"spec": job()["spec"]})
    yield plain_pod()


def places(value: Any, above: Path = ("spec",)) -> Iterator[Path]:
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield from places(inner, (*above, step))


def replaced(subject: Object, place: Path, value: Any) -> Object:
    changed: Object = copied(subject)
    inner: Any = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


@pytest.mark.parametrize("subject", list(subjects()), ids=lambda subject: subject["kind"])
def test_no_value_is_too_odd_for_an_answer(subject: Object) -> None:
    lister = cluster()
    for place in places(subject["spec"]):
        for value in JUNK:
            odd = replaced(subject, place, value)
            mutate(CREATE, odd, lister)
            validate(CREATE, odd, None, lister)
            validate(UPDATE, odd, subject, lister)


def test_the_place_of_nonsense_is_named() -> None:
    containers = ("spec", "tasks", 0, "template", "spec", "containers")
    (problem,) = validate(CREATE, replaced(vcjob(), containers, ["x"]), None, cluster())
    text = "a value in it has another type than it should have, such as a text in the place of a list"
    assert problem == Problem("spec.tasks[0].template", text)
