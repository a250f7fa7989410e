"""Pods that are not made: their owner wants none (`suspended_owners.py`); or a LimitRange, a webhook or a ResourceQuota refuses them.

A scheduler sees nothing of refused pods, so answers know of them only where the events of their controllers were read. What quotas refuse
is computed anew where the workload is known: its pods are promised, and the answer is about them.
"""

import re
from collections.abc import Iterable

from pumice.answers.answer import Because, ChainLink, Headline, Why
from pumice.answers.pods_to_come import is_promised, promise_workload
from pumice.answers.subject import KINDS, NAMESPACED, Subject, find, split
from pumice.answers.suspended_owners import resting, wanted_pods, workload
from pumice.answers.trial_cluster import TrialCluster
from pumice.api import InputError
from pumice.api.core import FAILED_CREATE, Event
from pumice.api.json_objects import field
from pumice.api.kinds import BATCH_JOBS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from pumice.api.meta import Wire
from pumice.scheduler.model import Cluster, Job

MEMORY = "pods not made"  #: its key in the cluster's memory
OF_QUOTA = re.compile("(exceeded|failed) quota: ")  #: in messages
MOST_PROMISED = 1_000  #: pods of a workload
PROMISED = (BATCH_JOBS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)  #: the kinds of workloads whose pods follow from their template
Refusals = dict[tuple[str, str], str]  #: the last message by namespace and name of the owner


def take_in_refusals(cluster: Cluster, items: Iterable[tuple[str, Wire]]) -> None:
    events = [item for _, item in items if isinstance(item, Event) and item.reason == FAILED_CREATE]
    found: Refusals = {}
    for event in sorted(events, key=lambda each: each.last_timestamp or each.event_time or ""):
        about = event.involved_object
        found[about.namespace or "default", about.name] = event.message.removeprefix("Error creating: ")
    cluster.memory[MEMORY] = found


def without_pods(cluster: Cluster, text: str) -> Why | None:
    """The answer for a workload of which neither a pod nor a PodGroup is known, if the reason is known; else None."""
    subject = split(text)
    if subject.kind not in NAMESPACED:
        return None
    if (at_rest := resting(cluster, subject)) is not None:
        return at_rest
    found, words = workload(cluster, subject), _words(cluster, subject)
    if words and not (OF_QUOTA.search(words) and found is not None and found[0] in PROMISED):
        return _waits(str(subject), words)
    if found is None or found[0] is not JOBS:
        return None
    phase = field(found[1], "status.state.phase") or "Pending"
    return Why(str(subject), "waits", Headline(Because.NO_PODGROUP, f"its controller has made no PodGroup for it yet; it is {phase}"))


def find_or_promise(trial: TrialCluster, text: str, kinds: tuple[str, ...] = KINDS) -> Subject | Why:
    """The subject; if none of its pods exists, its pods are promised. The answer, if it is known what keeps them from being made. Raises
    InputError if it is not known at all."""
    try:
        return find(trial.cluster, text, kinds=kinds)
    except InputError:
        if (answer := without_pods(trial.cluster, text)) is not None:
            return answer
        found = workload(trial.cluster, split(text))
        if found is None or found[0] not in PROMISED:
            raise
    kind, obj = found
    promise_workload(trial, obj, min(wanted_pods(kind, obj), MOST_PROMISED))
    return find(trial.cluster, text)


def _words(cluster: Cluster, subject: Subject) -> str:
    """What the workload's controller was told when it could not create a pod; empty if it could, as far as is known."""
    namespace, _, name = (subject.asked or subject.key).partition("/")
    hashed = re.compile(rf"{re.escape(name)}-[a-z0-9]{{5,10}}")  # of a Deployment, its ReplicaSets
    refusals: Refusals = cluster.memory.get(MEMORY, {})
    found = (words for (space, owner), words in refusals.items() if space == namespace and (owner == name or hashed.fullmatch(owner)))
    return next(found, "")


def missing(cluster: Cluster, subject: Subject, count: int) -> str:
    """How many pods a workload lacks, of which there are `count`, and what refuses them; empty if it has all, as far as is known."""
    found, words = workload(cluster, subject), _words(cluster, subject)
    if found is None or not words:
        return ""
    wanted = wanted_pods(*found)
    return f"{wanted - count} of its {wanted} pods are not made: {words}" if wanted > count else ""


def refused(cluster: Cluster, job: Job, subject: str) -> Why | None:
    """The answer for a job that would start if its controller could create the pods that it lacks; None if it can, as far as is known."""
    owner = job.group.metadata.controller if job.group is not None else None
    if owner is None or not any(map(is_promised, job.tasks.values())):
        return None
    refusals: Refusals = cluster.memory.get(MEMORY, {})
    words = refusals.get((job.namespace, owner.name), "")
    return _waits(subject, words) if words and not OF_QUOTA.search(words) else None


def _waits(subject: str, words: str) -> Why:
    return without_any(subject, Headline(Because.REFUSED, f"its controller cannot create its pods: {words}"))


def without_any(subject: str, headline: Headline) -> Why:
    """The answer for a subject that has no pods, about which no other question can be asked."""
    return Why(subject, "waits", headline, chain=(ChainLink("are its pods there?", False, headline.text),))
