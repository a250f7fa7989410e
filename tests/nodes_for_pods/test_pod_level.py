"""What a pod asks for that limits itself as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.inputs.cluster_from_files import complete
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.template import Template


@pytest.mark.parametrize(
    ("requests", "containers", "asked"),
    [
        (None, [{}, {}], {"cpu": "2", "memory": "1Gi"}),
        (None, [{"cpu": "500m"}, {"cpu": "250m"}], {"cpu": "750m", "memory": "1Gi"}),
        ({"cpu": "1"}, [{"cpu": "500m"}, {"memory": "1"}], {"cpu": "1", "memory": "1"}),
        (None, [{"hugepages-2Mi": "2Mi", "ephemeral-storage": "1"}], {"cpu": "2", "memory": "1Gi"}),
    ],
)
def test_containers_come_before_the_limit(requests: dict[str, str] | None, containers: list[dict[str, str]], asked: dict[str, str]) -> None:
    resources: dict[str, Any] = {"limits": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "5"}} | (
        {"requests": requests} if requests else {}
    )
    spec = {"resources": resources, "containers": [{"name": "c", "resources": {"requests": each}} for each in containers]}
    ((_, made),) = [pair for pair in complete([("Pod", convert({"metadata": {"name": "p"}, "spec": spec}, Pod))]) if pair[0] == "Pod"]
    assert isinstance(made, Pod) and made.spec.resources
    assert {name: amount.text for name, amount in (made.spec.resources.requests or {}).items()} == asked


MI = 2**20


@pytest.mark.parametrize(
    ("level", "containers", "placed", "newcomer"),
    [
        ({"cpu": "2"}, [{"cpu": "500m"}, {"memory": "100Mi"}], (2000, 100 * MI), (600, 300 * MI)),
        ({"memory": "1Gi"}, [{"cpu": "500m"}, {}], (500, 1024 * MI), (600, 400 * MI)),
        ({"memory": "1Gi"}, [{}, {}], (200, 1024 * MI), (200, 400 * MI)),
        ({}, [{"cpu": "500m"}, {}], (600, 400 * MI), (600, 400 * MI)),
    ],
)
def test_what_any_part_of_a_pod_names_is_not_made_up_for_the_others(
    level: dict[str, str], containers: list[dict[str, str]], placed: tuple[int, int], newcomer: tuple[int, int]
) -> None:
    spec = {
        "resources": {"requests": level},
        "containers": [{"name": f"c{number}", "resources": {"requests": each}} for number, each in enumerate(containers)],
    }
    read = Template(convert({"metadata": {"name": "p"}, "spec": spec}, Pod), Dimensions())
    assert (read.scoring_cpu, read.scoring_memory) == placed
    assert (read.newcomer_cpu, read.newcomer_memory) == newcomer
