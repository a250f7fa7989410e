"""Can a job ever run here? What bounds it even in an empty cluster: the largest node, a quota, the network, its own selectors, a volume.

Only rules that do not depend on other running pods are asked: host ports, topology spread and pod affinity are left out. A claim that does
not exist, or is not bound yet, is no bound, as it may still come.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from pumice.answers import closed_nodes, missing_room
from pumice.answers.answer import Because, Headline
from pumice.answers.missing_pods import may_start_with
from pumice.answers.missing_room import Missing
from pumice.answers.pods_to_come import promise
from pumice.answers.refusing_rules import NodesFor
from pumice.answers.subject import WaitingPart, find, subject_of, who_waits
from pumice.answers.trial_cluster import Look, TrialCluster, look
from pumice.api.plural import counted
from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import PODS, Cluster, Job, Task, Vector


class Fit(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whether a job can ever run, and if not, what bounds it and what would fit."""

    subject: str
    bound: Headline | None = None  #: None if it can run
    largest: str = ""  #: the largest gang that would fit, in words
    waits_for: tuple[str, ...] = ()  #: claims that may still come; only then other bounds are known

    @property
    def line(self) -> str:
        if self.waits_for:
            return f"{self.subject} waits for {claims(self.waits_for)}"
        if self.bound is None:
            return f"{self.subject} can run here"
        return f"{self.subject} can never run here: {self.text}"

    @property
    def text(self) -> str:
        """What bounds the job, and what would fit; empty if it can run."""
        if self.bound is None:
            return ""
        return f"{self.bound.text}; {self.largest}" if self.largest else self.bound.text


def fits(cluster: Cluster, policy: Policy, now: float, subject: str, world: World = NOWHERE) -> Fit:
    """Whether a waiting job, PodGroup or pod can ever run. The cluster is afterwards as it was. Raises InputError."""
    found = find(cluster, subject)
    job = cluster.jobs.get(found.key) if found.kind != "pod" else None
    name = str(subject_of(job) if job is not None and found.kind == "podgroup" else found)
    bounds: list[Fit] = []

    def capture(seen: Look) -> None:
        bounds.append(bounded(seen, name))

    with TrialCluster(cluster) as trial:
        if job is not None and job.group is not None:
            promise(trial, job)
        waits = who_waits(cluster, found)
        if waits.tasks:
            seen = Look(waits, capture)
            look(cluster, policy, now, seen, alone=True, world=world)
            seen.forget()
    return bounds[0] if bounds else Fit(name)


def bounded(seen: Look, name: str) -> Fit:
    waits, session = seen.waiter, seen.session
    if waits.job is not None and waits.job.queue is not None and waits.job.queue.exists:
        headline = _by_quota(session, waits.job)
        if headline is not None:
            return Fit(name, headline)
    awaited: list[str] = []
    first, others = None, waits.tasks  #: the first bound, and the pods that are not bound
    for task in {task.template: task for task in waits.tasks}.values():
        evaluation = _evaluation(seen, task)
        if evaluation is not None:
            if claims_to_come := closed_nodes.awaited_claims(session.cluster, task, evaluation):
                awaited += claims_to_come
                continue
            headline, largest = _by_nodes(session, waits, task, evaluation)
            if headline is not None:
                first = first or Fit(name, headline, largest)
                others = [other for other in others if other.template is not task.template]
    job = waits.job
    if first is not None and not (job is not None and job.group is not None and may_start_with(job, others)):
        return first
    return Fit(name, waits_for=tuple(dict.fromkeys(awaited)))


def claims(keys: Sequence[str]) -> str:
    return f"PersistentVolumeClaim{'s' * (len(keys) > 1)} {', '.join(keys)}"


def _evaluation(seen: Look, task: Task) -> Evaluation | None:
    """The evaluation of a task by the loop or the session that places it; None if neither does."""
    if seen.loop is not None and task.template.scheduler_name in seen.loop.searches and (task.job is None or task.job.group is None):
        return seen.loop.searches[task.template.scheduler_name].evaluation(task)
    return seen.session.evaluation(task) if task.job is not None and task.job.group is not None else None


