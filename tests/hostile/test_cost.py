"""What one object may cost others: work grows with its size, not with the square of it. Calls are counted, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.scene import policy
from tests.calls import lines

ORDINARY = policy(
    "enqueue, allocate, backfill, preempt, reclaim", ("priority", "gang", "drf", "proportion", "predicates", "nodeorder", "overcommit")
)


def terms(size: int) -> list[dict[str, Any]]:
    return [{"labelSelector": {"matchLabels": {"app": f"x{n}"}}, "topologyKey": "zone"} for n in range(size)]


def near(size: int) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms(size)}}}


def far(size: int) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms(size)}}}


def sidecars(size: int) -> dict[str, Any]:
    one = {"restartPolicy": "Always"}
    return {"initContainers": [one | {"name": f"s{n}", "resources": {"requests": {f"example.com/x{n}": "1"}}} for n in range(size)]}


def tolerations(size: int) -> dict[str, Any]:
    return {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(size)]}


def spread(size: int) -> dict[str, Any]:
    one = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone"}
    return {"topologySpreadConstraints": [one | {"labelSelector": {"matchLabels": {"app": f"x{n}"}}} for n in range(size)]}


def node_terms(size: int) -> dict[str, Any]:
    each = [{"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["v"]}]} for n in range(size)]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": each}}}}


def with_one(spec: dict[str, Any]) -> Cluster:
    made = cluster(
        *(node(f"n{n}").cpu(4).label("zone", f"z{n}") for n in range(3)), podgroup("g"), podgroup("h"), pod("p").cpu(1).gang("h")
    )
    whole = {
        "metadata": {"name": "odd", "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}], **spec},
    }
    made.put("Pod", convert(whole, Pod))
    return made


def a_gang(size: int) -> Cluster:
    return cluster(node("n").cpu(size // 2), podgroup("g", size), *(pod(f"p{n}").cpu(1).gang("g") for n in range(size)))


@pytest.mark.parametrize("make", [near, far, sidecars, tolerations, spread, node_terms], ids=lambda make: make.__name__)
def test_a_pod_costs_no_more_than_its_size(make: Callable[[int], dict[str, Any]]) -> None:
    def work(size: int) -> Callable[[], Any]:
        spec = make(size)
        return lambda: cycle(with_one(spec), ORDINARY, 100.0)

    assert lines(work(400)) < 3 * lines(work(200)), "twice as long, and not twice as much work"


def test_a_gang_that_has_no_room_costs_no_more_than_its_size() -> None:
    def work(size: int) -> Callable[[], Any]:
        made = a_gang(size)
        return lambda: cycle(made, ORDINARY, 100.0)

    assert lines(work(200)) < 3 * lines(work(100))
