"""Whatever happens in a cluster, hints and back-offs leave nobody waiting whom a look at everything would place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actions.schedule import BACKLOG
from pumice.config.reading import config_text, read_configurations
from pumice.framework.cycle import cycle
from pumice.kube.resource import NODES, PODS
from pumice.live.loop import Scheduler
from pumice.live.options import Options
from pumice.plugins.registry import plugins
from tests.live.memory import MemoryServer
from tests.live.stories import running
from tests.live.virtual import VirtualClock, run

KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
HOST = "kubernetes.io/hostname"
QUICK, NIGHTLY = 60, 5000
SETTLED_S = 25.0  #: longer than any back-off, shorter than patience
NAMES = st.sampled_from("ab")
COLOURS = st.sampled_from(["red", "blue"])
TAINT = [{"key": "colour", "value": "x", "effect": "NoSchedule"}]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def term(colour: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"colour": colour}}, "topologyKey": HOST}


def wants(kind: str, colour: str) -> dict[str, Any]:
    """What a pod asks for besides room."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    given: dict[str, dict[str, Any]] = {
        "selector": {"nodeSelector": {"colour": colour}},
        "near": {"affinity": {"podAffinity": {required: [term(colour)]}}},
        "far": {"affinity": {"podAntiAffinity": {required: [term(colour)]}}},
        "spread": {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"colour": colour}}}]},
        "tolerates": {"tolerations": [{"operator": "Exists"}]},
        "port": {"ports": [{"containerPort": 1, "hostPort": 80}]},
    }
    return given.get(kind, {})


def node(api: MemoryServer, name: str, cpu: int, colour: str, tainted: bool, cordoned: bool) -> None:
    api.node(name, cpu=cpu, labels={HOST: name, "colour": colour})
    api.put(
        NODES,
        name,
        spec={"taints": TAINT if tainted else [], "unschedulable": cordoned},
        metadata={"labels": {HOST: name, "colour": colour}},
    )


def without(api: MemoryServer, name: str) -> None:
    api.remove(NODES, name)


def pod(api: MemoryServer, number: int, cpu: int, kind: str, colour: str) -> None:
    spec = wants(kind, colour)
    ports = spec.pop("ports", [])
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}, "ports": ports}
    made = {"containers": [container], "schedulerName": "default-scheduler", **spec}
    api.put(PODS, f"p{number}", metadata={"labels": {"colour": colour}}, spec=made, status={"phase": "Pending"})


def standing(api: MemoryServer, number: int) -> dict[str, Any] | None:
    found = [obj for obj in api.all(PODS) if obj["spec"].get("nodeName")]
    return found[number % len(found)] if found else None


def gone(api: MemoryServer, number: int) -> None:
    if (found := standing(api, number)) is not None:
        api.remove(PODS, found["metadata"]["name"])


def finished(api: MemoryServer, number: int) -> None:
    if (found := standing(api, number)) is not None:
        api.put(PODS, found["metadata"]["name"], metadata=found["metadata"], status={"phase": "Succeeded"})


def recoloured(api: MemoryServer, number: int, colour: str) -> None:
    if (found := standing(api, number)) is not None:
        api.put(PODS, found["metadata"]["name"], metadata={**found["metadata"], "labels": {"colour": colour}})


Step = tuple[Callable[..., None], tuple[Any, ...]]
KINDS = st.sampled_from(["", "", "selector", "near", "far", "spread", "tolerates", "port"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just(node), st.tuples(NAMES, st.integers(1, 3), COLOURS, st.booleans(), st.booleans())),
        st.tuples(st.just(without), st.tuples(NAMES)),
        st.tuples(st.just(pod), st.tuples(st.integers(0, 7), st.integers(1, 2), KINDS, COLOURS)),
        st.tuples(st.just(gone), st.tuples(st.integers(0, 7))),
        st.tuples(st.just(finished), st.tuples(st.integers(0, 7))),
        st.tuples(st.just(recoloured), st.tuples(st.integers(0, 7), COLOURS)),
    ),
    min_size=4,
    max_size=16,
)


async def nobody_waits_who_could_be_placed(happenings: list[Step], pauses: list[float]) -> None:
    api = MemoryServer(start_s=0.1)
    for number, name in enumerate("ab"):
        node(api, name, 1, "red", tainted=name == "b", cordoned=False)
        pod(api, number, 1, "", "blue")
        pod(api, 8 + number, 1, "tolerates", "red")
    policy, _ = read_configurations([config_text(KUBE, "story")], plugins(None))
    scheduler = Scheduler(api, policy, Options(schedulers=("default-scheduler",)), VirtualClock())
    async with running(scheduler):
        for number, (act, details) in enumerate(happenings):
            if act is pod and any(obj["metadata"]["name"] == f"p{details[0]}" for obj in api.all(PODS)):
                continue
            act(api, *details)
            await asyncio.sleep(pauses[number % len(pauses)] if pauses else 0.0)
        await asyncio.sleep(SETTLED_S)
        scheduler.cluster.check()
        del scheduler.cluster.memory[BACKLOG]
        missed = cycle(scheduler.cluster, policy, scheduler.clock.now()).binds
        assert not missed, [(bind.task.name, bind.node) for bind in missed]


def tell(times: int) -> None:
    @settings(max_examples=times, deadline=None)
    @given(steps, st.lists(st.sampled_from([0.0, 0.5, 5.0, 15.0]), max_size=4))
    def story(happenings: list[Step], pauses: list[float]) -> None:
        run(nobody_waits_who_could_be_placed(happenings, pauses), limit_s=5000)

    story()


def test_hints_suffice() -> None:
    tell(QUICK)


@pytest.mark.nightly
def test_hints_suffice_in_many_stories() -> None:
    tell(NIGHTLY)
