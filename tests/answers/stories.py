"""Headlines held to their word: give what is short, and ask again, until it starts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pumice.answers import TrialCluster, Why, why
from pumice.answers.changes import make_all
from pumice.api.defaults import KUBE_BATCH_NAME
from pumice.cli.inputs import Inputs, is_kube_batch, load_policy
from pumice.inputs.cluster_from_files import complete
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster

MOST_STEPS = 25


class State(NamedTuple):
    cluster: Cluster
    policy: Policy
    now: float


def state(path: Path, now: float) -> State:
    inputs = Inputs((str(path),), None, None, False, None, False, "", "")
    objects = inputs.read(now)
    policy = load_policy(objects, None, None, False)
    names = schedulers_of(policy)
    cluster = Cluster((*names, KUBE_BATCH_NAME) if is_kube_batch(objects) else names)
    cluster.shadow_groups = policy.shadow_groups
    for kind, item in complete(objects.items):
        cluster.put(kind, item)
    cluster.refresh_sums()
    return State(cluster, policy, now)


def who_waits(cluster: Cluster) -> list[str]:
    """Each job that waits once, and the pods of none."""
    jobs = [f"podgroup/{job.uid}" for job in cluster.waiting.values() if job.group is not None]
    return jobs + [
        f"pod/{task.key}"
        for task in cluster.tasks.values()
        if task.status == status.PENDING and (task.job is None or task.job.group is None)
    ]


def told(given: State, subject: str) -> list[Why]:
    """The answers, one after another, each after the remedy of the one before was given; the cluster is then as it was."""
    answers: list[Why] = []
    with TrialCluster(given.cluster) as trial:
        while len(answers) < MOST_STEPS:
            answers.append(why(given.cluster, given.policy, given.now, subject))
            headline = answers[-1].headline
            if headline is None or not headline.remedy:
                break
            make_all(trial, headline.remedy)
    return answers
