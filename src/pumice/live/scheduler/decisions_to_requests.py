"""Turns a cycle's decisions into requests with exact bodies, and only where they differ from what the server has or was sent already.

It changes nothing but `sent_status`, the memory of what was sent, in which it notes each request. If a write fails its note is dropped,
and the next cycle makes it again. Each request is made by itself: a fault of ours in making it counts as a failure of that request, and the
others are sent.
"""

from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import Any, TypeVar

from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.annotations import ALLOCATED_HYPERNODE, HELD_PLACES
from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP, POD_GROUPS, QUEUES, ObjectRef
from pumice.api.kube_pod_groups import SCHEDULED
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.live.scheduler.group_status import AMOUNTS_S, known_status, new_at, next_status
from pumice.live.scheduler.node_shard import shard_requests
from pumice.live.scheduler.options import UNSHARDED, Sharding
from pumice.live.scheduler.prerequisites import object_ref, prerequisites
from pumice.live.scheduler.queue_status import queue_request, queue_totals
from pumice.live.scheduler.requests import (
    BindPod,
    EvictPod,
    FailedRequest,
    MarkPod,
    OpenGate,
    ReleaseClaim,
    Requests,
    WriteCondition,
    WriteStatus,
)
from pumice.live.scheduler.sent_status import LONGEST_PAUSE_S, GroupNote, Mark, Quiet, SentStatus, without_amounts
from pumice.scheduler.framework.decisions import (
    GATED,
    Bind,
    Conclusion,
    Decisions,
    Evict,
    GroupCondition,
    GroupStatus,
    JobOutcome,
    NativeGroupCondition,
    Waiting,
)
from pumice.scheduler.framework.job_classes import Member
from pumice.scheduler.framework.job_status import NOT_LET_IN
from pumice.scheduler.framework.past_evictions import past_eviction
from pumice.scheduler.framework.policy import SCHEDULE
from pumice.scheduler.model import INQUEUE, PENDING, UNKNOWN, Cluster, Job, Task, status

REST_S = 5.0  #: the least time between two looks at why jobs at rest wait
EACH_REST_S = 0.002  #: that time for each of these jobs, if there are many: a look takes a tenth of it
COMPLAINT = "Unschedulable"  #: the reason of events that say why a gang is not placed
T = TypeVar("T")
R = TypeVar("R", BindPod, EvictPod, MarkPod, WriteStatus, WriteCondition)


def requests_of(
    cluster: Cluster, decisions: Decisions, sent_status: SentStatus, now: float, transition: str, sharding: Sharding = UNSHARDED
) -> Requests:
    """All requests to the server after a cycle. `transition` identifies the cycle in PodGroup conditions."""
    events = _event_records(cluster, decisions, sent_status, now)  # first: of too many events about one PodGroup the last ones are not sent
    faults: list[FailedRequest] = []
    binds = _each(decisions.binds, lambda bind: _bind(bind, cluster, sent_status), _blamed_bind, faults)
    evictions = _each(decisions.evictions, lambda eviction: _evict(eviction, cluster, events, now), _blamed_eviction, faults)
    nominated = {task.uid: node for task, node in decisions.nominations.items()}
    left = _left_to_say(decisions, sent_status, now)
    due: dict[str, float] = {}
    marks = _each(left.waiting, lambda waiting: _mark(waiting, nominated, sent_status, events, now, due), _blamed_mark, faults)
    ours = [group for group in left.groups if not _is_others(group.job, cluster, sent_status)]
    groups = _each(ours, lambda group: _group(group, sent_status, events, now, transition, due), _blamed_group, faults)
    if left.conclusion is not None and not faults:
        _note_quiet(left.conclusion, sent_status, due, now + LONGEST_PAUSE_S)
    gates = [OpenGate(pod_ref(task)) for task in decisions.ungated.values() if not sent_status.pauses.holds("Gate", task.uid, now)]
    totals = queue_totals(cluster) if sharding.share is None and sent_status.queues_are_due(now) else {}
    queues = _each(totals, lambda name: queue_request(cluster, name, totals[name], sent_status, now, sharding.ring), _blamed_queue, faults)
    shards = shard_requests(cluster, sharding, sent_status, now)
    conditions = _each(decisions.native_groups.values(), lambda each: _condition(each, sent_status, now), _blamed_condition, faults)
    releases = [ReleaseClaim(object_ref(key), user) for key, user in decisions.released_claims.items()]
    return Requests(evictions, binds, gates, marks, [*groups, *queues, *shards], conditions, releases, events, faults)


