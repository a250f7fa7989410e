"""Who may go before the first that waits: jobs that no queueing trace has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.annotations import ESTIMATE, USER
from pumice.api.times import Duration, rfc3339
from pumice.scheduler.actions.in_order import InOrder, InOrderArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import Action, PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.placement.past_runs import PastRuns
from pumice.scheduler.plugins.shared_gpu_packing import PackingArgs
from pumice.scheduler.plugins.volcano.dot_product import DotProduct
from pumice.scheduler.registry import PLUGINS
from pumice.testing import PodBuilder, cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW
from tests.simulate.playing import played, starts, swf

EASY, CONSERVATIVE = InOrderArgs("easy"), InOrderArgs("conservative")
BOTH = pytest.mark.parametrize("args", [EASY, CONSERVATIVE], ids=["easy", "conservative"])


def put(made: Cluster, name: str, estimate: str, *pods: PodBuilder, least: int = 1) -> None:
    """A job that comes after those that are there."""
    made.put(*podgroup(name, least).annotation(ESTIMATE, estimate).created(f"2025-12-31T00:00:{len(made.jobs):02}Z").build())
    for each in pods:
        made.put(*each.gang(name).build())


def started(made: Cluster, args: InOrderArgs, *more: PluginOption) -> list[str]:
    policy = Policy((InOrder(args),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"]), *more),))
    return [bind.task.name for bind in cycle(made, policy, NOW).binds]


@BOTH
def test_who_waits_for_a_leaving_pod_is_not_overtaken(args: InOrderArgs) -> None:
    """It is expected to be gone in a second: nothing that runs longer may take the room beside it."""
    made = cluster(node("n").cpu(4), pod("leaves").cpu(2).on("n").leaving())
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "long", "1m", pod("long").cpu(1))
    put(made, "short", "1s", pod("short").cpu(1))
    assert started(made, args) == ["short"]


@BOTH
def test_of_jobs_that_ask_for_the_same_the_one_that_ends_in_time_goes_before(args: InOrderArgs) -> None:
    """Who is longer than one that found no room is not tried, unless a pod of his is another one; who is shorter is."""
    made = cluster(node("n").cpu(4), pod("leaves").cpu(2).on("n").leaving())
    put(made, "first", "1m", pod("first").cpu(4))
    for name, estimate in (("long", "1m"), ("longer", "1h"), ("short", "1s")):
        put(made, name, estimate, pod(name).cpu(1))
    put(made, "two-kinds", "1h", pod("one").cpu(1), pod("other").cpu("500m"), least=2)
    assert started(made, args) == ["short"]


@BOTH
def test_who_can_never_start_holds_nobody_up(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4))
    put(made, "never", "1m", pod("never").cpu(5))
    put(made, "later", "1m", pod("later").cpu(4))
    assert started(made, args) == ["later"]


@BOTH
def test_a_job_goes_before_with_the_pods_that_it_needs(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4), pod("held").cpu(1).on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "later", "1m", *pod("later").cpu(1).times(3), least=2)
    assert started(made, args) == ["later-0", "later-1"]


@BOTH
def test_neither_half_a_gang_nor_a_pod_whose_claim_is_missing_goes_before(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4), pod("held").cpu(1).on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    gated = pod("gated").cpu(1).having("spec", "schedulingGates", value=[{"name": "example.com/wait"}])
    put(made, "half-gated", "1m", pod("free").cpu(1), gated, least=2)
    chooses_nodes = PluginOption(DotProduct, PackingArgs("best-fit"))  # a plugin that is not told of refusals
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    put(made, "claims", "1m", pod("claims").cpu(1).having("spec", "volumes", value=[volume]))
    put(made, "later", "1m", pod("later").cpu(1))
    assert started(made, args, chooses_nodes) == ["later"]


@pytest.mark.parametrize(("at", "end"), [(50, 110), (109, 110), (110, 230), (229, 230), (230, 470)])
@pytest.mark.parametrize("policy", ["EASY", "conservative"])
def test_what_outlives_its_estimate_is_given_twice_as_long_each_time(tmp_path: Path, policy: str, at: int, end: int) -> None:
    """Estimated at 50 s, the first is next expected to end at 110, then at 230, then at 470 s; the third starts if it ends before."""
    jobs = [(0.0, 3, 600.0), (1.0, 4, 5.0), (float(at), 1, 1.0)]
    for estimate, start in ((end - at, at), (end - at + 1, 605)):
        source = swf(tmp_path / "w.swf", jobs, [50, 5, estimate])
        assert starts(played(source, policy)[1]) == [0, 600, start]


@pytest.mark.parametrize(("unknown", "names"), [(0, ["long", "short"]), (600, ["short"])])
def test_of_whom_nothing_is_told_is_expected_to_run_as_configured(unknown: float, names: list[str]) -> None:
    """In ten minutes the running pod is expected to end, and the first is promised its room; or nobody knows when."""
    made = cluster(node("n").cpu(4), podgroup("runs"), pod("runs").cpu(2).gang("runs").on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "long", "11m", pod("long").cpu(1))
    put(made, "short", "9m", pod("short").cpu(1))
    assert started(made, InOrderArgs("easy", Duration(unknown))) == names


@BOTH
def test_a_limit_of_pods_tells_as_well_how_long_they_run(args: InOrderArgs) -> None:
    limit = ("spec", "activeDeadlineSeconds")
    made = cluster(node("n").cpu(4), podgroup("runs"), pod("runs").cpu(2).gang("runs").on("n").having(*limit, value=60))
    put(made, "first", "1m", pod("first").cpu(4))
    for name, seconds in (("long", 61), ("short", 60)):
        made.put(*podgroup(name).created("2025-12-31T01:00:00Z").build())
        made.put(*pod(name).cpu(1).gang(name).having(*limit, value=seconds).build())
    assert started(made, args) == ["short"]


@BOTH
def test_a_job_beyond_the_quota_of_its_queue_holds_nobody_up(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(5), queue("small").capability(cpu=1))
    made.put(*podgroup("first").queue("small").created("2025-12-31T00:00:00Z").build())
    made.put(*pod("first").cpu(2).gang("first").build())
    put(made, "second", "1m", pod("second").cpu(3))
    put(made, "third", "1m", pod("third").cpu(5))
    made.put(*podgroup("fourth").queue("small").annotation(ESTIMATE, "1s").created("2025-12-31T02:00:00Z").build())
    made.put(*pod("fourth").cpu(1).gang("fourth").build())
    made.put(*podgroup("fifth").queue("small").annotation(ESTIMATE, "1s").created("2025-12-31T03:00:00Z").build())
    made.put(*pod("fifth").cpu(1).gang("fifth").build())
    put(made, "sixth", "1h", pod("sixth").cpu(1))
    assert started(made, args, PluginOption(PLUGINS["capacity"])) == ["second", "fourth"], "the sixth would delay the third"


def test_the_first_is_told_once_what_it_is_promised() -> None:
    made = cluster(node("n").cpu(4), podgroup("runs").annotation(ESTIMATE, "1h"))
    made.put(*pod("runs").cpu(2).gang("runs").on("n").having("status", "startTime", value="2025-12-31T23:30:00Z").build())
    put(made, "first", "1m", pod("first").cpu(4))
    policy = Policy((InOrder(EASY),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"])),))
    told = [[(each.reason, each.message) for each in cycle(made, policy, NOW + later).events] for later in (0, 1, 1900)]
    assert told == [
        [("Reserved", "It is promised room on n from 2026-01-01T00:30:00Z on")],
        [],
        [("Reserved", "It is promised room on n from 2026-01-01T00:33:00Z on")],
    ]


class EvictsOne(Action):
    name = "evicts-one"

    def run(self, session: Session) -> None:
        with session.statement() as statement:
            statement.evict(session.cluster.tasks["default/runs"], self.name)
            statement.commit()


@BOTH
def test_who_was_evicted_by_an_action_before_is_expected_to_leave_in_a_second(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4), pod("runs").cpu(2).on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "long", "2s", pod("long").cpu(1))
    put(made, "short", "1s", pod("short").cpu(1))
    policy = Policy((EvictsOne(), InOrder(args)), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"])),))
    assert [bind.task.name for bind in cycle(made, policy, NOW).binds] == ["short"]


@pytest.mark.parametrize("told", ["", "90m"], ids=["nothing was told", "longer before"])
def test_an_estimate_that_changes_moves_the_promise(told: str) -> None:
    runs, started_at = podgroup("runs"), pod("runs").cpu(2).gang("runs").on("n").started("2025-12-31T23:30:00Z")
    made = cluster(node("n").cpu(4), runs.annotation(ESTIMATE, told) if told else runs, started_at)
    put(made, "first", "1m", pod("first").cpu(4))
    policy = Policy((InOrder(EASY),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"])),))
    cycle(made, policy, NOW)
    made.put(*podgroup("runs").annotation(ESTIMATE, "1h").build())
    promised = [event.message for event in cycle(made, policy, NOW).events]
    assert promised == ["It is promised room on n from 2026-01-01T00:30:00Z on"]


def test_a_promise_is_of_all_kinds_of_pods_together_on_nodes_that_may_have_them() -> None:
    """Each kind would fit by itself once the first pod ends, both only once the second does. Nobody is told how long they run."""
    made = cluster(node("n").cpu(4).label("zone", "x"), node("m").cpu(4))
    for name, estimate, row in (("a", "1h", "n"), ("b", "2h", "n"), ("c", "30m", "m"), ("d", "31m", "m")):
        made.put(*podgroup(name).annotation(ESTIMATE, estimate).build())
        made.put(*pod(name).cpu(2).gang(name).on(row).started(NOW).build())
    put(made, "first", "", pod("small").cpu(1).selector("zone", "x"), pod("large").cpu(2).selector("zone", "x"), least=2)
    policy = Policy((InOrder(EASY),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"])),))
    assert [event.message for event in cycle(made, policy, NOW).events] == ["It is promised room on n from 2026-01-01T02:00:00Z on"]


def test_whoever_is_not_told_how_long_he_runs_keeps_his_promise_without_an_end() -> None:
    made = cluster(node("n").cpu(4), podgroup("runs").annotation(ESTIMATE, "1h"), pod("runs").cpu(3).gang("runs").on("n").started(NOW))
    put(made, "first", "", pod("first").cpu(4))
    put(made, "long", "2h", pod("long").cpu(1))
    policy = Policy((InOrder(CONSERVATIVE),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"])),))
    assert not cycle(made, policy, NOW).binds
    put(made, "short", "30m", pod("short").cpu(1))
    assert [bind.task.name for bind in cycle(made, policy, NOW).binds] == ["short"]


# -- what is expected by history


HISTORY = InOrderArgs("easy", "", "history")


def ended(made: Cluster, name: str, run_s: float, *, owner: str = "ann", cpu: int = 1) -> None:
    """A job ran for so long, until now, and is gone."""
    made.put(*podgroup(name).annotation(USER, owner).build())
    runs = pod(name).cpu(cpu).gang(name).having("status", "startTime", value=rfc3339(NOW - run_s))
    made.put(*runs.on("n").build())
    over = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(NOW)}
    made.put(*runs.having("status", "phase", value="Succeeded").having("status", "conditions", value=[over]).build())
    made.index(PastRuns)
    made.remove("Pod", f"default/{name}")
    made.remove("PodGroup", f"default/{name}")


def line_of_three(made: Cluster, args: InOrderArgs, estimate: str = "1h") -> list[str]:
    """One has run for a minute on half of the node, the first asks for all of it, the second for some of what is left."""
    made.put(*podgroup("train-7").annotation(USER, "ann").build())
    made.put(*pod("train-7").cpu(2).gang("train-7").on("n").having("status", "startTime", value=rfc3339(NOW - 60)).build())
    put(made, "first", "1h", pod("first").cpu(4))
    later = podgroup("later").created("2025-12-31T01:00:00Z").annotation(USER, "ann").annotation(ESTIMATE, estimate)
    made.put(*later.build())
    made.put(*pod("later").cpu(1).gang("later").build())
    names = started(made, args)
    made.check()
    return names


@pytest.mark.parametrize(("run_s", "names"), [(600, ["later"]), (1200, [])])
def test_who_is_like_those_that_ran_shortly_is_expected_to_end_before(run_s: float, names: list[str]) -> None:
    """It asks for an hour; what runs has run for one of 20 minutes, as five others did."""
    made = cluster(node("n").cpu(4))
    made.index(PastRuns)
    for number in range(5):
        ended(made, f"train-{number}", 1200, cpu=2)
        ended(made, f"later-{number}", run_s)
    assert line_of_three(made, HISTORY) == names


def test_of_few_others_nothing_is_expected_and_no_more_than_is_told() -> None:
    """With four nobody knows when what runs will end, so that the first is promised nothing."""
    for count, estimate, names in ((4, "20m", ["later"]), (5, "20m", []), (5, "18m", ["later"])):
        made = cluster(node("n").cpu(4))
        made.index(PastRuns)
        for number in range(count):
            ended(made, f"train-{number}", 1200, cpu=2)
        assert line_of_three(made, HISTORY, estimate) == names


def test_history_is_that_of_the_narrowest_kind_of_which_enough_is_known() -> None:
    made = cluster(node("n").cpu(8))
    past = made.index(PastRuns)
    for name, owner, cpu, run_s in (("a-1", "ann", 1, 10), ("a-2", "ann", 2, 20), ("b", "ann", 1, 30), ("a-3", "bob", 1, 40)):
        for _ in range(5):
            ended(made, name, run_s, owner=owner, cpu=cpu)
    asked: dict[tuple[str, str, int], int | None] = {
        ("a-9", "ann", 1): 10,
        ("a-9", "ann", 2): 20,
        ("a-9", "ann", 3): 15,
        ("c", "ann", 1): 20,
        ("c", "bob", 1): 40,
        ("a-9", "eve", 1): None,
    }
    for (name, owner, cpu), usual in asked.items():
        made.put(*podgroup(name).annotation(USER, owner).build())
        made.put(*pod(name).cpu(cpu).gang(name).build())
        assert past.usual(made.tasks[f"default/{name}"]) == usual
        made.remove("Pod", f"default/{name}")
    made.put(*pod("alone").cpu(1).on("n").build())
    assert past.usual(made.tasks["default/alone"]) is None
    made.remove("Pod", "default/alone")


def test_who_was_evicted_or_deleted_tells_nothing() -> None:
    made = cluster(node("n").cpu(8))
    past = made.index(PastRuns)
    for number in range(1100):  # more than are kept until they are looked at
        made.put(*podgroup("j").build())
        made.put(*pod(f"j-{number}").cpu(1).gang("j").on("n").having("status", "startTime", value=rfc3339(NOW - 5)).build())
        made.remove("Pod", f"default/j-{number}")
    made.put(*pod("j").cpu(1).gang("j").build())
    assert past.usual(made.tasks["default/j"]) is None


def test_of_many_kinds_those_seen_first_are_forgotten() -> None:
    made = cluster(node("n").cpu(8))
    past = made.index(PastRuns)
    for number in range(1100):
        for _ in range(5 if number in (0, 1099) else 1):
            ended(made, "j", 60, owner=f"user{number}")
    for owner, usual in (("user0", None), ("user1099", 60)):
        made.put(*podgroup("j").annotation(USER, owner).build())
        made.put(*pod("j").cpu(1).gang("j").build())
        assert made.index(PastRuns).usual(made.tasks["default/j"]) == usual
    assert past is made.index(PastRuns)