def _by_quota(session: Session, job: Job) -> Headline | None:
    """The headline if the job's queue, or an ancestor of it, may never hold what must start together; else None."""
    requests = [task.template.request for task in job.tasks.values()]
    least = np.sort(requests, axis=0)[: max(job.min_member, 1)].sum(axis=0) if requests else job.min_resources
    needed: Vector = np.maximum(least, job.min_resources)
    entitled = {  # these are of the nodes there are; of none, any may come
        name: limit
        for plugin in ("capacity", "proportion")
        if session.cluster.nodes.count and (p := session.plugin(plugin))
        for name, (_, limit) in p.entitlements().items()
    }
    queue, seen = job.queue, set()
    while queue is not None and queue.name not in seen:
        seen.add(queue.name)
        limit = np.minimum(entitled.get(queue.name, queue.capability), queue.capability)
        short = needed - limit
        short[PODS] = 0.0
        if (short > 0).any():
            column = int(short.argmax())
            dimensions = session.cluster.dimensions
            asked, most, less = (dimensions.format_amount(column, max(float(v[column]), 0.0)) for v in (needed, limit, short))
            text = f"it must start with {asked} {dimensions.names[column]}, and queue {queue.name} may hold {most} at most ({less} short)"
            return Headline(Because.QUOTA, text, asked, most, less)
        queue = session.cluster.queues.get(queue.parent)
    return None


def _by_nodes(session: Session, waits: WaitingPart, task: Task, evaluation: Evaluation) -> tuple[Headline | None, str]:
    cluster, job = session.cluster, waits.job
    if evaluation.rejected is not None:
        return closed_nodes.rejected(cluster, task, waits.name, evaluation.rejected_by, evaluation.rejected.text), ""
    nodes = NodesFor(evaluation, lasting=True)
    if not nodes.alive.any():
        return None, ""  # nodes may come
    if not (nodes.alive & nodes.large).any():
        return missing_room.too_large(nodes, waits.name), ""
    if not (nodes.open & nodes.large).any():
        choice = closed_nodes.choose(nodes)
        assert choice is not None, "a node that is large and not open is closed"
        return closed_nodes.headline(cluster, task, waits.name, nodes, choice), ""
    alike = [other for other in waits.tasks if other.template is task.template]
    if job is None or job.min_member < 2 or len(alike) < len(waits.tasks):
        return None, ""
    return _gang(session, nodes, job, alike)


def _gang(session: Session, nodes: NodesFor, job: Job, tasks: list[Task]) -> tuple[Headline | None, str]:
    """The bound of a gang of equal pods: the room in all open nodes, then in the HyperNode that must hold it. And the largest that fits."""
    wanted, most = job.min_member, nodes.copies(nodes.open, empty=True)
    if most < wanted:
        return missing_room.headline_of_gang(Missing(wanted, 0, tasks), most), f"a gang of {most} would fit"
    limit = session.topology.limit(job)
    is_unheeded = job.group is not None and session.policy.why_topology_is_unheeded(job.group)
    if limit is None or is_unheeded or not session.topology.tree.ready:
        return None, ""
    domains = [domain for domain in session.topology.tree.all if domain.tier <= limit]
    roomiest = max(((nodes.copies(nodes.open & domain.rows, empty=True), domain.name) for domain in domains), default=(0, "none"))
    if roomiest[0] >= wanted:
        return None, ""
    short = wanted - roomiest[0]
    largest = f"the largest, {roomiest[1]}, would hold {roomiest[0]} ({short} short)"
    text = f"its {counted(wanted, 'pod')} must be in one HyperNode of tier {limit} or lower; {largest}"
    return Headline(Because.TOPOLOGY, text, str(wanted), str(roomiest[0]), str(short)), f"a gang of {roomiest[0]} would fit"
