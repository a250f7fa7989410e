"""When does it start: what rollouts rest on, and that they leave the state alone."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from pumice.answers.calibration import calibrate
from pumice.answers.eta import Forecast, eta, etas
from pumice.answers.run_times import Guess, LifeTable, Past, RunTimes
from pumice.api.annotations import ESTIMATE, USER
from pumice.api.errors import InputError
from pumice.api.times import rfc3339
from pumice.cli.main import cli
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.simulate.inputs import read_policy, source
from pumice.simulate.scenario import cluster_of
from pumice.simulate.workload import Work, role
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW, policy
from tests.simulate.playing import swf

HOUR = 3600.0
VOLCANO = read_policy("volcano")[0]
EXAMPLE = str(Path(__file__).parents[2] / "examples/answers.yaml")


def running(made: Cluster, name: str, cpu: int, since: float, estimate: str) -> None:
    made.put(*podgroup(name).phase("Running").annotation(ESTIMATE, estimate).created(rfc3339(NOW - since)).build())
    made.put(*pod(name).cpu(cpu).gang(name).on("n").having("status", "startTime", value=rfc3339(NOW - since)).build())


def waiting(made: Cluster, name: str, cpu: int, *, ago: float = 60.0, estimate: str = "1h") -> None:
    made.put(*podgroup(name).annotation(ESTIMATE, estimate).created(rfc3339(NOW - ago)).build())
    made.put(*pod(name).cpu(cpu).gang(name).build())


def test_it_starts_when_those_before_it_have_ended() -> None:
    made = cluster(node("n").cpu(4))
    running(made, "runs", 4, since=2 * HOUR, estimate="3h")
    waiting(made, "first", 4, ago=2 * 86_400)
    waiting(made, "second", 4, ago=2 * 86_400 - 60)
    assert {uid: (told.p50, told.p90) for uid, told in etas(made, VOLCANO, NOW).items()} == {
        "default/first": (HOUR, HOUR),
        "default/second": (2 * HOUR, 2 * HOUR),
    }
    told = eta(made, VOLCANO, NOW, "job/first")
    assert (told.p50_at, told.run_times) == ("2026-01-01T01:00:00Z", {"its annotation": 3})


def test_those_who_came_of_late_come_again() -> None:
    """The high ones go before it, each day anew."""
    made = cluster(node("n").cpu(4))
    made.put(*podgroup("again").annotation(ESTIMATE, "1h").created(rfc3339(NOW - 3600)).build())
    made.put(*pod("again").cpu(4).gang("again").build())
    running(made, "runs", 4, since=HOUR, estimate="2h")
    assert eta(made, VOLCANO, NOW, "podgroup/again").arrivals == 2


def test_the_state_is_left_alone() -> None:
    made = cluster(node("n").cpu(4))
    running(made, "runs", 3, since=HOUR, estimate="2h")
    waiting(made, "first", 1)
    waiting(made, "second", 4)
    etas(made, VOLCANO, NOW)
    made.check()
    assert [bind.task.name for bind in cycle(made, VOLCANO, NOW).binds] == ["first"]


def test_pods_that_nobody_has_made_yet_count_by_what_their_group_needs() -> None:
    made = cluster(node("n").cpu(4))
    running(made, "runs", 4, since=HOUR, estimate="2h")
    made.put(*podgroup("group", 2).needs(cpu=4).build())
    assert eta(made, VOLCANO, NOW, "podgroup/group").p50 == HOUR


def test_pods_that_nobody_has_made_yet_are_of_the_roles_that_their_group_counts() -> None:
    made = cluster(node("n").cpu(4))
    running(made, "runs", 4, since=HOUR, estimate="2h")
    made.put(*podgroup("group", 3).needs(cpu=3).having("spec", "minTaskMember", value={"chief": 1, "worker": 2}).build())
    assert eta(made, VOLCANO, NOW, "podgroup/group").p50 == HOUR


def test_what_never_ends_or_fits_has_no_instant() -> None:
    owner = [{"kind": "ReplicaSet", "name": "web", "controller": True}]
    made = cluster(node("n").cpu(4), pod("other").cpu(1).scheduler("mine").on("n"), podgroup("web").phase("Running"))
    made.put(*pod("web").cpu(3).gang("web").on("n").having("metadata", "ownerReferences", value=owner).build())
    waiting(made, "job", 4)
    told = eta(made, VOLCANO, NOW, "job/job")
    assert (told.p50, told.p90, told.p90_at) == (None, None, None)
    assert told.run_times == {"its annotation": 1, "nothing: it is a service": 1}


def test_plain_pods_of_kube_scheduler_are_told_as_well() -> None:
    made = Cluster(("default-scheduler",))
    made.put(*node("n").cpu(4).build())
    for each in (pod("runs").on("n"), pod("waits")):
        made.put(*each.cpu(4).scheduler("default-scheduler").having("spec", "activeDeadlineSeconds", value=600).build())
    told = eta(made, read_policy("kube-scheduler")[0], NOW, "pod/waits")
    assert (told.p50, told.run_times) == (600, {"its limit": 2})


def test_who_runs_is_told_so_and_a_queue_is_not_asked_about() -> None:
    made = cluster(node("n").cpu(4))
    running(made, "runs", 4, since=HOUR, estimate="2h")
    assert eta(made, VOLCANO, NOW, "job/runs").state == "runs"
    with pytest.raises(InputError, match="write one of job/NAME, pod/NAME, podgroup/NAME"):
        eta(made, VOLCANO, NOW, "queue/default")


def test_pods_that_have_ended_tell_how_long_others_of_their_owner_run() -> None:
    made = cluster(node("n").cpu(4))
    for number in range(5):
        ended = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(NOW - HOUR)}
        made.put(*podgroup(f"train-{number}").annotation(USER, "ann").phase("Completed").build())
        past = pod(f"train-{number}-0").cpu(4).gang(f"train-{number}").on("n").having("status", "startTime", value=rfc3339(NOW - 3 * HOUR))
        made.put(*past.having("status", "phase", value="Succeeded").having("status", "conditions", value=[ended]).build())
    made.put(*podgroup("train-8").annotation(USER, "ann").phase("Running").build())
    made.put(*pod("train-8-0").cpu(4).gang("train-8").on("n").having("status", "startTime", value=rfc3339(NOW - HOUR)).build())
    waiting(made, "next", 4)
    told = eta(made, VOLCANO, NOW, "job/next")
    assert (told.p50, told.run_times) == (HOUR, {"history of its owner, name and shape": 1, "history of everybody": 1})


def work(name: str = "a-1", user: str = "ann", cpu: int = 1, **more: float) -> Work:
    return Work(name, 0.0, 1.0, (role(1, {"cpu": cpu}),), user=user, **more)  # type: ignore[arg-type]


def limited(estimate: float) -> Work:
    """A job that is ended after a minute."""
    asked = work(estimate=estimate)
    one = asked.roles[0]
    return dataclasses.replace(asked, roles=(dataclasses.replace(one, spec=msgspec.structs.replace(one.spec, active_deadline_seconds=60)),))


def test_the_nearest_kind_of_which_enough_is_known_tells() -> None:
    past = Past()

    def source(asked: Work) -> str:
        return RunTimes(past, NOW).guess(asked).source

    assert source(work()) == "nothing"
    assert source(work(estimate=60.0)) == "its annotation"
    assert source(limited(60.0)) == "its annotation" and source(limited(61.0)) == "its limit"
    for run in (10.0, 20.0, 30.0, 40.0, 50.0):
        past.ended(work("b-7", cpu=2), run, NOW)
    assert source(work("b-9", cpu=2)) == "history of its owner, name and shape"
    assert source(work("b-9")) == "history of its owner and name"
    assert source(work("c")) == "history of its owner"
    assert source(work("c", user="bob")) == "history of everybody"
    assert source(work("c", user="bob", estimate=60.0)) == "history of everybody"


def test_an_estimate_bounds_what_history_tells() -> None:
    past = Past()
    for run in (10.0, 20.0, 1000.0, 1000.0, 1000.0):
        past.ended(work("other", user="bob"), run, NOW)
    run_times = RunTimes(past, NOW)
    assert [run_times.guess(work(estimate=100.0)).run(share) for share in (0.1, 0.3, 0.9)] == [10.0, 20.0, 100.0]
    assert run_times.guess(work()).run(0.6) == 1000.0


def table(*ended: float, running: Sequence[float] = ()) -> LifeTable:
    return LifeTable.of(np.array([(0.0, run, 1.0, 1.0) for run in ended] + [(0.0, age, 0.0, 1.0) for age in running]))


def test_who_runs_already_ends_like_those_who_ran_longer() -> None:
    known = Guess("", table(10.0, 20.0, 30.0, 40.0), elapsed=15.0)
    assert [known.run(share) for share in (0.1, 0.3, 0.6)] == [20.0, 30.0, 40.0]
    assert [known.run(share) for share in (0.75, 0.875)] == pytest.approx([600.0, 1200.0]), "one in four outlives all three"
    assert Guess("", table(10.0, 20.0, 30.0, 40.0), most=25.0).run(0.9) == 25.0
    assert Guess("", table(10.0), elapsed=900.0, most=12.0).run(0.5) == 1800.0, "who outlives all bounds is bound no more"
    assert Guess("", LifeTable([], []), elapsed=3600.0).run(0.5) == 7200.0


def test_those_who_still_run_tell_that_others_may_run_as_long() -> None:
    """Three short jobs have ended, seven have run for an hour: few are short."""
    alone, beside = table(60.0, 61.0, 62.0), table(60.0, 61.0, 62.0, running=[3600.0] * 7)
    assert alone.draw(0.5, 0.0) == 61.0
    assert beside.draw(0.2, 0.0) == 62.0
    assert beside.draw(0.5, 0.0) > 600.0


def test_who_was_there_before_the_watch_began_tells_nothing_of_short_lives() -> None:
    """Of the latest ends only those are known that came since: an old job was sure to be old."""
    late = LifeTable.of(np.array([(0.0, 10.0, 1.0, 1.0), (0.0, 20.0, 1.0, 1.0), (900.0, 1000.0, 1.0, 1.0)]))
    assert late.gone == pytest.approx([1 / 3, 2 / 3, 5 / 6])
    assert table(10.0, 20.0, 1000.0).gone == pytest.approx([0.25, 0.5, 0.75])


def test_a_wider_kind_counts_as_five_jobs_and_of_many_that_run_one_stands_for_some() -> None:
    past = Past()
    for _ in range(50):
        past.ended(work("other", user="bob"), 1000.0, NOW)
    for _ in range(5):
        past.ended(work("mine"), 10.0, NOW)
    run_times = RunTimes(past, NOW)
    assert [run_times.guess(work("mine")).run(share) for share in (0.7, 0.8)] == [10.0, 1000.0]
    crowd = RunTimes(past, NOW, [(work("mine"), NOW - 100.0)] * 700)
    assert crowd.guess(work("mine")).run(0.1) > 100.0


def test_forecasts_are_scored_on_a_workload(tmp_path: Path) -> None:
    """Ten jobs, one after the other on all processors, which run as long as they say; three are told at a time."""
    log = swf(tmp_path / "log.swf", [(at, 4, 100) for at in range(10)])
    result = CliRunner().invoke(cli, ["eta", "--score", f"swf:{log.path}", "--policy", "FIFO", "--every", "3", "-o", "json"])
    found = json.loads(result.stdout)
    assert [(each["p50"], each["waited"]) for each in found["told"][:4]] == [(97, 97), (197, 197), (297, 297), (394, 394)]
    assert (found["withinP50"], found["withinP90"]) == (1, 1)


def test_a_score_tells_the_instant_of_each_forecast_and_the_median_of_what_was_told(tmp_path: Path) -> None:
    """Nine jobs in line after the first, of 100 s each: told after the third, the sixth and the ninth of them has come."""
    log = swf(tmp_path / "log.swf", [(at, 4, 100) for at in range(10)])
    asked = ["eta", "--score", f"swf:{log.path}", "--policy", "FIFO", "--every", "3"]
    found = json.loads(CliRunner().invoke(cli, [*asked, "-o", "json"]).stdout)
    assert [each["instant"] for each in found["told"]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (found["medianP90"], found["medianWaited"]) == (494, 494)
    shown = CliRunner().invoke(cli, asked).stdout.splitlines()
    assert shown[0] == "9 jobs that waited were told when they would start, at 3 instants"
    assert shown[-1] == "Median of the times told as P90: 8m14s; of the times until they started: 8m14s."


def test_a_score_of_forecasts_beyond_the_horizon_says_so(tmp_path: Path) -> None:
    log = swf(tmp_path / "log.swf", [(at, 4, 8 * 86_400) for at in range(3)])
    shown = CliRunner().invoke(cli, ["eta", "--score", f"swf:{log.path}", "--policy", "FIFO", "--every", "2"]).stdout
    assert shown.splitlines()[-1] == "Median of the times told as P90: >7d; of the times until they started: 11d."


def test_half_of_the_jobs_of_an_owner_run_equally_long_in_a_rollout() -> None:
    """Were it none, rollouts would lie too near to each other."""
    made = cluster(node("n").cpu(300))
    for number in range(300):
        running(made, f"sweep-{number}", 1, since=HOUR, estimate="3h")
    seeds = Counter(each.seed for each in Forecast(made, VOLCANO, NOW).placed)
    assert 130 <= seeds.most_common(1)[0][1] <= 170
    assert len(seeds) >= 130


def test_without_a_subject_all_that_wait_are_told() -> None:
    shown = CliRunner().invoke(cli, ["eta", "-f", EXAMPLE, "--now", "2026-01-01T12:00:00Z"]).stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["JOB", "podgroup/train", "podgroup/probe"]
    told = json.loads(CliRunner().invoke(cli, ["eta", "-f", EXAMPLE, "--now", "2026-01-01T12:00:00Z", "-o", "json"]).stdout)
    assert [each["subject"] for each in told] == ["podgroup/default/train", "podgroup/default/probe"]


def test_a_subject_or_a_workload_is_asked_about() -> None:
    assert "takes no subject" in CliRunner().invoke(cli, ["eta", "job/frontend", "--score", "swf:x"]).stderr
    assert "job/frontend does not wait" in CliRunner().invoke(cli, ["eta", "job/frontend", "-f", EXAMPLE]).stdout


BUSY = """\
duration: 2d
nodes: 3x4gpu
queues: {a: {}, b: {}}
jobs:
- {name: short, arrivals: {poisson: 6/h}, run: {lognormal: 20m, sigma: 1}, request: {nvidia.com/gpu: 1}, queue: {a: 1, b: 1}}
- {name: long, arrivals: {poisson: 1/h}, run: {lognormal: 2h, sigma: 0.5}, estimate: 3, pods: {choice: {2: 1, 4: 1}},
   request: {nvidia.com/gpu: 1}, queue: {a: 1, b: 1}}
