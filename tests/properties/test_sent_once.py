"""Of jobs of whom everything has been said nothing more is looked at, and it makes no difference to what is asked of the server."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from pumice.inputs.cluster_from_files import advance
from pumice.live.scheduler.decisions_to_requests import _are_due, requests_of
from pumice.live.scheduler.sent_status import LONGEST_PAUSE_S, Quiet, SentStatus
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.decisions import Conclusion, Unsaid
from pumice.scheduler.framework.job_classes import Member
from pumice.scheduler.model import Job
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.registry import PLUGINS
from tests.properties.test_waiting import ACTIONS, CONFIGURATION, Fate, Life
from tests.samples import times


def lose(said: SentStatus, random: Random) -> None:
    """Writes that failed, echoes that came, and answers that hold back further writes."""
    if said.marks and random.random() < 0.3:
        said.forget_pod(random.choice(sorted(said.marks)))
    if said.groups and random.random() < 0.3:
        del said.groups[random.choice(sorted(said.groups))]
    if random.random() < 0.05:
        said.pauses.refused("PodGroup", "default/nobody", 0.0)
    said.others ^= {"default/j00-00000"} if random.random() < 0.1 else set()


def live(seed: int, operations: int) -> tuple[int, int]:
    """How many requests were made, and how often nothing was left to say of a job. No job is at rest: those are looked at now and then."""
    random = Random(seed)
    text = CONFIGURATION.format(actions=random.choice(ACTIONS), second="drf", shares="proportion", third="binpack")
    life, fate = Life(replace(read_policy(text, PLUGINS)[0], shortcuts=False)), Fate(random)
    said, always = SentStatus(), SentStatus()
    now, made, quiet = 1_767_225_600.0, 0, 0
    for _ in range(operations):
        fate.draw(life.cluster)(life.cluster)
        for _ in range(random.randint(1, 3)):
            now += random.choice([0.0, 1.0, 20.0])
            decided = life.decide(now)
            always.quiet.clear()
            asked, expected = (requests_of(life.cluster, decided, status, now, "cycle") for status in (said, always))
            assert asked == expected
            made += len(asked.marks) + len(asked.statuses) + len(asked.events)
            quiet += sum(each.until > now for each in said.quiet.values())
            advance(life.cluster, decided, now)
            fortune = random.random()
            for status in (said, always):
                lose(status, Random(fortune))
    return made, quiet


def test_what_was_said_is_not_said_again_and_what_was_not_is() -> None:
    made, quiet = map(sum, zip(*(live(seed, 40) for seed in range(times(3))), strict=True))
    assert made > 200 and quiet > 200


@pytest.mark.parametrize("seed", range(7, 7 + times(3)))
def test_jobs_at_rest_have_said_the_same_once_their_messages_are_repeated(seed: int) -> None:
    random = Random(seed)
    text = CONFIGURATION.format(actions=ACTIONS[0], second="drf", shares="proportion", third="binpack")
    life, fate, said = Life(read_policy(text, PLUGINS)[0]), Fate(random), SentStatus()
    now, rested = 1_767_225_600.0, 0
    for _ in range(60):
        fate.draw(life.cluster)(life.cluster)
        for step in (1.0, 1.0, 2 * LONGEST_PAUSE_S, 1.0):
            now += step
            decided = life.decide(now)
            requests_of(life.cluster, decided, said, now, "cycle")
            rested += decided.conclusion is not None and bool(decided.conclusion.at_rest.jobs)
            advance(life.cluster, decided, now)
        fresh = SentStatus()
        requests_of(life.cluster, life.decide(now), fresh, now, "cycle")
        waiting = {uid for job in life.cluster.waiting.values() for uid in job.pending} & fresh.marks.keys()
        assert {uid: said.marks[uid].message for uid in waiting} == {uid: fresh.marks[uid].message for uid in waiting}
    assert rested > 20


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_the_same_over_many_operations(seed: int) -> None:
    live(seed, 100)


@pytest.mark.parametrize(("resting", "pause_s"), [(1, 5.0), (5_000, 10.0)])
def test_the_more_jobs_rest_the_less_often_it_is_found_out_why(resting: int, pause_s: float) -> None:
    job, said = Job("default/a", Dimensions()), SentStatus()
    said.quiet[job.uid] = Quiet(None, job.written, None, [], until=0.0)
    at_rest = Conclusion([], [], [], Unsaid([[Member.of(job)] * resting], 0))
    said.rest_reported_at = 100.0
    assert [_are_due(at_rest, said, 100.0 + pause_s + more) for more in (-0.1, 0.0)] == [False, True]
    assert said.rest_reported_at == 100.0 + pause_s
