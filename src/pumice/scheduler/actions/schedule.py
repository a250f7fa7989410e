"""schedule: kube-scheduler's loop. One pod at a time, the most important first: each is bound, nominated, or told why not.

It takes the pods whose schedulerName is a profile's and that no PodGroup claims. Beside Volcano's actions it serves plain pods over
the same nodes; alone it serves all pods of its profiles. What `SchedulingGates` holds back is not tried.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.scheduler.engine import Evaluation, Reason
from pumice.scheduler.engine.plan_equal_tasks import plan
from pumice.scheduler.framework.decisions import GATED, HeldBack, Waiting
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.policy import SCHEDULE, Action
from pumice.scheduler.framework.profiles import Profiles
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.deferred_resizes import GATE, PLUGIN, make_room
from pumice.scheduler.kube.extenders import AttemptFailed, Extender
from pumice.scheduler.kube.find_node import FitError, NodeFinder, compares_all
from pumice.scheduler.kube.node_sampling import NodeSampling
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pipelined_room import PipelinedRoom
from pumice.scheduler.kube.pod_groups import GroupEntity, Groups, holds_node
from pumice.scheduler.kube.pre_enqueue import PreEnqueue, by_gates
from pumice.scheduler.kube.preemption import Preemption
from pumice.scheduler.kube.preemption_units import Units
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube.devices.claims import IN_USE, claims_of
from pumice.scheduler.plugins.kube.dynamic_resources import NAME as DEVICES, wants_devices
from pumice.scheduler.plugins.kube.node_resources_fit import FitFilter

if TYPE_CHECKING:
    from pumice.scheduler.kube.group_cycle import GroupCycle

MIN_RUN = 4  #: shorter runs of equal pods are placed one by one
FAILED, UNSCHEDULABLE = "SchedulerError", "Unschedulable"
NO_CLAIMS, STILL = "no new claims to deallocate", "still not schedulable"
MEMORY = "schedule"  #: the action's key in the cluster's memory


class Schedule(Action):
    name = SCHEDULE
    reads_only_state = True  # as long as there is no pod to try

    def run(self, session: Session) -> None:
        profiles = session.policy.profiles
        assert profiles is not None, "a policy with the action schedule has profiles"
        loop = ScheduleLoop(session, profiles)
        session.observer.begins(Stage.ATTEMPTS, loop)
        for entity in loop.queue():
            for task in entity.tasks if isinstance(entity, GroupEntity) else (entity,):
                session.observer.attempt(task)
            loop.attempt(entity)
        session.observer.ends(Stage.ATTEMPTS, loop)


Entity = Task | GroupEntity  #: what is tried as a whole


def queue_key(entity: Entity) -> tuple[int, float, int]:
    """The sort key of PrioritySort: higher priority first, then earlier creation, then order of arrival. The age of a group is that of
    its first member."""
    if isinstance(entity, GroupEntity):
        created, number = min((task.created, task.number) for task in entity.tasks)
        return (-entity.root.priority, created, number)
    return (-entity.pod_priority, entity.created, entity.number)


class ScheduleLoop:
    """One cycle: every pending pod is tried once."""

    def __init__(self, session: Session, profiles: Profiles) -> None:
        self.session = session
        self.profiles = profiles
        self.nominations = Nominator(session.cluster)
        self.extenders = [Extender(spec, session) for spec in profiles.extenders]
        sampling = NodeSampling(session.cluster, session.memory(MEMORY))
        release = profiles.release
        self.groups = Groups(session.cluster, release) if release.places_groups else None
        self.preemption = Preemption(session, self.nominations, self.extenders, sampling, Units(self.groups))
        self.searches = {
            name: NodeFinder(session, profile, self.nominations, self.extenders, sampling) for name, profile in profiles.by_name.items()
        }
        self.waiting = session.scheduling_queue
        self._statement = session.statement()
        self._rest: list[Entity] = []  #: what comes after that which is being tried, the next one last
        self._plan: tuple[Evaluation, Iterator[int], int] | None = None

    def queue(self) -> Iterator[Entity]:
        """The pods and groups to try, in order: those that are due. Gated pods get the reason SchedulingGated instead."""
        ready, claimed = [], self.claimed()
        self.session.went_by_clock |= bool(claimed)  # which pods are due does not follow from the cluster alone
        members: list[Task] = []
        for task in sorted(claimed, key=queue_key):
            row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
            if self.groups is not None and task.group:
                members.append(task)
            if task.gated:
                self._hold(task, by_gates(task))
                continue
            if row >= 0 and not self.lacks_claims(task):
                self.nominations.add(task, row)
            if self.groups is None or not task.group:
                ready.append(task)
        if deferred := self._deferred():
            ready = sorted([*ready, *deferred], key=queue_key)
        rest: list[Entity] = [*self.waiting.due(ready, self.session.now)]
        if members:
            rest = sorted([*rest, *self._due_groups(members)], key=queue_key)
        self._rest = rest[::-1]
        while self._rest:
            yield self._rest.pop()

    def _deferred(self) -> list[Task]:
        """The running pods of the configured profiles whose resize in place has been put off."""
        if not self.profiles.release.has(GATE):
            return []
        tasks = (task for task in self.session.cluster.tasks.values() if task.resize_deferred and holds_node(task) and task.node >= 0)
        found = [task for task in tasks if task.template.scheduler_name in self.profiles.by_name]
        self.session.went_by_clock |= bool(found)
        return found

    def _due_groups(self, members: list[Task]) -> list[GroupEntity]:
        """The groups of these pending pods that are due. The pods of groups that are held back are told why."""
        assert self.groups is not None
        before = PreEnqueue(self.groups, self.profiles.by_name, self.waiting, self.lacks_claims)
        ready, held, present = before.entities(members)
        for task, held_back in held.items():
            if not task.gated:
                self._hold(task, held_back)
        return self.waiting.due_groups(ready, present, self.session.now)

    def claimed(self) -> list[Task]:
        """The pending pods of the configured profiles that no other action places. Without an action for gangs, PodGroups claim none."""
        cluster = self.session.cluster
        alone = not self.session.policy.has_placer
        grouped = (task for job in cluster.waiting.values() if alone or job.group is None for task in job.pending.values())
        return [task for task in (*cluster.without_job.values(), *grouped) if task.template.scheduler_name in self.profiles.by_name]

    def attempt(self, entity: Entity) -> None:
        """Try a pod or a group. What is left of a group that was placed in part is tried again at once."""
        if isinstance(entity, Task):
            self.attempt_pod(entity)
            return
        left: GroupEntity | None = entity
        while left is not None:
            mark = len(self.session.refused)
            left = self._group_cycle.attempt(left)
            if left is not None:
                del self.session.refused[mark:]

    @cached_property
    def _group_cycle(self) -> "GroupCycle":
        from pumice.scheduler.kube.group_cycle import Acts, GroupCycle  # few clusters have the gate of these groups

        assert self.groups is not None
        acts = Acts(self._bind, self._tell)
        return GroupCycle(self.session, self.profiles, self.searches, self.nominations, self.preemption, self.groups, acts)

    # -- one pod

    def attempt_pod(self, task: Task) -> None:
        """Bind the pod, make room for it, or record why neither is possible. Equal pods that follow may be planned together."""
        if task.node >= 0:
            self._resize(task)
            return
        if lacking := self.lacks_claims(task):
            self._tell(task, UNSCHEDULABLE, lacking)
            self.waiting.refused(task, frozenset([DEVICES]), self.session.now)
            return
        search = self.searches[task.template.scheduler_name]
        try:
            row = self._planned(search, task)
            found = search.find(task) if row is None else row
            if isinstance(found, FitError):
                self._make_room(task, search, found)
            else:
                self._bind(task, found)
        except AttemptFailed as error:
            self.preemption.nominate(task, -1)
            self._tell(task, FAILED if self.session.nodes.count else UNSCHEDULABLE, str(error))  # without nodes, for autoscalers
            self.waiting.failed(task, self.session.now)

    def _resize(self, task: Task) -> None:
        """Make room on the node of a pod that is to grow. It waits for its kubelet, or for its victims."""
        for rule in self.searches[task.template.scheduler_name].filters:
            if isinstance(rule, FitFilter):
                make_room(self.session, self.preemption, rule, task)
        self.waiting.refused(task, frozenset([PLUGIN]), self.session.now)

    def lacks_claims(self, task: Task) -> str:
        """Why the pod is not tried (PreEnqueue): a device claim of it is missing or not its own. Empty if all its claims are there."""
        if not task.claims or not any(rule.name == DEVICES for rule in self.searches[task.template.scheduler_name].filters):
            return ""
        claims = claims_of(self.session.cluster, task)
        return claims.text if isinstance(claims, Reason) and claims is not IN_USE else ""

    def _bind(self, task: Task, row: int) -> None:
        self.nominations.drop(task)
        if task.nominated != self.session.nodes.names[row]:
            self.waiting.nomination_ended(task)
        self.waiting.placed(task)
        with self._statement as statement:
            statement.allocate(task, row)
            statement.commit()
        binder = next((extender.spec for extender in self.extenders if extender.spec.bind_verb and extender.interested(task)), None)
        if binder is not None:
            self.session.decisions.binds[-1] = replace(self.session.decisions.binds[-1], binder=binder)

    # -- runs of equal pods

    def _planned(self, search: NodeFinder, task: Task) -> int | None:
        """The next row of a plan for equal pods; None if a row must be searched. A plan holds until anything else changes the cluster."""
        if self._plan is not None:
            evaluation, rows, position = self._plan
            log = self.session.cluster.log
            if evaluation.template is task.template and len(log) == position:
                row = next(rows, None)
                if row is not None:
                    self._plan = (evaluation, rows, position + 1)
                    return row
            self._plan = None
        return self._begin_plan(search, task)

    def _begin_plan(self, search: NodeFinder, task: Task) -> int | None:
        if not search.foreseeable or self.nominations or task.nominated or self.session.undecided:
            return None
        follower = self._rest[-1] if self._rest else None
        if not isinstance(follower, Task) or follower.template is not task.template:
            return None
        evaluation = search.evaluation(task)
        feasible = evaluation.admitted if evaluation.rejected is None else None
        if feasible is None or not feasible.any() or not evaluation.steady or not compares_all(evaluation):
            return None
        copies = self._run_length(task)
        if copies < MIN_RUN:
            return None
        rows = plan(evaluation, feasible, copies)
        row = next(rows)
        self._plan = (evaluation, rows, len(self.session.cluster.log) + 1)
        return row

    def _run_length(self, task: Task) -> int:
        length = 1
        for follower in reversed(self._rest):
            if (
                not isinstance(follower, Task)
                or follower.template is not task.template
                or follower.labels is not task.labels
                or follower.nominated
            ):
                break
            length += 1
        return length

    # -- when there is no node

    def _make_room(self, task: Task, search: NodeFinder, fit_error: FitError) -> None:
        """Run the PostFilter plugins, which may make room; the message has the answer of each. An old nomination is taken back if there are
        no such plugins, or if preemption clears it."""
        steps, is_old = search.profile.post_filters, self.profiles.release.minor < 37
        tail: list[str] = []
        keep = bool(steps)
        for step in steps:
            if step == DEVICES:
                if fit_error.is_rejected_before(DEVICES):
                    tail, keep = ["not found"], True
                    break
                has_claims = fit_error.rejected is None and wants_devices(self.session.cluster, task)
                tail += [STILL if has_claims else NO_CLAIMS] if is_old else []
            else:
                try:
                    verdict = self.preemption.consider(task, fit_error, search.profile.preemption)
                except AttemptFailed as error:
                    tail, keep = [f"preemption: {error}"], True
                    break
                if verdict.candidate is not None:
                    self.preemption.carry_out(task, verdict.candidate)
                    tail = [] if is_old else [f"preemption: {verdict.candidate.text(self.session.nodes)}"]
                    break
                tail.append(f"preemption: {verdict.text}")
                keep = not verdict.clear
        if not keep:
            self.preemption.nominate(task, -1)
        fleeting = {PipelinedRoom.name} if self.preemption.spares(task, fit_error) else ()
        self.waiting.refused(task, fit_error.by.union(fleeting), self.session.now)
        self._tell(task, UNSCHEDULABLE, " ".join(part for part in (fit_error.text, ", ".join(tail)) if part))

    def _hold(self, task: Task, held: HeldBack) -> None:
        self.session.decisions.held[task] = held
        self._tell(task, GATED, held.why)

    def _tell(self, task: Task, reason: str, message: str) -> None:
        self.session.refused.append(Waiting(task, reason, message))