def _each(items: Iterable[T], make: Callable[[T], R | None], blamed: Callable[[T], R], faults: list[FailedRequest]) -> list[R]:
    """The requests that `make` makes from the items. If it fails, the request from `blamed` goes into `faults`, with the error."""
    made = []
    for item in items:
        try:
            request = make(item)
        except Exception as error:
            faults.append(FailedRequest(blamed(item), error))
        else:
            if request is not None:
                made.append(request)
    return made


def _left_to_say(decisions: Decisions, sent_status: SentStatus, now: float) -> Decisions:
    """The decisions without jobs of which everything has been reported. While writes are being refused, every job is looked at."""
    if decisions.conclusion is None:
        return decisions
    ended = decisions.conclusion
    outcomes = _without_arriving(ended.all_outcomes if _are_due(ended, sent_status, now) else ended.outcomes, sent_status, now)
    if not sent_status.pauses:
        stirred = {task.job.uid for task in decisions.nominations if task.job is not None} | sent_status.others
        outcomes = _not_quiet(outcomes, stirred, sent_status, now)
    unsaid = Decisions()
    unsaid.tell(replace(ended.without_those_at_rest(), outcomes=outcomes))
    return unsaid


def _are_due(ended: Conclusion, sent_status: SentStatus, now: float) -> bool:
    """Whether it must be found out why jobs at rest wait: something about one of them was not reported or is to be repeated. That takes as
    long as a cycle that tries each job, so for repetition it is done now and then only."""
    pause = max(REST_S, EACH_REST_S * sum(map(len, ended.at_rest.groups)))
    repeats = now >= sent_status.rest_reported_at + pause
    for job in ended.at_rest.jobs:
        quiet = sent_status.quiet.get(job.uid)
        if sent_status.pauses or quiet is None or not _is_noted(quiet, job, sent_status) or (repeats and now >= quiet.until):
            sent_status.rest_reported_at = now
            return True
    return False


def _is_noted(quiet: Quiet, job: Job, sent_status: SentStatus) -> bool:
    """Whether everything that was reported of a job has been sent."""
    if quiet.group != job.written or quiet.note is not sent_status.groups.get(job.uid):
        return False
    return quiet.marks == sent_status.marks_of(job.tasks)


def _without_arriving(outcomes: list[JobOutcome], sent_status: SentStatus, now: float) -> list[JobOutcome]:
    """The outcomes of jobs. That a gang lacks pods is left out while these may be on their way."""
    left = []
    for outcome in outcomes:
        if outcome.phase != INQUEUE or not outcome.members[0].job.lacks_pods:
            left.append(outcome)
            continue
        by_arriving: dict[bool, list[Member]] = {True: [], False: []}
        for member in outcome.members:
            by_arriving[sent_status.is_arriving(member.job, now)].append(member)
        if by_arriving[False]:
            left.append(replace(outcome, members=by_arriving[False]))
        if by_arriving[True]:
            left.append(replace(outcome, members=by_arriving[True], condition=None, pods=[]))
    return left


def _not_quiet(outcomes: list[JobOutcome], stirred: set[str], sent_status: SentStatus, now: float) -> list[JobOutcome]:
    left = []
    for outcome in outcomes:
        reported = outcome.reported
        members = [
            m for m in outcome.members if m.uid in stirred or not _is_quiet(sent_status.quiet.get(m.uid), m, reported, sent_status, now)
        ]
        if members:
            left.append(replace(outcome, members=members))
    return left


