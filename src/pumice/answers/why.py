"""Why does a subject wait, or run where it runs? The answer comes from rehearsals of the next cycle.

Pods that its controller will make are promised first (`pods_to_come.py`), as far as ResourceQuotas allow. In the first rehearsal no other
job or pod waits: what holds the subject back then is named by the chain of questions (`why_blocked.py`). If it starts, a second one serves
all jobs and pods: a subject that does not start among them is outranked (`job_rank.py`). Last, the remedy of the headline is tried,
through as many cycles as it takes (`outcome_of_cycles.py`): it is advice only if the subject starts with it. Else the answer says what
holds it back next. What is printed is made in `answer_text.py`.
"""

from contextlib import ExitStack

from msgspec.structs import replace

from pumice.answers import job_rank, pod_quota, pods_not_made
from pumice.answers.answer import Because, ChainLink, Headline, Why
from pumice.answers.can_ever_run import Fit, bounded
from pumice.answers.changes import ClusterChange, Gone, make_all, merged
from pumice.answers.closed_nodes import PASSING
from pumice.answers.outcome_of_cycles import course
from pumice.answers.placed_pods import gone_pod, of_pods, running
from pumice.answers.pod_changes import MakeGroup
from pumice.answers.pods_to_come import is_promised, promise
from pumice.answers.queue_admission import all_allowed
from pumice.answers.queue_quota import largest_promises
from pumice.answers.subject import Subject, WaitingPart, subject_of, tasks_of_job, waiter, who_waits
from pumice.answers.suspended_owners import resting
from pumice.answers.trial_cluster import Capture, Look, TrialCluster, look
from pumice.answers.why_blocked import Blocked
from pumice.api.plural import counted, part_of, plural
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import INQUEUE, Cluster, Job, Task, status

PROMISED = (Because.QUOTA, Because.OVERCOMMITTED)  #: what is promised to others may be what is short
MOST_REMEDIES = 6  #: changes that advice consists of at most
MOST_REHEARSALS = 10  #: others may take what is given, so that more of it is needed


def why(cluster: Cluster, policy: Policy, now: float, subject: str, world: World = NOWHERE, *, advise: bool = False) -> Why:
    """The answer for `job/x`, `pod/x`, `podgroup/x`, `queue/x` or `node/x`. With `advise`, what would help is rehearsed, too, in several
    cycles. The cluster is afterwards as it was. Raises InputError."""
    if (gone := gone_pod(cluster, subject)) is not None:
        return gone
    with TrialCluster(cluster) as trial:
        found = pods_not_made.find_or_promise(trial, subject)
        return found if isinstance(found, Why) else AskedState(cluster, policy, now, world, advise=advise).about(found)


def _never(fits: list[Fit], headline: Headline | None) -> str:
    """What will keep the subject from ever running, if that is not what holds it back now; else empty."""
    bound = fits[0].bound if fits else None
    if bound is None or headline is None or bound.because in PASSING:
        return ""
    if bound.because is headline.because and (bound.because is not Because.QUOTA or bound.short == headline.short):
        return ""
    return fits[0].text


def expect(trial: TrialCluster, subject: Subject) -> None:
    """Let the pods exist that the controller of the subject's job will make."""
    job = trial.cluster.jobs.get(subject.key) if subject.kind in ("job", "podgroup") else None
    if job is not None and job.group is not None:
        promise(trial, job)


