"""What is remembered of plugins' answers about victims changes no decision: a plugin that does not tell who is alike switches it off."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.volcano.conformance import Conformance
from pumice.scheduler.plugins.volcano.drf import Drf
from pumice.testing import Outcome, cluster, node, pod, podgroup, priority_class, queue, schedule
from tests.samples import times

CLASSES = {"low": 10, "high": 1000}
NAMES = "abc"


class Agrees(Plugin):
    """With everybody, and says nothing of who asks."""

    name = "agrees"

    def preemptable(self, evictor: Task, candidates: list[Task]) -> list[Task]:
        return candidates

    reclaimable = preemptable


job = st.tuples(
    st.integers(1, 3),  # pods
    st.integers(1, 3),  # of which must run
    st.sampled_from([0, 1, 1, 2, 3]),  # cpus of each
    st.sampled_from(["one", "two"]),
    st.sampled_from(["", *CLASSES]),
)


def scene(existing: list[tuple[int, int, int, str, str]], waiting: list[tuple[int, int, int, str, str]], spread: bool) -> Cluster:
    made = cluster(
        *(node(name).cpu(3 + number).pods(5) for number, name in enumerate(NAMES)),
        *(queue(name).weight(2).deserves(cpu=4) for name in ("one", "two")),
        *(priority_class(name, value) for name, value in CLASSES.items()),
    )
    for number, (size, least, cpu, where, rank) in enumerate(existing + waiting):
        name, runs = f"j{number:02}", number < len(existing)
        group = podgroup(name, min(size, least)).queue(where).phase("Running" if runs else "Inqueue")
        made.put(*(group.priority_class(rank) if rank else group).build())
        for index, member in enumerate(pod(name).gang(name).times(size)):
            asking = member.cpu(cpu) if cpu else member
            if spread:
                asking = asking.having("spec", "containers", 0, "ports", value=[{"containerPort": 1, "hostPort": 8000 + number % 3}])
            made.put(*(asking.on(NAMES[(number + index) % len(NAMES)]) if runs else asking).build())
    return made


@settings(max_examples=times(38), deadline=None)
@given(
    st.lists(job, min_size=2, max_size=5),
    st.lists(job, min_size=2, max_size=8),
    st.sampled_from(["proportion", "capacity"]),
    st.sampled_from([Drf, Conformance]),
    st.sampled_from(["allocate, preempt, reclaim", "reclaim, preempt, allocate", "allocate, reclaim, preempt"]),
    st.booleans(),
)
def test_who_is_evicted_for_whom_is_the_same_with_fresh_answers(
    existing: list[tuple[int, int, int, str, str]],
    waiting: list[tuple[int, int, int, str, str]],
    shares: str,
    more: type[Plugin],
    actions: str,
    ports: bool,
) -> None:
    def outcome(*also: type[Plugin]) -> Outcome:
        return schedule(scene(existing, waiting, ports), f"enqueue, {actions}", "priority", "gang", more, shares, "predicates", *also)

    assert outcome() == outcome(Agrees)


def test_more_kinds_of_evictors_than_are_remembered() -> None:
    """All but the last want too much of what a gang can spare."""
    made = cluster(node("a").cpu(20).pods(40), podgroup("old").priority_class("low"), *(priority_class(*each) for each in CLASSES.items()))
    for member in pod("old").cpu(2).gang("old").times(10):
        made.put(*member.on("a").build())
    for number in range(20):
        made.put(*podgroup(f"j{number:02}").priority_class("high").build())
        made.put(*pod(f"j{number:02}-0").cpu(18 if number == 19 else 19).priority(number).gang(f"j{number:02}").build())
    outcome = schedule(made, "enqueue, allocate, preempt", "priority", "gang", "predicates")
    assert outcome.pipelined == {"default/j19-0": "a"}