def _is_quiet(quiet: Quiet | None, member: Member, reported: Hashable, sent_status: SentStatus, now: float) -> bool:
    return quiet is not None and now < quiet.until and quiet.reported == reported and _is_noted(quiet, member.job, sent_status)


def _note_quiet(ended: Conclusion, sent_status: SentStatus, due: dict[str, float], again_at: float) -> None:
    """Note the jobs of which everything has been reported. `due`: when there is more to report of a job though nothing has changed. At
    `again_at` it is found out again why pods wait, also those of a job that runs, which may be at rest."""
    for outcome in ended.outcomes:
        reported = outcome.reported
        for member in outcome.members:
            marks = sent_status.marks_of(task.uid for task in member.tasks)
            until = min(due.get(member.uid, inf), again_at if outcome.pods else inf)
            sent_status.quiet[member.uid] = Quiet(reported, member.job.written, sent_status.groups.get(member.uid), marks, until)


def _event_records(cluster: Cluster, decisions: Decisions, sent_status: SentStatus, now: float) -> list[EventRecord]:
    """The events that the cycle itself decided: those that are news and that the Unschedulable message of the PodGroup does not contain."""
    groups = decisions.of_those_looked_at().groups if decisions.events else ()
    complaints = {group.job.uid: _complaint(group.job, group.condition) for group in groups}
    events = []
    for event in decisions.events:
        silent = event.job.is_shadow or _is_others(event.job, cluster, sent_status)
        if event.reason == COMPLAINT and event.message:
            silent |= event.message in complaints.get(event.job.uid, "") or sent_status.holds(event.job.uid, COMPLAINT, event.message)
        if not silent and sent_status.is_new(event.job.uid, event.type + event.reason, event.message, now):
            events.append(EventRecord(about_group(event.job), event.type, event.reason, event.message))
    return events


def _is_others(job: Job, cluster: Cluster, sent_status: SentStatus) -> bool:
    """Whether none of a job's pods is ours to place. Its status is not ours then: two schedulers would overwrite each other for ever."""
    return job.uid in sent_status.others and not any(task.template.scheduler_name in cluster.schedulers for task in job.tasks.values())


def pod_ref(task: Task) -> ObjectRef:
    return ObjectRef(task.name, task.namespace, task.uid)


def about_pod(pod: ObjectRef) -> InvolvedObject:
    return InvolvedObject("Pod", pod.name, pod.namespace, pod.uid, "v1")


def about_group(job: Job) -> InvolvedObject:
    uid = (job.group.metadata.uid if job.group else None) or ""
    return InvolvedObject(POD_GROUPS.kind, job.name, job.namespace, uid, POD_GROUPS.api_version)


def _bind(bind: Bind, cluster: Cluster, sent_status: SentStatus) -> BindPod:
    made = _blamed_bind(bind)._replace(binder=bind.binder, needs=prerequisites(cluster, bind.task))
    sent_status.forget_pod(bind.task.uid)
    return made


def _blamed_bind(bind: Bind) -> BindPod:
    return BindPod(pod_ref(bind.task), bind.node, bind.annotations)


def _blamed_eviction(eviction: Evict) -> EvictPod:
    return EvictPod(pod_ref(eviction.task), "", eviction.task.template.scheduler_name)


def _evict(eviction: Evict, cluster: Cluster, events: list[EventRecord], now: float) -> EvictPod:
    task = eviction.task
    if eviction.action == SCHEDULE:
        return _preempted(eviction, cluster, events)
    because = past_eviction(eviction, cluster, now).cause
    why = f"Pod is evicted, because of {because}"
    events.append(EventRecord(about_pod(pod_ref(task)), "Warning", "Evict", why))
    if task.job is not None and task.job.has_stored_group:
        events.append(EventRecord(about_group(task.job), "Normal", "Evict", f"{task.name}: {because}"))
    expecting = tuple(job.uid for job in (task.job, cluster.jobs.get(eviction.beneficiary)) if job is not None and job.held_places)
    return EvictPod(pod_ref(task), why, task.template.scheduler_name, noted=expecting)