class AskedState:
    """The state about which questions are asked."""

    def __init__(self, cluster: Cluster, policy: Policy, now: float, world: World, *, advise: bool = False) -> None:
        self._cluster, self._policy, self._now, self._world, self._advise = cluster, policy, now, world, advise

    def about(self, subject: Subject) -> Why:
        if subject.kind == "queue":
            return self._queue(subject)
        if subject.kind == "node":
            return self._node(subject)
        evictions = of_pods(self._cluster, _tasks(self._cluster, subject), subject.key if subject.kind != "pod" else "")
        with TrialCluster(self._cluster) as trial:
            expect(trial, subject)
            answered = self.stands(subject)
            answered = self.advised(subject, answered) if self._advise else answered
            return replace(answered, evictions=evictions, note=self._unheeded(subject))

    def _unheeded(self, subject: Subject) -> str:
        """Which demand of the subject's PodGroup has no effect in this configuration; empty if none."""
        job = self._cluster.tasks[subject.key].job if subject.kind == "pod" else self._cluster.jobs.get(subject.key)
        return self._policy.why_topology_is_unheeded(job.group) if job is not None and job.group is not None else ""

    def stands(self, subject: Subject) -> Why:
        """How the subject stands, with the pods that exist by now and no others."""
        namespace = subject.key.partition("/")[0]
        if self._cluster.is_ending(namespace) and not any(task.node_name for task in _tasks(self._cluster, subject)):
            return Why(str(subject), "ends", text=f"namespace {namespace} is being deleted: nothing starts in it any more")
        if subject.kind != "pod" and (at_rest := self._at_rest(subject)) is not None:
            return at_rest
        waits = who_waits(self._cluster, subject)
        if waits.tasks or (waits.job is not None and not waits.job.tasks and waits.job.group is not None):
            stands = self._waits(subject)
            refused = (
                pods_not_made.refused(self._cluster, waits.job, str(subject))
                if waits.job is not None and stands.state == "starts"
                else None
            )
            return refused or stands
        return self._placed(subject)

    def advised(self, subject: Subject, answer: Why) -> Why:
        """The answer with advice: the remedy, if a rehearsal starts the subject with it, else with those of what holds it back then. If it
        does not start with all of them either, the answer says what holds it back once the first is there."""
        found = self._advised(subject, answer, [])
        if not found.advice and answer.headline is not None and answer.headline.because in PROMISED:
            others = largest_promises(self._cluster, who_waits(self._cluster, subject).job, 1)
            instead = (self._advised(subject, answer, [end]) for end in others)  # others take what is given, and hold it in vain
            return next((each for each in instead if each.advice), found)
        return found

    def _advised(self, subject: Subject, answer: Why, given: list[ClusterChange]) -> Why:
        """The answer with advice that begins with these changes, without those that the others make needless."""
        answered, then = answer, ""
        if given:
            if (after := self._with(subject, given)) is None:
                return replace(answer, advice=tuple(given))
            answered = after
        for _ in range(MOST_REHEARSALS):
            if answered.headline is None or not answered.headline.remedy or len(given) >= MOST_REMEDIES:
                break
            if given and answered.headline.because is Because.OUTRANKED:
                break  # those who go first cannot be asked to leave once there is room for one more
            given = merged([*given, *answered.headline.remedy], self._cluster.dimensions)
            after = self._with(subject, given)
            if after is None:
                return replace(answer, advice=self._needed(subject, given))
            then = then or (after.line if after.headline is not None else "")
            if after.headline is not None and _is_same(answered.headline, after.headline):
                break  # others take what is given
            answered = after
        return replace(answer, then=then)

    def _needed(self, subject: Subject, changes: list[ClusterChange]) -> tuple[ClusterChange, ...]:
        """These changes, which help together, without those that are not needed."""
        needed = changes
        for change in changes:
            if isinstance(change, MakeGroup):
                continue  # no pod starts without, and the others may be about this very PodGroup
            without = [each for each in needed if each is not change]
            if without and self._are_allowed(without) and self._with(subject, without) is None:
                needed = without
        return tuple(needed)

    def _are_allowed(self, changes: list[ClusterChange]) -> bool:
        with TrialCluster(self._cluster) as trial:
            make_all(trial, changes)
            return all_allowed(trial)

    def _with(self, subject: Subject, changes: list[ClusterChange]) -> Why | None:
        """How the subject stands with these changes, when nothing changes any more; None if it has started by then."""
        stands: list[Why] = []
        with TrialCluster(self._cluster) as trial:
            make_all(trial, changes)
            found = course(
                self._cluster,
                self._policy,
                self._now,
                subject,
                self._world,
                short=True,
                otherwise=lambda: stands.append(self.stands(subject)),
            )
        if found.places or (found.admitted and not self._knows_pods(subject)):
            return None
        return stands[0]

    def _knows_pods(self, subject: Subject) -> bool:
        """Whether any pod of the subject is known. If none is, it is enough that its PodGroup is admitted."""
        return bool(who_waits(self._cluster, subject).tasks)

    # -- subjects that wait

    def _whole_gang(self, waits: WaitingPart) -> WaitingPart:
        """The whole gang of a pod whose gang has not started, since the pod waits for all of it; else the subject itself."""
        job = waits.job
        if job is None or job.group is None or job.is_ready or not self._policy.has_placer:
            return waits
        return waiter(job, job.tasks.values())

    def _waits(self, subject: Subject) -> Why:
        with TrialCluster(self._cluster) as trial:
            refused = pod_quota.headline(self._cluster, who_waits(self._cluster, subject))
            if refused is not None:
                pod_quota.withdraw_refused(trial)
            waits = who_waits(self._cluster, subject)
            if refused is not None and waits.job is None and not waits.tasks:
                return pods_not_made.without_any(str(subject), refused)
            with ExitStack() as over:
                return self._waits_with(subject, self._whole_gang(waits), refused, over)

    def _waits_with(self, subject: Subject, waits: WaitingPart, refused: Headline | None, over: ExitStack) -> Why:
        name, blocked, fits = str(subject), list[Blocked](), list[Fit]()

        def capture(seen: Look) -> None:
            blocked.append(Blocked(seen, refused))
            fits.append(bounded(seen, name))

        alone = self._look(waits, capture, over, alone=True)
        if refused is not None or not starts(alone, waits):
            room = room_being_made(self._cluster, self._policy, alone, waits)
            headline = room or blocked[0].headline
            answered = _room(name, room) if room is not None else _blocked(name, blocked[0])
            return replace(answered, never=_never(fits, headline))
        seen: list[Look] = []
        together = self._look(waits, seen.append, over, alone=False)
        if starts(together, waits):
            return _starts(name, together, waits)
        if (room := room_being_made(self._cluster, self._policy, together, waits)) is not None:
            return _room(name, room)
        outranked = job_rank.headline(seen[0], together)
        if outranked is not None:
            return Why(name, "waits", outranked, chain=(job_rank.link(outranked),))
        self._look(waits, capture, over, alone=False)
        return _blocked(name, blocked[-1])

    def _look(self, waits: WaitingPart, capture: Capture, over: ExitStack, *, alone: bool) -> Decisions:
        """Let `capture` see a rehearsed cycle, whose session is kept until `over` ends."""
        seen = Look(waits, capture)
        decisions = look(self._cluster, self._policy, self._now, seen, alone=alone, world=self._world)
        over.callback(seen.forget)
        return decisions

    # -- subjects that do not wait

    def _placed(self, subject: Subject) -> Why:
        tasks = _tasks(self._cluster, subject)
        answer = running(self._cluster, self._policy, self._now, self._world, str(subject), tasks)
        alive = sum(not task.status & status.FINISHED for task in tasks)
        missing = pods_not_made.missing(self._cluster, subject, alive) if answer.state == "runs" else ""
        return replace(answer, text=f"{missing}; the others run: {answer.text}") if missing else answer

    def _at_rest(self, subject: Subject) -> Why | None:
        """The answer if the owner of the subject wants no pods for now, and has none that have begun."""
        if any(not task.status & status.PENDING for task in _tasks(self._cluster, subject)):
            return None
        job = self._cluster.jobs.get(subject.key) if subject.kind == "podgroup" else None
        return resting(self._cluster, subject_of(job) if job is not None else subject)

    # -- queues and nodes

    def _queue(self, subject: Subject) -> Why:
        queue = self._cluster.queues[subject.key]
        waits = [job for job in queue.jobs.values() if job.pending or (job.is_pending and not job.tasks)]
        parts = tuple(self.about(subject_of(job)) for job in _oldest(waits))
        waiting = f"{part_of(len(waits), len(queue.jobs), 'job')} {plural(len(waits), 'waits', 'wait')}"
        text = f"queue {queue.name} is {queue.state or 'not there'}; {waiting}"
        return Why(str(subject), "serves" if queue.serving else "stands still", text=text, parts=parts)

    def _node(self, subject: Subject) -> Why:
        nodes = self._cluster.nodes
        row = nodes.rows[subject.key]
        dimensions = nodes.dimensions
        used = [
            f"{dimensions.format_amount(c, nodes.used[c, row])} of {dimensions.format_amount(c, nodes.allocatable[c, row])} {name}"
            for c, name in enumerate(dimensions.names)
            if nodes.allocatable[c, row] > 0
        ]
        taints = [f"{t.key}={t.value or ''}:{t.effect}" for t in nodes.wire[row].spec.taints or ()]
        facts = [f"pods on it: {len(nodes.tasks[row])}; in use: {', '.join(used) or 'nothing, as it has nothing to give'}"]
        facts += ["it is cordoned"] if nodes.cordoned[row] else []
        facts += [f"tainted {', '.join(taints)}"] if taints else []
        return Why(str(subject), "cordoned" if nodes.cordoned[row] else "serves", text="; ".join(facts))


