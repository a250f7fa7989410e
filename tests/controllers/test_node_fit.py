"""Which nodes and taints a pod's selectors, affinities and tolerations allow."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.controllers.kubernetes.node_fit import covers, fits

NODE = {"metadata": {"name": "n1", "labels": {"zone": "a", "cpus": "8"}}}


def required(*terms: Any) -> Any:
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}}


def term(key: str, operator: str, *values: str, part: str = "matchExpressions") -> Any:
    return {part: [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "fit"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        (required(term("zone", "In", "a", "b")), True),
        (required(term("zone", "NotIn", "a")), False),
        (required(term("cpus", "Gt", "4")), True),
        (required(term("zone", "In", "b"), term("disk", "DoesNotExist")), True),
        (required(term("metadata.name", "In", "n1", part="matchFields")), True),
        (required(term("metadata.name", "In", "n2", part="matchFields")), False),
        (required({}), False),
        (required(), False),
    ],
)
def test_selectors(spec: Any, fit: bool) -> None:
    assert fits(spec, NODE) is fit


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "yes"}, False),
    ],
)
def test_tolerations(toleration: Any, covered: bool) -> None:
    assert covers(toleration, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}) is covered
