"""What rules said of nodes serves the sessions to come, as long as nothing but pods comes and goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import Asking
from pumice.scheduler.framework.observer import SILENT, Observer, Silent
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.row_log import MOST_ROWS
from pumice.scheduler.plugins.volcano.predicates import PodLimit, Predicates
from pumice.testing import NOW, PodBuilder, cluster, node, pod, podgroup, priority_class
from pumice.testing.scene import policy

POLICY = policy("allocate", ("predicates", "nodeorder"))
NODES = 100


class OwnPredicates(Predicates):
    """Based on a plugin whose rules last."""

    name = "own-predicates"


class OwnAsking(Silent):
    asking = Asking()


def filled(asking: PodBuilder) -> Cluster:
    """Many nodes, a pod that runs, and one that waits."""
    return cluster(*(node(f"n{n}").cpu(4) for n in range(NODES)), podgroup("g"), asking.gang("g"), pod("runs").cpu(1).on("n0"))


def asked(made: Cluster, decided: Policy = POLICY, observer: Observer = SILENT, *, guarded: bool = False) -> Evaluation:
    """The evaluation of the pod that waits, in a session of its own."""
    with Session(made, decided, NOW, observer=observer, guarded=guarded) as opened:
        found = opened.evaluation(made.tasks["default/p"])
        found.totals(opened.nodes.alive)
    return found


def test_only_nodes_with_changes_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, rows, refuse = filled(pod("p").cpu(1)), list[int](), PodLimit.refuse
    monkeypatch.setattr(PodLimit, "refuse", lambda rule, state, nodes: rows.append(len(nodes)) or refuse(rule, state, nodes))
    first = asked(made)
    made.move(made.tasks["default/runs"], status.RUNNING, 7)
    assert asked(made) is first
    assert asked(made) is first
    assert rows == [NODES, 2]
    fresh = Evaluations(made, [rule for rule, _ in first.filters], [rule for rule, _ in first.scorers]).of(made.tasks["default/p"])
    fresh.refresh()
    assert (first.totals(made.nodes.alive) == fresh.totals(made.nodes.alive)).all()
    assert (first.fits_idle == fresh.fits_idle).all()


def test_after_more_changes_than_are_remembered_all_nodes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made, rows, refuse = filled(pod("p").cpu(1)), list[int](), PodLimit.refuse
    monkeypatch.setattr(PodLimit, "refuse", lambda rule, state, nodes: rows.append(len(nodes)) or refuse(rule, state, nodes))
    first, runs = asked(made), made.tasks["default/runs"]
    for _ in range(MOST_ROWS):
        made.move(runs, status.RUNNING, 7)
    made.forget_changes()
    assert asked(made) is first
    assert rows == [NODES, NODES]
    assert np.flatnonzero(made.nodes.used[0]).tolist() == [7]


REQUIRED, TERM = "requiredDuringSchedulingIgnoredDuringExecution", {"topologyKey": "zone", "labelSelector": {}}
CHANGES: dict[str, Callable[[Cluster], None]] = {
    "a node": lambda made: made.put(*node("n3").cpu(8).build()),
    "another object": lambda made: made.put(*priority_class("high", 10).build()),
    "terms about other pods": lambda made: made.put(
        *pod("q").having("spec", "affinity", "podAntiAffinity", value={REQUIRED: [TERM]}).build()
    ),
    "a resource": lambda made: made.put(*pod("q").gpu(1).build()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_when_anything_else_changes_they_are_made_anew(change: Callable[[Cluster], None]) -> None:
    made = filled(pod("p").cpu(1))
    first = asked(made)
    change(made)
    assert asked(made) is not first


@pytest.mark.parametrize(
    "asking",
    [pod("p").cpu(1).having("spec", "containers", 0, "ports", value=[{"hostPort": 80}]), pod("p").cpu("1e30")],
    ids=["a port", "never fits"],
)
def test_what_asks_for_more_than_room_does_not_last(asking: PodBuilder) -> None:
    made = filled(asking)
    assert asked(made) is not asked(made)


def test_what_a_plugin_says_of_its_rules_does_not_hold_for_those_based_on_it() -> None:
    made, decided = filled(pod("p").cpu(1)), policy("allocate", (OwnPredicates,))
    assert asked(made, decided) is not asked(made, decided)


def test_another_policy_has_its_own() -> None:
    made = filled(pod("p").cpu(1))
    assert asked(made) is not asked(made, policy("allocate", ("predicates",)))


def test_where_somebody_watches_nothing_lasts() -> None:
    made = filled(pod("p").cpu(1))
    first = asked(made)
    assert asked(made, observer=Observer()) is not first
    assert asked(made) is not first


def test_what_lasts_is_for_those_who_ask_in_the_same_way() -> None:
    made, timed = filled(pod("p").cpu(1)), OwnAsking()
    first = asked(made)
    own = asked(made, observer=timed)
    assert own is not first
    assert asked(made, observer=timed) is own
    assert asked(made) is not own


def test_with_guards_nothing_lasts() -> None:
    made = filled(pod("p").cpu(1))
    first = asked(made)
    assert asked(made, guarded=True) is not first
    assert asked(made) is not first


def plugins(made: Cluster, decided: Policy = POLICY, observer: Observer = SILENT, *, guarded: bool = False) -> list[Plugin]:
    """Those of a session of its own."""
    with Session(made, decided, NOW, observer=observer, guarded=guarded) as opened:
        made_or_kept = opened.plugins.everyone
    opened.plugins.release()
    return made_or_kept


def test_our_plugins_serve_the_next_session_as_if_just_made() -> None:
    made = filled(pod("p").cpu(1))
    first = plugins(made)
    assert not hasattr(first[0], "session")
    assert plugins(made) == first


def test_plugins_from_outside_are_made_for_each_session() -> None:
    made, decided = filled(pod("p").cpu(1)), policy("allocate", ("nodeorder", OwnPredicates))
    assert not {*plugins(made, decided)} & {*plugins(made, decided)}


@pytest.mark.parametrize("other", [{"decided": policy("allocate", ("predicates",))}, {"observer": Observer()}, {"guarded": True}])
def test_another_kind_of_session_has_its_own_plugins(other: dict[str, Any]) -> None:
    made = filled(pod("p").cpu(1))
    first = plugins(made)
    assert not {*first} & {*plugins(made, **other)}
    assert not {*first} & {*plugins(made)}