MOST_JOBS = 10  #: how many waiting jobs of a queue are shown, the oldest first


def _oldest(jobs: list[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (job.created, job.uid))[:MOST_JOBS]


def _tasks(cluster: Cluster, subject: Subject) -> list[Task]:
    if subject.kind == "pod":
        return [cluster.tasks[subject.key]]
    job = cluster.jobs.get(subject.key)
    if job is not None:
        return list(job.tasks.values())
    return tasks_of_job(cluster, subject.key)


def room_being_made(cluster: Cluster, policy: Policy, decisions: Decisions, waits: WaitingPart) -> Headline | None:
    """The headline if the next cycle makes room for the subject, or for a part of it, or pods that are leaving free it; else None."""
    places = {place.task: place.node for place in decisions.pipelined if place.task in waits.members}
    profiles = policy.profiles.by_name if policy.profiles is not None else {}
    nominated = {task: node for task, node in decisions.nominations.items() if task.template.scheduler_name in profiles}
    places |= {task: node for task, node in nominated.items() if task in waits.members and node}
    if not places:
        return None
    nodes = set(places.values())
    table = cluster.nodes
    evicted = [eviction.task.key for eviction in decisions.evictions]
    leaving = [task.key for name in nodes for task in table.tasks[table.rows[name]].values() if task.status == status.RELEASING]
    names = tuple(f"pod/{key}" for key in dict.fromkeys([*evicted, *leaving]))
    if not names:
        return None
    when = f"{len(names)} pods have left" if len(names) > 1 else f"{names[0]} has left"
    by = ", whom the next cycle evicts for it" if evicted else ""
    on, count, left = ", ".join(sorted(nodes)[:3]), len(places), len(waits.tasks) - len(places)
    if left:
        part = f"{count} of its {len(waits.tasks)} pods"
        text = f"room is being made for {part} on {on}, and not yet for the other {left}: {count} can start when {when}{by}"
    else:
        text = f"room is being made for it on {on}: it starts when {when}{by}"
    return Headline(Because.RELEASING, text, remedy=(Gone(names),))


def _is_same(one: Headline, other: Headline) -> bool:
    """Whether as much of the same is short as before. Of a ResourceQuota others take something too, but no more than they lack."""
    return one.because is not Because.POD_QUOTA and (one.because, one.short) == (other.because, other.short)


def starts(decisions: Decisions, waits: WaitingPart) -> bool:
    """Whether any pod of the subject gets a node; for a PodGroup without pods, whether it is admitted."""
    if waits.tasks:
        return any(bind.task in waits.members for bind in decisions.binds)
    job = waits.job
    return job is not None and any(group.job is job and group.phase == INQUEUE for group in decisions.groups) and job.is_pending


def _blocked(name: str, blocked: Blocked) -> Why:
    headline = blocked.headline or Headline(Because.UNKNOWN, "nothing that Pumice knows of holds it back")
    return Why(name, "waits", headline, chain=blocked.links, nearest=blocked.nearest, like=blocked.like)


def _room(name: str, room: Headline) -> Why:
    return Why(name, "waits", room, chain=(ChainLink("is room being made?", True, room.text),))


def _starts(name: str, decisions: Decisions, waits: WaitingPart) -> Why:
    places = [bind.node for bind in decisions.binds if bind.task in waits.members]
    if not places:
        return Why(name, "starts", text="the next cycle admits it; its controller then creates its pods")
    nodes = ", ".join(dict.fromkeys(places[:8]))
    number = f"{len(places)} of its {len(waits.tasks)} pods start" if len(waits.tasks) > 1 else "it starts"
    if awaited := sum(map(is_promised, waits.tasks)):
        text = f"nothing holds it back: once its controller has created {counted(awaited, 'pod')}, {number} on {nodes}"
        return Why(name, "starts", text=text)
    return Why(name, "starts", text=f"nothing holds it back: {number} in the next cycle, on {nodes}")
