"""Stories of native gangs over time, as the real kube-scheduler 1.37.2 played them: what events do after the first cycle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.api.kube_pod_groups import NativePodGroup
from pumice.api.pod import Pod
from pumice.api.structs import KEPT_AS, KINDS, convert
from pumice.api.times import instant, rfc3339
from pumice.inputs.cluster_from_files import complete, conditioned
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations, schedulers_of
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.kube.pod_groups import Groups
from pumice.scheduler.kube.pre_enqueue import PreEnqueue
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.registry import PLUGINS

FOLDER = Path(__file__).parents[1] / "cases/native-gangs/stories"
STORIES = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.endswith(".expect.yaml"))
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Tried(Observer):
    """The pods that were tried, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def attempt(self, task: Task) -> None:
        self.names.append(task.name)


class Play:
    """A scheduler with its queue, and a cluster that does what it says."""

    def __init__(self, documents: list[dict[str, Any]], expect: dict[str, Any]) -> None:
        gates = release(37, {"GenericWorkload": True} | expect.get("gates", {}))
        self.policy, _ = read_configurations([config_text(KUBE_DEFAULT, "story")], PLUGINS, release=gates)
        self.now = instant(expect["now"])
        self.cluster = Cluster(schedulers_of(self.policy))
        self.queue = SchedulingQueue(self.cluster)
        self.classes = [self.read(each) for each in documents if each["kind"] == "PriorityClass"]
        self.messages: dict[str, str] = {}
        self.group_messages: dict[str, str] = {}
        for kind, item in complete(map(self.read, documents)):
            self.cluster.put(kind, item)

    def read(self, value: dict[str, Any]) -> tuple[str, Any]:
        key = (value["apiVersion"].rpartition("/")[0], value["kind"])
        return KEPT_AS[key], convert(value, KINDS[key])

    def put(self, value: dict[str, Any]) -> None:
        kind, item = next(
            each for each in complete([*self.classes, self.read(value)]) if each[1].metadata.name == value["metadata"]["name"]
        )
        key = f"{item.metadata.namespace}/{item.metadata.name}"
        if isinstance(item, Pod):
            known = self.cluster.tasks.get(key)
            created = known.created if known is not None else self.now
            item = replace(item, metadata=replace(item.metadata, creation_timestamp=rfc3339(created)))
        elif (before := self.cluster.of(kind).get(key)) is not None:
            item = replace(item, status=before.status)
        self.cluster.put(kind, item)

    def remove(self, what: str) -> None:
        kind, _, key = what.partition(" ")
        if kind == "pod":
            self.queue.forget(self.cluster.tasks[key])
        self.cluster.remove("Pod" if kind == "pod" else NATIVE_POD_GROUP, key)

    def places(self) -> dict[str, str]:
        """Where each pending pod is before anything is tried."""
        profiles = self.policy.profiles
        assert profiles is not None
        pending = [task for task in self.cluster.tasks.values() if task.status == status.PENDING]
        members = sorted((task for task in pending if task.group), key=lambda task: (task.created, task.number))
        before = PreEnqueue(Groups(self.cluster, profiles.release), profiles.by_name, self.queue, lambda task: "")
        ready, held, present = before.entities(members)
        due = {task for entity in self.queue.due_groups(ready, present, self.now) for task in entity.tasks}
        found = {task: held[task].state if task in held else "active" if task in due else "backoff" for task in members}
        found |= {task: self.queue.place_of(task) or "active" for task in pending if not task.group}
        return {task.key: place for task, place in found.items()}

    def work(self) -> list[str]:
        """Run a cycle, and carry out what it says. Return the pods that were tried."""
        tried = Tried()
        decided = cycle(self.cluster, self.policy, self.now, queue=self.queue, observer=tried)
        for bind in decided.binds:
            self.cluster.move(bind.task, status.RUNNING, bind.task.node)
        for task, node in decided.nominations.items():
            task.nominated = node
        for told in decided.native_groups.values():
            self.cluster.put(NATIVE_POD_GROUP, conditioned(told, self.now))
        self.messages |= {told.task.key: f"{told.reason}: {told.message}" for told in decided.waiting if told.reason != "SchedulingGated"}
        self.group_messages |= {key: told.message for key, told in decided.native_groups.items() if told.message}
        return tried.names

    @property
    def phases(self) -> dict[str, str]:
        groups: dict[str, NativePodGroup] = self.cluster.of(NATIVE_POD_GROUP)
        return {key: each.reason or "" for key, group in groups.items() for each in group.status.conditions or ()}


def attempts(trace: list[dict[str, Any]], step: int) -> list[str]:
    """The pods that upstream tried in a step, in order."""
    return [name for each in trace if each.get("step", 0) == step for name in each.get("members") or [each["entity"].rpartition("/")[2]]]


def steps_of(documents: list[dict[str, Any]]) -> Iterator[tuple[int, str, Any]]:
    steps = documents[-1]["steps"]
    yield from ((number, *next(iter(step.items()))) for number, step in enumerate(steps, 1))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    documents = list(yaml.load_all(path.read_text(), LOADER))
    expect = yaml.load(path.with_name(f"{path.stem}.expect.yaml").read_text(), LOADER)
    play = Play(documents[:-1], expect)
    assert set(play.work()) == set(attempts(expect["trace"], 0))
    for number, what, value in steps_of(documents):
        play.now += value if what == "wait" else 0.001
        if what == "delete":
            play.remove(value)
        elif what != "wait":
            play.put(value)
        if "steps" in expect:
            assert play.places() == expect["steps"][number - 1]["queue"], expect["steps"][number - 1]["event"]
        tried = play.work()
        play.cluster.check()
        wanted = attempts(expect["trace"], number)
        assert tried == list(dict.fromkeys(wanted)) or expect.get("traceVaried"), number
    (outcome,) = expect["outcomes"]
    assert play.phases == outcome.get("podGroups", {})
    assert play.places() == outcome.get("queue", {})
    bound = {task.key: task.node_name for task in play.cluster.tasks.values() if task.status == status.RUNNING and task.placed_at is None}
    assert outcome.get("binds", {}).items() <= bound.items()
    pending = {task.key for task in play.cluster.tasks.values() if task.status == status.PENDING}
    assert {pod: text for pod, text in play.messages.items() if pod in pending} == expect.get("messages", {})
    assert play.group_messages.items() >= expect.get("podGroupMessages", {}).items()
