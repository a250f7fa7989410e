"""What was decided happens: on the cluster itself, and by a journal that takes it back."""

from __future__ import annotations

from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import Rehearsal, cycle
from pumice.scheduler.framework.decisions import Bind, Decisions, Evict
from pumice.scheduler.framework.journal import StateJournal
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.scene import NOW, policy
from tests.topology.racks import assert_same, state

POLICY = policy("allocate", ["gang"])


def small() -> Cluster:
    return cluster(node("a").cpu(2), podgroup("g"), pod("p").cpu(1).gang("g"), pod("old").cpu(1).on("a"))


def told(made: Cluster, decided: Decisions) -> Decisions:
    """The decisions, with a written annotation, an eviction and a nomination besides."""
    binds = [Bind(bind.task, bind.node, {"card": "1"}) for bind in decided.binds]
    old = made.tasks["default/old"]
    return Decisions(binds, evictions=[Evict(old, "a", "", "shuffle")], nominations={old: "a"})


def test_bound_pods_run_evicted_ones_are_given_away_and_nominations_are_set() -> None:
    made, gone = small(), []
    carry_out(made, told(made, cycle(made, POLICY, NOW)), NOW + 5, gone.append)
    bound, old = made.tasks["default/p"], made.tasks["default/old"]
    assert (bound.status, bound.node_name, bound.started, bound.placed_at) == (status.RUNNING, "a", NOW + 5, NOW + 5)
    assert bound.annotations["card"] == "1"
    assert [eviction.task for eviction in gone] == [old]
    assert old.nominated == "a"
    made.check()


def test_a_bound_pod_that_has_gone_meanwhile_does_not_run() -> None:
    made = small()
    decided = cycle(made, POLICY, NOW)
    made.move(made.tasks["default/p"], status.PENDING, -1)
    carry_out(made, decided, NOW, print)
    assert (made.tasks["default/p"].status, made.tasks["default/p"].started) == (status.PENDING, None)


def test_a_journal_takes_back_all_that_was_carried_out() -> None:
    made = small()
    before = state(made)
    with Rehearsal(made, POLICY) as rehearsal, StateJournal(made) as journal:
        decided, take_back = rehearsal.cycle(NOW)
        carry_out(journal, told(made, decided), NOW, print)
        assert made.tasks["default/p"].status == status.RUNNING
        journal.rollback()
        take_back()
    assert_same(before, state(made))
    assert (made.tasks["default/p"].started, made.tasks["default/old"].nominated) == (None, "")
    assert "card" not in made.tasks["default/p"].annotations
    made.check()