"""


def test_nine_of_ten_start_within_what_they_were_told(tmp_path: Path) -> None:
    """Run times are known by history alone."""
    (tmp_path / "busy.yaml").write_text(BUSY)
    read = source(f"yaml:{tmp_path / 'busy.yaml'}", "").read(None)
    decides = read_policy("FIFO")[0]
    found = calibrate(cluster_of(decides, read), decides, read, every=15)
    assert len(found.predictions) >= 100
    assert 0.85 <= found.within_p90 <= 0.97
    assert 0.5 <= found.within_p50 <= 0.85


RECLAIM = policy("enqueue, allocate, reclaim", ["priority", "gang", "predicates", "proportion", "nodeorder"])


def decided(made: Cluster) -> object:
    told = cycle(made, RECLAIM, NOW + 1)
    placed = [(bind.task.key, bind.node) for bind in told.binds]
    return placed, [gone.task.key for gone in told.evictions], [(each.task.key, each.message) for each in told.waiting]


def state_of(made: Cluster) -> object:
    tasks = [(task.key, task.status, task.node_name, task.nominated, task.started, task.disrupted) for task in made.tasks.values()]
    return tasks, [(job.uid, job.phase, job.waiting_since) for job in made.jobs.values()]


def contested() -> Cluster:
    """Queue a has all of it; b will reclaim what it deserves, and all that came of late come again each day."""
    made = cluster(*(node(f"n{number}").cpu(4) for number in range(2)), queue("a").weight(1), queue("b").weight(1))
    for number in range(4):
        made.put(*podgroup(f"a{number}").queue("a").phase("Running").created(rfc3339(NOW - 9 * HOUR)).build())
        for member in range(2):
            started = pod(f"a{number}-{member}").cpu(1).gang(f"a{number}").on(f"n{number % 2}")
            made.put(*started.having("status", "startTime", value=rfc3339(NOW - HOUR)).build())
    for number in range(3):
        made.put(*podgroup(f"b{number}", 2).queue("b").created(rfc3339(NOW - HOUR + number)).build())
        for member in range(2):
            made.put(*pod(f"b{number}-{member}").cpu(1).gang(f"b{number}").build())
    return made


def test_cycles_decide_afterwards_as_if_nobody_had_asked() -> None:
    asked, other = contested(), contested()
    cycle(asked, RECLAIM, NOW), cycle(other, RECLAIM, NOW)
    before = state_of(asked)
    assert etas(asked, RECLAIM, NOW)
    asked.check()
    assert before == state_of(asked)
    assert decided(asked) == decided(other)


def test_room_is_made_for_a_queue_that_has_less_than_it_deserves() -> None:
    """Two of its gangs start as soon as the victims are gone; the third waits until somebody ends."""
    told = etas(contested(), RECLAIM, NOW)
    assert (told["default/b0"].p50, told["default/b1"].p90) == (1.0, 1.0)
    assert (told["default/b2"].p50 or 0) > 60
