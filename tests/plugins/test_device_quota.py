"""capacity's quotas on devices: ResourceClaims count by class, shared ones once."""

from __future__ import annotations

from typing import Any

import pytest
from scene import Thing, binds, outcome, phases

from pumice.testing import ObjectBuilder, PodBuilder, cluster, manifest, node, pod, podgroup, queue

TIERS = ("gang", "capacity, {name: predicates, arguments: {predicate.DynamicResourceAllocationEnable: false}}")
TREE = (
    "gang",
    "{name: capacity, enableHierarchy: true}, {name: predicates, arguments: {predicate.DynamicResourceAllocationEnable: false}}",
)
DIVIDED = ("gang", "{name: capacity, arguments: {capacity.DRAConsumableCapacityEnable: true}}")
OFF = ("gang", "{name: capacity, arguments: {capacity.DynamicResourceAllocationEnable: false}}")
NODE = node("n").cpu(99)
GPU = "deviceclass/gpu.example.com"
SLICE = f"memory.{GPU}"


def claim(name: str, count: int | None = None, allocated: int | None = None, **more: Any) -> ObjectBuilder:
    exactly = {"deviceClassName": "gpu.example.com"} | ({"count": count} if count else {}) | more
    results = [{"request": "r", "driver": "d", "pool": "p", "device": f"d{number}"} for number in range(allocated or 0)]
    status = {"allocation": {"devices": {"results": results}}} if allocated is not None else {}
    return _claim(name, {"name": "r", "exactly": exactly}, status)


def _claim(name: str, request: Thing, status: Thing | None = None) -> ObjectBuilder:
    spec = {"devices": {"requests": [request]}}
    return manifest("ResourceClaim", name, spec=spec, status=status or {})


def using(name: str, *claims: str, of: str = "a", on: str = "") -> PodBuilder:
    refs = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
    return pod(name).gang(of).on(on).cpu(1).having("spec", "resourceClaims", value=refs)


def limited(*claims: ObjectBuilder, tiers: tuple[str, ...] = TIERS, **capability: Any) -> list[str]:
    """Who of p0, p1 and p2, each with a claim of its own, may run in a queue that may hold so much."""
    tasks = [using(f"p{number}", each.document["metadata"]["name"]) for number, each in enumerate(claims)]
    return sorted(
        binds(outcome(cluster(NODE, queue("q").capability(**capability), podgroup("a").queue("q").admitted(), claims, tasks), *tiers))
    )


ROWS: list[tuple[str, list[ObjectBuilder], tuple[str, ...], Thing, list[str]]] = [
    ("as many as the queue may hold", [claim("x"), claim("y"), claim("z")], TIERS, {GPU: 2}, ["p0", "p1"]),
    ("by their number", [claim("x", 2), claim("y", 2), claim("z")], TIERS, {GPU: 3}, ["p0", "p2"]),
    ("by what was allocated", [claim("x", allocated=3), claim("y"), claim("z")], TIERS, {GPU: 3}, ["p0"]),
    ("other classes do not count", [claim("x"), claim("y")], TIERS, {"deviceclass/other": 0}, ["p0", "p1"]),
    ("nor anything when switched off", [claim("x"), claim("y")], OFF, {GPU: 1}, ["p0", "p1"]),
    ("the old form of a request", [_claim("x", {"name": "r", "deviceClassName": "gpu.example.com", "count": 2})], TIERS, {GPU: 1}, []),
    (
        "the first of alternatives",
        [_claim("x", {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu.example.com", "count": 2}]})],
        TIERS,
        {GPU: 1},
        [],
    ),
    ("a request for nothing in particular", [_claim("x", {"name": "r"})], TIERS, {GPU: 1}, ["p0"]),
    (
        "shares of devices",
        [claim("x", capacity={"requests": {"memory": "4Gi"}}), claim("y", capacity={"requests": {"memory": "5Gi"}})],
        DIVIDED,
        {SLICE: "8Gi"},
        ["p0"],
    ),
    ("shares count only if switched on", [claim("x", capacity={"requests": {"memory": "4Gi"}})], TIERS, {SLICE: "1Gi"}, ["p0"]),
]


@pytest.mark.parametrize(("what", "claims", "tiers", "capability", "placed"), ROWS, ids=[row[0] for row in ROWS])
def test_what_counts(what: str, claims: list[ObjectBuilder], tiers: tuple[str, ...], capability: Thing, placed: list[str]) -> None:
    assert limited(*claims, tiers=tiers, **capability) == placed


def test_a_claim_that_pods_share_counts_once() -> None:
    tasks = [using("p0", "x"), using("p1", "x"), using("p2", "y"), using("p3", "nowhere")]
    made = cluster(NODE, queue("q").capability(**{GPU: 1}), podgroup("a").queue("q").admitted(), claim("x"), claim("y"), tasks)
    assert sorted(binds(outcome(made, *TIERS))) == ["p0", "p1", "p3"]


def test_what_runs_counts_and_a_gang_that_is_given_up_does_not() -> None:
    running = [podgroup("r").queue("q").admitted(), using("r", "x", of="r", on="n")]
    gang = [podgroup("g", 3).queue("q").admitted().created(1), *(using(f"g{number}", name, of="g") for number, name in enumerate("xyz"))]
    single = [podgroup("a").queue("q").admitted().created(2), using("p", "w")]
    made = cluster(NODE, queue("q").capability(**{GPU: 2}), [claim(name) for name in "wxyz"], running, gang, single)
    assert sorted(binds(outcome(made, *TIERS))) == ["p"]


def test_claims_of_a_gang_that_is_given_up_are_free_for_others() -> None:
    gang = [podgroup("g", 3).queue("q").admitted().created(1), *(using(f"g{number}", name, of="g") for number, name in enumerate("xyz"))]
    singles = [podgroup("a").queue("q").admitted().created(2), using("p", "v"), using("s", "w")]
    made = cluster(NODE, queue("q").capability(**{GPU: 2}), [claim(name) for name in "vwxyz"], gang, singles)
    assert sorted(binds(outcome(made, *TIERS))) == ["p", "s"]


def test_the_limits_of_ancestors_bind() -> None:
    tree = [queue("top").parent("root").capability(**{GPU: 1}), queue("q").parent("top"), queue("s").parent("top")]
    made = cluster(
        NODE,
        tree,
        podgroup("a").queue("q").admitted(),
        podgroup("b").queue("s").admitted(),
        claim("x"),
        claim("y"),
        using("p", "x"),
        using("s", "y", of="b"),
    )
    result = outcome(made, *TREE)
    assert sorted(binds(result)) == ["p"]
    assert "queue s may claim no more devices" in result["pending"]["default/s"]["message"]


def test_a_minimum_that_names_devices_is_held_against_the_quota() -> None:
    jobs = [
        podgroup(name).queue("q").needs(**{GPU: count}).created(born) for born, (name, count) in enumerate((("a", 2), ("b", 2), ("c", 1)))
    ]
    made = cluster(NODE, queue("q").capability(**{GPU: 3}), jobs)
    assert phases(outcome(made, *TIERS)) == {"a": "Inqueue", "b": "Pending", "c": "Inqueue"}
