"""Jobs that were not let in are at rest while there is certainly no room to promise them; what is said of them is true all the same."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework import enqueueable_jobs
from pumice.scheduler.framework.at_rest import Needs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import INQUEUE, PENDING
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing import NOW, cluster, node, pod, podgroup, queue
from tests.all_events import all_events

CONFIGURATION = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: {}
"""
IN_A_TREE = "capacity\n    enableHierarchy: true"


def policy(limit: str) -> Policy:
    return read_policy(CONFIGURATION.format(limit), PLUGINS)[0]


def outside(name: str, cpu: int, of: str = "default", pods: int = 1) -> list[object]:
    """A job that asks for `cpu` CPUs to be let in; without pods, they are made once it is let in."""
    made: list[object] = [podgroup(name).queue(of).phase(PENDING).needs(cpu=cpu)]
    return [*made, *pod(name).gang(name).cpu(cpu).times(pods)] if pods else made


def full(chosen: Policy, *more: object) -> Cluster:
    """Two nodes of 4 CPUs, taken by two jobs, and two cycles that have seen who else is there."""
    runs = [
        each
        for name in "ab"
        for each in (podgroup(name).needs(cpu=4).phase("Running"), pod(name).gang(name).cpu(4).on(f"n{'ab'.index(name)}"))
    ]
    made = cluster(node("n0").cpu(4), node("n1").cpu(4), queue("root"), queue("default"), queue("small").capability(cpu=2), *runs, *more)
    for later in (0, 1):
        advance(made, cycle(made, chosen, NOW + later), NOW + later)
    return made


def looked_at(decisions: Decisions) -> set[str]:
    return {group.job.name for group in decisions.of_those_looked_at().groups}


@pytest.mark.parametrize("pods", [0, 1])
@pytest.mark.parametrize("limit", ["overcommit", "proportion", "capacity"])
def test_only_jobs_are_asked_for_that_might_be_let_in(limit: str, pods: int) -> None:
    chosen = policy(limit)
    made = full(chosen, *outside("three", 3, pods=pods), *outside("six", 6, pods=pods), *outside("poor", 3, "small", pods))
    made.remove("Pod", "default/a")
    decisions = cycle(made, chosen, NOW + 3)
    assert "three" in looked_at(decisions)
    assert not ({"six"} if limit == "overcommit" else {"six", "poor"}) & looked_at(decisions)
    assert made.jobs["default/three"].phase == INQUEUE
    assert made.jobs["default/six"].phase == PENDING


def test_in_a_tree_of_queues_too() -> None:
    chosen = policy(IN_A_TREE)
    made = full(chosen, *outside("three", 3), *outside("poor", 3, "small"))
    made.remove("Pod", "default/a")
    decisions = cycle(made, chosen, NOW + 3)
    assert "poor" not in looked_at(decisions)
    assert made.jobs["default/poor"].phase == PENDING
    assert made.jobs["default/three"].phase != PENDING


def test_what_is_said_of_them_is_what_a_cycle_says_that_asks_for_each() -> None:
    chosen = policy("overcommit")
    made, other = (full(chosen, *outside("three", 3), *outside("six", 6), *outside("seven", 7, pods=0)) for _ in range(2))
    for each in (made, other):
        each.remove("Pod", "default/a")
    said, expected = cycle(made, chosen, NOW + 3), cycle(other, replace(chosen, shortcuts=False), NOW + 3)
    assert not said.events
    assert [(each.job.uid, each.message) for each in all_events(said)] == [(each.job.uid, each.message) for each in all_events(expected)]
    assert [(each.job.uid, each.phase, each.condition) for each in said.groups] == [
        (each.job.uid, each.phase, each.condition) for each in expected.groups
    ]


def test_who_is_let_in_leaves_less_for_the_others() -> None:
    chosen = policy("overcommit")
    names = [f"like-{number}" for number in range(4)]
    made = full(chosen, *(each for name in names for each in outside(name, 5)), *outside("last", 4))
    made.remove("Pod", "default/a")
    cycle(made, chosen, NOW + 3)
    assert [name for name in [*names, "last"] if made.jobs[f"default/{name}"].phase == INQUEUE] == ["last"]


def test_more_is_asked_for_only_once_the_first_is_let_in() -> None:
    chosen = policy("overcommit")
    made = full(chosen, *outside("first", 3), *outside("second", 4), *outside("none", 0))
    made.remove("Pod", "default/a")
    decisions = cycle(made, chosen, NOW + 3)
    assert made.jobs["default/first"].phase == INQUEUE
    assert "second" not in looked_at(decisions)


def test_once_a_job_asks_in_vain_all_others_of_its_queue_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, compared, asks = policy(IN_A_TREE), list[object](), Needs.asks_for_less
    monkeypatch.setattr(Needs, "asks_for_less", lambda needs, *asked: compared.append(asked) or asks(needs, *asked))
    leaf, jobs = queue("leaf").parent("root"), (each for number in range(40) for each in outside(f"j{number}", 3, of="leaf"))
    made = full(chosen, leaf.capability(cpu=2), *jobs)
    made.put(*leaf.capability(cpu=5).build())
    compared.clear()
    cycle(made, chosen, NOW + 3)
    assert [job.phase for job in made.jobs.values()].count(INQUEUE) == 1
    assert len(compared) < 10


def test_of_very_many_they_are_compared_after_some_have_asked_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueueable_jobs, "AT_ONCE", 10)
    test_once_a_job_asks_in_vain_all_others_of_its_queue_are_compared_at_once(monkeypatch)


@pytest.mark.parametrize("limit", ["proportion", "capacity"])
def test_a_queue_that_is_not_open_lets_nobody_in(limit: str) -> None:
    chosen = policy(limit)
    made = full(chosen, *outside("six", 6))
    made.put(*queue("default").state("Closed").build())
    made.remove("Pod", "default/a")
    made.remove("Pod", "default/b")
    decisions = cycle(made, chosen, NOW + 3)
    assert "six" not in looked_at(decisions)
    assert [event.message for event in all_events(decisions)] == ["queue default is Closed: it lets no job in until it is open"]


def test_without_a_limit_each_is_asked_for() -> None:
    chosen = policy("resourcequota")
    made = full(chosen, *outside("any", 90))
    assert made.jobs["default/any"].phase == INQUEUE
