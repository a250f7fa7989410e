"""Pods that wait though no action looks at them are told what is missing; all others are left to those who look at them."""

from __future__ import annotations

import pytest

from pumice.scheduler.framework.decisions import Decisions, Waiting
from pumice.scheduler.framework.unserved_pods import GRACE_S, stranded, unserved
from pumice.testing import PodBuilder, cluster, node, pod, podgroup
from pumice.testing.scene import NOW, policy
from tests.kube_scheduler.stage import policy as kube_policy

GANGS = policy("enqueue, allocate", ["gang"])
ROWS: list[tuple[PodBuilder, str]] = [
    (pod("p").gang("g"), ""),
    (pod("p").gang("g").on("n"), ""),
    (pod("p"), "it has no PodGroup; name one in the annotation scheduling.k8s.io/group-name, or have Volcano's controllers make one"),
    (pod("p").gang("gg"), 'PodGroup default/gg does not exist; did you mean "g"?'),
    (pod("p").gang("lost"), "queue absent does not exist"),
    (pod("p").scheduler("kueue"), 'it asks for scheduler "kueue"; this one serves volcano'),
    (pod("p").scheduler("kueue").on("n"), ""),
]


@pytest.mark.parametrize(("waiting", "missing"), ROWS)
def test_a_pod_that_nobody_looks_at_is_told_what_is_missing(waiting: PodBuilder, missing: str) -> None:
    made = cluster(node("n"), podgroup("g"), podgroup("lost").queue("absent"), waiting)
    assert [told.message for told in unserved(made, GANGS, Decisions())] == ([missing] if missing else [])
    told = Decisions(waiting=[Waiting(made.tasks["default/p"], "", "told already")])
    assert unserved(made, GANGS, told) == []


@pytest.mark.parametrize(("waiting", "missing"), ROWS)
def test_a_running_scheduler_tells_its_own_pods_once_the_controllers_had_a_moment(waiting: PodBuilder, missing: str) -> None:
    made = cluster(node("n"), podgroup("g"), podgroup("lost").queue("absent"), waiting)
    born = made.tasks["default/p"].created = NOW
    ours = made.tasks["default/p"].template.scheduler_name == "volcano"
    told = [[waits.message for waits in stranded(made, GANGS, born + age_s)] for age_s in (GRACE_S - 1, GRACE_S)]
    assert told == [[], [missing] if missing and ours else []]


def test_a_plain_pod_of_a_profile_lacks_nothing() -> None:
    made = cluster(node("n"), pod("p").scheduler("default-scheduler"))
    made.schedulers = frozenset(["default-scheduler"])
    assert unserved(made, kube_policy(), Decisions()) == []
    assert stranded(made, kube_policy(), NOW) == []
    assert len(unserved(made, GANGS, Decisions())) == 1