def _preempted(eviction: Evict, cluster: Cluster, events: list[EventRecord]) -> EvictPod:
    """An eviction by kube-scheduler's half, in its words."""
    task, whom = eviction.task, cluster.tasks.get(eviction.beneficiary)
    if whom is not None and not whom.group:  # members of groups preempt as a group, which may have the name of any pod
        kind, uid, node, scheduler = "pod", whom.uid, eviction.node, whom.template.scheduler_name
    else:
        group = cluster.of(NATIVE_POD_GROUP).get(eviction.beneficiary)
        kind = "compositepodgroup" if group is None else "podgroup"
        group = group or cluster.of(COMPOSITE_POD_GROUP).get(eviction.beneficiary)
        uid, node, scheduler = group.metadata.identity if group is not None else "", "cluster", task.template.scheduler_name
    events.append(EventRecord(about_pod(pod_ref(task)), "Normal", "Preempted", f"Preempted by {kind} {uid} on node {node}"))
    return EvictPod(pod_ref(task), "", scheduler, kind)


def _mark(
    waiting: Waiting, nominated: dict[str, str], sent_status: SentStatus, events: list[EventRecord], now: float, due: dict[str, float]
) -> MarkPod | None:
    task = waiting.task
    if task.gated or waiting.reason == GATED or sent_status.pauses.holds("Pod", task.uid, now):
        return None
    mark = Mark(waiting.reason, waiting.message, nominated.get(task.uid), now)
    at = _marked_at(sent_status.marks.get(task.uid), mark)
    if now < at:
        _note_due(due, task.job, at)
        return None
    sent_status.marks[task.uid] = mark
    events.append(EventRecord(about_pod(pod_ref(task)), "Warning", "FailedScheduling", mark.message))
    return _blamed_mark(waiting)._replace(nominated=mark.nominated)


def _blamed_mark(waiting: Waiting) -> MarkPod:
    return MarkPod(pod_ref(waiting.task), waiting.reason, waiting.message, None)


def _marked_at(known: Mark | None, mark: Mark) -> float:
    """When to write the condition: at once (-inf), never (inf), or later if only amounts that Volcano does not tell have changed."""
    if known is None or known.reason != mark.reason or mark.nominated not in (None, known.nominated):
        return -inf
    if known.message == mark.message:
        return inf
    theirs, ours = mark.message.partition(NOT_LET_IN)[::2]
    theirs_before, ours_before = known.message.partition(NOT_LET_IN)[::2]
    return known.at + AMOUNTS_S if theirs == theirs_before and without_amounts(ours) == without_amounts(ours_before) else -inf


def _note_due(due: dict[str, float], job: Job | None, at: float) -> None:
    if job is not None:
        due[job.uid] = min(due.get(job.uid, inf), at)


def _group(
    group: GroupStatus, sent_status: SentStatus, events: list[EventRecord], now: float, transition: str, due: dict[str, float]
) -> WriteStatus | None:
    """The status of a PodGroup to write, None if there is none. Adds its events, and to `due` when there will be more to report."""
    write = _status(group, sent_status, now, transition, due)
    events += _speech(group, sent_status, now, due, written=write is not None)
    return write


def _blamed_group(group: GroupStatus) -> WriteStatus:
    return WriteStatus(ObjectRef(group.job.name, group.job.namespace), POD_GROUPS, {}, {})


def _blamed_queue(name: str) -> WriteStatus:
    return WriteStatus(ObjectRef(name), QUEUES, {}, {})


def _status(group: GroupStatus, sent_status: SentStatus, now: float, transition: str, due: dict[str, float]) -> WriteStatus | None:
    wire = group.job.group
    if wire is None or group.job.is_shadow or sent_status.pauses.holds("PodGroup", group.job.uid, now):
        return None
    uid = wire.metadata.uid or ""
    note = sent_status.group(group.job.uid, uid)
    before = note.status if note is not None else known_status(wire)
    after = next_status(before, group, rfc3339(now), transition)
    moved = _annotations(group, note)
    at = max(new_at(before, after), _after_binds(group, before, sent_status, now))
    if not moved and now < at:
        _note_due(due, group.job, at)
        return None
    annotations = {**(note.annotations if note is not None else {}), **moved}  # this request may replace one that was not sent yet
    sent_status.groups[group.job.uid] = GroupNote(uid, after, annotations)
    return WriteStatus(ObjectRef(group.job.name, group.job.namespace, uid), POD_GROUPS, after, annotations)


