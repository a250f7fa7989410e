"""What is written about Kubernetes' own PodGroups: each condition once, and claims of a group as the group's."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.api import InputError
from pumice.api.kinds import NATIVE_POD_GROUP, NATIVE_POD_GROUPS, RESOURCE_CLAIMS, Kind, ObjectRef
from pumice.cli.scheduler import Configuration, own_gates
from pumice.client.bind_and_evict import eviction_conditions
from pumice.client.failures import ApiError, KubeError
from pumice.client.transport import PatchType
from pumice.inputs.cluster_from_files import conditioned
from pumice.live.clock import WallClock
from pumice.live.scheduler.decisions_to_requests import requests_of
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.prerequisites import prerequisites
from pumice.live.scheduler.requests import ReleaseClaim, Request, WriteCondition
from pumice.live.scheduler.scheduler_replica import Replica, SchedulerSettings
from pumice.live.scheduler.sender import Sender
from pumice.live.scheduler.sent_status import SentStatus
from pumice.scheduler.config import KUBE_DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import NOW
from tests.kube_scheduler.native import CLAIMS, group, member, policy, tree
from tests.kube_scheduler.stage import cluster, machine, waiting
from tests.kube_scheduler.test_native_gangs import claim, gpus

POLICY = policy()


def said(made: Cluster, sent: SentStatus, now: float = NOW) -> list[WriteCondition]:
    return requests_of(made, cycle(made, POLICY, now), sent, now, "c").conditions


def test_a_condition_is_written_once_and_again_when_it_changes() -> None:
    made, sent = cluster(POLICY, machine("n1", cpu=1), group("g", 2), member("p1", "g"), member("p2", "g")), SentStatus()
    (first,) = said(made, sent)
    assert first.group == ObjectRef("g", "default", "") and first.condition["observedGeneration"] == 1
    assert (first.condition["status"], first.condition["reason"]) == ("False", "Unschedulable")
    assert first.condition["message"].startswith("minCount (2) cannot be satisfied: 1 scheduled, 0 remaining")
    assert said(made, sent) == []
    keep_raw = cycle(made, POLICY, NOW).native_groups["default/g"]
    made.put(NATIVE_POD_GROUP, conditioned(keep_raw, NOW - 60))
    assert said(made, SentStatus()) == []  # the server has it
    made.put("Node", machine("n2", cpu=1).build()[1])
    (placed,) = said(made, sent, NOW + 5)
    assert (placed.condition["status"], placed.condition["reason"], placed.condition["message"]) == ("True", "Scheduled", "")


def test_pods_of_a_group_that_is_held_back_are_not_marked() -> None:
    made = cluster(POLICY, machine("n1"), group("g", 3), member("p1", "g"))
    asked = requests_of(made, cycle(made, POLICY, NOW), SentStatus(), NOW, "c")
    assert not asked.marks and not asked.conditions


def test_a_claim_of_the_group_is_reserved_for_the_group() -> None:
    chosen, named = policy(CLAIMS), {"name": "gpu", "resourceClaimName": "c"}
    shared = group("g").having("spec", "resourceClaims", value=[named]).having("metadata", "uid", value="uid-g")
    pod = member("p", "g").having("spec", "resourceClaims", value=[named])
    made = cluster(chosen, machine("n1"), *gpus("n1"), claim("c"), shared, pod)
    assert cycle(made, chosen, NOW).binds
    (wanted,) = prerequisites(made, made.tasks["default/p"]).devices
    assert wanted.user == ObjectRef("g", "default", "uid-g") and wanted.results


class Server:
    """Keeps what is written to it."""

    def __init__(self, refusal: KubeError | None = None) -> None:
        self.written: list[tuple[Any, ...]] = []
        self.refusal = refusal

    async def patch(
        self, kind: Kind, ref: ObjectRef, body: Any, how: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        self.written.append((kind, ref, body, how, subresource))
        if self.refusal is not None:
            raise self.refusal
        return b"{}"

    async def get(self, kind: Kind, ref: ObjectRef) -> bytes:
        status = {"allocation": {}, "reservedFor": [{"uid": "g"}, {"uid": "h"}], "devices": [1]}
        return msgspec.json.encode({"metadata": {"name": ref.name}, "status": status})

    async def update(self, kind: Kind, ref: ObjectRef, body: Any, *, subresource: str = "") -> bytes:
        self.written.append((kind, ref, body["status"], subresource))
        return b"{}"


class Outcomes:
    def __init__(self) -> None:
        self.failures: list[Request] = []

    def is_there(self, pod: ObjectRef) -> bool:
        return True

    def failed(self, request: Request, error: KubeError) -> None:
        self.failures.append(request)


@pytest.mark.parametrize("refusal", [None, ApiError(403, "Forbidden", "no")])
def test_the_sender_patches_the_status_and_takes_devices_back(refusal: KubeError | None) -> None:
    server, outcomes = Server(refusal), Outcomes()
    condition = WriteCondition(ObjectRef("g", "ns", "u"), {"type": "PodGroupInitiallyScheduled"})

    async def story() -> None:
        sender = Sender(server, outcomes, {}, WallClock(), Options())  # type: ignore[arg-type]
        running = asyncio.create_task(sender.run())
        sender._lanes["group condition"].put("ns/g", condition)
        sender._lanes["claim"].put("ns/c", ReleaseClaim(ObjectRef("c", "ns")))
        sender._lanes["claim"].put("ns/d", ReleaseClaim(ObjectRef("d", "ns"), "g"))
        await asyncio.wait_for(sender.drained(), 20)
        running.cancel()

    asyncio.run(story())
    body = {"metadata": {"uid": "u"}, "status": {"conditions": [condition.condition]}}
    patch = (NATIVE_POD_GROUPS, condition.group, body, PatchType.STRATEGIC, "status")
    assert patch in server.written
    assert (RESOURCE_CLAIMS, ObjectRef("c", "ns"), {"devices": [1]}, "status") in server.written
    left = {"allocation": {}, "reservedFor": [{"uid": "h"}], "devices": [1]}  # the second claim loses one of its users alone
    assert (RESOURCE_CLAIMS, ObjectRef("d", "ns"), left, "status") in server.written
    assert outcomes.failures == ([] if refusal is None else [condition])


# ---- which release


def configuration(tmp_path: Path, version: str = "", gates: str = "") -> Configuration:
    path = tmp_path / "conf.yaml"
    path.write_text(KUBE_DEFAULT)
    return Configuration(str(path), None, False, version, gates)


def test_the_release_is_the_servers_unless_it_is_named(tmp_path: Path) -> None:
    def rules(made: Configuration) -> str:
        profiles = made.load().profiles
        assert profiles is not None
        return profiles.release.text

    made = configuration(tmp_path)
    assert rules(made) == "1.36" and made.met("v1.37.2") and rules(made) == "1.37" and not made.met("v1.37.2")
    gated = configuration(tmp_path, gates="GenericWorkload=true")
    assert rules(gated) == "1.37 GenericWorkload=true"
    with pytest.raises(InputError, match="GenericWorkload is alpha"):
        gated.met("v1.36.1")
    assert rules(gated) == "1.37 GenericWorkload=true"
    named = configuration(tmp_path, version="1.36")
    assert not named.met("v1.37.2") and rules(named) == "1.36"


def test_gates_of_volcano_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert own_gates("WorkLoadSupport=true, GenericWorkload=true") == "GenericWorkload=true"
    assert "WorkLoadSupport=true has no effect" in caplog.text


@pytest.mark.parametrize(
    ("answer", "version"), [(b'{"gitVersion": "v1.37.2"}', "1.37"), (b"{}", "1.36"), (b'{"gitVersion": "odd"}', "1.36")]
)
def test_a_replica_asks_the_server_for_its_version(answer: bytes, version: str, tmp_path: Path) -> None:
    class Asked:
        async def get_path(self, path: str) -> bytes:
            assert path == "/version"
            return answer

    made = configuration(tmp_path)
    settings = SchedulerSettings(Options(), made.load, made.text, met=made.met)
    replica = Replica(None, settings)  # type: ignore[arg-type]
    found = asyncio.run(replica._by_the_rules_of(Asked(), made.load()))  # type: ignore[arg-type]
    assert found.profiles is not None and found.profiles.release.text == version


@pytest.mark.parametrize(
    ("names", "whom"),
    [
        ("group", ("podgroup default-g on node cluster", "podgroup")),
        ("tree", ("compositepodgroup default-c on node cluster", "compositepodgroup")),
        ("pod", ("pod default-p on node n1", "pod")),
    ],
)
def test_a_victim_is_told_for_whom_it_goes(names: str, whom: tuple[str, str]) -> None:
    chosen = policy({"TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True})
    low = waiting("low", 2).on("n1")
    objects = {
        "group": [group("g", 1, priority=10), member("p", "g", 2, priority=10)],
        "tree": [tree("c", 1, priority=10), group("g", 1, priority=10, parent="c"), member("p", "g", 2, priority=10)],
        "pod": [waiting("p", 2, priority=10)],
    }[names]
    made = cluster(chosen, machine("n1", cpu=2), low, *objects)
    decided, metrics = cycle(made, chosen, NOW), LiveMetrics()
    metrics.observe_cycle(decided, NOW, 0.0)
    tries = 'scheduler_podgroup_schedule_attempts_total{result="waiting_on_preemption",profile="default-scheduler"} 1'
    assert [text in metrics.page() for text in (tries, "scheduler_workload_preemption_victims_count 1")] == [names != "pod"] * 2
    asked = requests_of(made, decided, SentStatus(), NOW, "c")
    (event,) = [each for each in asked.events if each.regarding.name == "low"]
    assert (event.type, event.reason, event.message) == ("Normal", "Preempted", f"Preempted by {whom[0]}")
    (evicted,) = asked.evictions
    (condition,) = eviction_conditions(evicted.why, evicted.scheduler, "", evicted.whom)
    assert (condition["type"], condition["status"], condition["reason"]) == ("DisruptionTarget", "True", "PreemptionByScheduler")
    assert condition["message"] == f"default-scheduler: preempting to accommodate a higher priority {whom[1]}"
