"""Whatever is asked of whatever devices: none is had twice, and no more is taken of a capacity or a counter than there is."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings, strategies as st

from pumice.scheduler.plugins.kube.indexes.assumed_devices import AssumedDevices
from tests.kube_scheduler.stage import KUBE_DEFAULT, cluster, machine, policy, run, waiting
from tests.kube_scheduler.test_device_claims import using
from tests.nodes_for_pods.test_device_kinds import counters, cut
from tests.nodes_for_pods.test_devices import asks, claim, device, device_class, pool
from tests.samples import times

HAS = 40  #: of its capacity each shared device, of its counter each pool
MODELS = st.sampled_from([{}, {"model": "x"}, {"model": "y"}])
SHARED = {"allowMultipleAllocations": True, "capacity": {"mem": {"value": HAS, "requestPolicy": {"default": 10}}}}


@st.composite
def devices(draw: st.DrawFn, name: str) -> dict[str, Any]:
    made = device(name, **draw(MODELS)) | (SHARED if draw(st.booleans()) else {})
    taken = draw(st.sampled_from([0, 10, 30]))
    return made | ({"consumesCounters": cut("", taken)["consumesCounters"]} if taken else {})


@st.composite
def requests(draw: st.DrawFn, name: str) -> dict[str, Any]:
    more: dict[str, Any] = draw(
        st.sampled_from([{}, {}, {"allocationMode": "All"}, {"adminAccess": True}, {"capacity": {"requests": {"mem": 15}}}])
    )
    if draw(st.booleans()):
        return asks(draw(st.integers(1, 3)), name, **more)
    return {"name": name, "firstAvailable": [{"name": str(n), "deviceClassName": "gpu", "count": n} for n in (3, 1)]}


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = [device_class()]
    for node in "ab":
        offered = [draw(devices(f"{node}{n}")) for n in range(draw(st.integers(0, 4)))]
        made += [counters(node, HAS), pool(node, *offered, slices=2)]
    for number in range(3):
        wanted = [draw(requests(f"r{n}")) for n in range(draw(st.integers(1, 2)))]
        constraint = draw(st.sampled_from([[], [{"matchAttribute": "drv/model"}], [{"distinctAttribute": "drv/model"}]]))
        made.append(claim(f"c{number}", *wanted, constraints=constraint))
    return made


@settings(max_examples=times(15), deadline=None)
@given(worlds())
def test_nothing_is_given_twice(world: list[dict[str, Any]]) -> None:
    chosen = policy(KUBE_DEFAULT)
    pods = [using(waiting(f"p{number}"), f"c{number}") for number in range(3)]
    made = cluster(chosen, machine("a", 4), machine("b", 4), *pods, *world)
    run(made, chosen)
    picks = [pick for each in made.index(AssumedDevices).by_claim.values() for pick in each.picks if not pick.watches]
    alone = Counter(pick.device for pick in picks if pick.amounts is None)
    taken, consumed = Counter[Any](), Counter[Any]()
    for pick in picks:
        taken[pick.device] += sum(amount.milli for amount in (pick.amounts or {}).values())
    for offered in {pick.device: pick.offered for pick in picks}.values():
        consumed[offered.key[1]] += sum(offered.consumes.values())
    assert all(count == 1 for count in alone.values())
    assert all(amount <= HAS * 1000 for amount in (*taken.values(), *consumed.values()))