def _after_binds(group: GroupStatus, before: dict[str, Any], sent_status: SentStatus, now: float) -> float:
    """When a status is to be written that stays Inqueue: not while binds are under way, since it becomes Running when they are answered."""
    stays = group.phase == INQUEUE == before.get("phase") and group.job.counts[status.BINDING] > 0
    return now + sent_status.period_s if stays else -inf


def _annotations(group: GroupStatus, note: GroupNote | None) -> dict[str, str | None]:
    """The annotations to write, with the value None to remove one; empty if the PodGroup has them as they should be."""
    annotations = (note.annotations if note is not None else {}) or dict(group.job.annotations)
    found: dict[str, str | None] = {}
    for name, text in ((ALLOCATED_HYPERNODE, group.hypernode), (HELD_PLACES, group.held_places)):
        known: Any = annotations.get(name, group.job.annotations.get(name)) or None
        if known != (text or None):
            found[name] = text or None
    return found


def _condition(outcome: NativeGroupCondition, sent_status: SentStatus, now: float) -> WriteCondition | None:
    """The condition to write; None if the group has it, or if the same was written and the watch has not shown it yet."""
    request = _blamed_condition(outcome)
    known = next((each for each in outcome.group.status.conditions or () if each.type == SCHEDULED), None)
    condition: dict[str, Any] = {
        "type": SCHEDULED,
        "status": "True" if outcome.is_scheduled else "False",
        "reason": outcome.reason,
        "message": outcome.message,
    }
    if outcome.group.metadata.generation:  # API servers count none of a PodGroup
        condition["observedGeneration"] = outcome.group.metadata.generation
    since = known.last_transition_time if known is not None and known.status == condition["status"] else None
    key, reported = str(request.group), (outcome.group.metadata.uid or "", *condition.values())
    is_known = known is not None and (known.status, known.reason, known.message or "") == (
        condition["status"],
        outcome.reason,
        outcome.message,
    )
    if sent_status.natives.get(key, reported if is_known else None) == reported:
        return None
    sent_status.natives[key] = reported
    return request._replace(condition=condition | {"lastTransitionTime": since or rfc3339(now)})


def _blamed_condition(group: NativeGroupCondition) -> WriteCondition:
    meta = group.group.metadata
    return WriteCondition(ObjectRef(meta.name, meta.namespace or "", meta.uid or ""), {})


def _speech(group: GroupStatus, sent_status: SentStatus, now: float, due: dict[str, float], *, written: bool) -> list[EventRecord]:
    """The events about a PodGroup: why its gang is not placed, whenever that is news; or, when its status is written, that it is ready."""
    job, condition = group.job, group.condition
    if not job.has_stored_group:
        return []
    if group.phase in (PENDING, INQUEUE, UNKNOWN):
        message = _complaint(job, condition)
        if not message:
            return []
        is_new = sent_status.is_new(job.uid, COMPLAINT, message, now)
        _note_due(due, job, sent_status.repeat_at(job.uid, COMPLAINT))
        if not is_new:
            return []
        return [EventRecord(about_group(job), "Warning", COMPLAINT, message)]
    return [EventRecord(about_group(job), "Normal", "Scheduled", "pod group is ready")] if written else []


def _complaint(job: Job, condition: GroupCondition | None) -> str:
    """Why a gang cannot be placed; empty if it only waits for its pods to be created or to start."""
    if condition is None or condition.type != "Unschedulable":
        return ""
    if not job.tasks:
        return f"0/0 tasks in gang unschedulable: pod group is not ready, {job.min_member} minAvailable{NOT_LET_IN}{condition.message}"
    return condition.message
