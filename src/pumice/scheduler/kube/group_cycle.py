"""The cycle of one group: it is checked, tried, helped by preemption if it does not fit, and then decided, member by member.

If the group succeeds, its placed members are bound, and the others wait; the group comes again at once, so that those may preempt. If it
fails nobody is bound. Each PodGroup of a tree gets a condition, which is not taken back once it says that the group was scheduled.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pumice.api.kube_pod_groups import NativePodGroup
from pumice.scheduler.framework.decisions import GroupTry, NativeGroupCondition
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.pods_to_try import GroupOutcome
from pumice.scheduler.framework.profiles import Profiles
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.find_node import NodeFinder
from pumice.scheduler.kube.group_attempt import GroupAttempt
from pumice.scheduler.kube.group_placements import Places
from pumice.scheduler.kube.group_plans import PlacementMemory
from pumice.scheduler.kube.group_post_filters import GroupPostFilters, PostFilterAnswer
from pumice.scheduler.kube.group_results import Code, GroupResult, MemberResult, Results, Status, completed
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pod_groups import GroupEntity, Groups
from pumice.scheduler.kube.preemption import Preemption
from pumice.scheduler.model import Task, status

FAILED, UNSCHEDULABLE, SCHEDULED = "SchedulerError", "Unschedulable", "Scheduled"
_RESULTS = {GroupOutcome.PLACED: "scheduled", GroupOutcome.REFUSED: "unschedulable", GroupOutcome.FAILED: "error"}
ANY = "PreemptLowerPriority"  #: the preemption policy of a pod or group that states none


class Acts(NamedTuple):
    """What the loop does for a group's members."""

    bind: Callable[[Task, int], None]
    tell: Callable[[Task, str, str], None]


class GroupCycle:
    def __init__(
        self,
        session: Session,
        profiles: Profiles,
        finders: Mapping[str, NodeFinder],
        nominations: Nominator,
        preemption: Preemption,
        groups: Groups,
        acts: Acts,
    ) -> None:
        self._session = session
        self._profiles = profiles
        self._finders = finders
        self._nominations = nominations
        self._preemption = preemption
        self._groups = groups
        self._acts = acts
        self._memory = PlacementMemory(session.cluster)

    def attempt(self, entity: GroupEntity) -> GroupEntity | None:
        """Try the group. Return what is left of it if it was placed in part: that is to be tried again at once."""
        if fault := self._fault(entity):
            self._refuse_all(entity, fault)
            return None
        profile, observer = entity.tasks[0].template.scheduler_name, self._session.observer
        finder, lifted = self._finders[profile], self._lift_nominations(entity)
        observer.begins(Stage.GROUP, entity)
        observer.begins(Stage.GROUP_ALGORITHM, entity)
        attempt = GroupAttempt(self._session, finder, self._nominations, self._groups, self._memory, entity).run
        results = attempt()
        root = results[entity.root.uid].status
        outcome = _outcome(root)
        completed(entity.root, results, entity.members)
        observer.ends(Stage.GROUP_ALGORITHM, entity)
        answer = PostFilterAnswer()
        if root.code is Code.UNSCHEDULABLE:
            release = self._profiles.release
            filters = GroupPostFilters(self._session, finder, self._nominations, self._preemption, self._groups, entity, release, attempt)
            _add(results, answer := filters.run(results))
        for task, row in lifted:
            self._nominations.add(task, row)
        for leaf in entity.root.leaves:
            self._decide(results[leaf.uid], answer)
        result = "waiting_on_preemption" if answer.makes_room else _RESULTS[_outcome(results[entity.root.uid].status)]
        self._session.decisions.group_tries.append(tried := GroupTry(profile, result))
        observer.ends(Stage.GROUP, tried)
        left = [task for task in entity.tasks if task.status == status.PENDING]
        self._session.scheduling_queue.group_tried(entity, outcome, left, self._session.now)
        return _rest(entity) if root.is_success and left else None

    def _lift_nominations(self, entity: GroupEntity) -> Places:
        """Take the nominations of the group's members away for the time of the attempt: they hold no room against one another, as upstream
        does not find the pods of a group in its queue while it tries the group."""
        lifted = [(task, row) for task in entity.tasks if (row := self._nominations.row_of(task)) >= 0]
        for task, _ in lifted:
            self._nominations.drop(task)
        return lifted

    # -- checks

    def _fault(self, entity: GroupEntity) -> str:
        """Why the group is not tried: its members do not agree with it, or with one another. Empty if they do."""
        pending = entity.tasks
        first, root = pending[0], entity.root
        own = self._profiles.release.has("PodGroupPreemptionPolicy")
        policy = (root.wire.spec.preemption_policy or ANY) if own else _policy(first)
        whose = " as the pod group's preemption policy" if own else ""
        for task in (*pending, *self._groups.scheduled(root)):
            names = task.template.scheduler_name, first.template.scheduler_name
            if names[0] != names[1]:
                return f'all pods in a single pod group should have the same .spec.schedulerName set, got: "{names[0]}" and "{names[1]}"'
            if task.pod_priority != root.priority:
                return (
                    "all pods in a single pod group should have the same priority as the pod group's priority, "
                    f"got {task.pod_priority} and {root.priority}"
                )
            if _policy(task) != policy:
                return f"all pods in a single pod group should have the same preemption policy{whose}, got {_policy(task)} and {policy}"
        return ""

    def _refuse_all(self, entity: GroupEntity, fault: str) -> None:
        for task in entity.tasks:
            self._preemption.nominate(task, -1)
            self._acts.tell(task, FAILED, fault)
        for leaf in entity.root.leaves:
            self._note(GroupResult(leaf, Status(Code.ERROR, [fault])))
        first = entity.tasks[0].template.scheduler_name
        self._session.decisions.group_tries.append(GroupTry(first, _RESULTS[GroupOutcome.FAILED]))
        self._session.scheduling_queue.group_tried(entity, GroupOutcome.FAILED, list(entity.tasks), self._session.now)

    # -- decisions

    def _decide(self, result: GroupResult, answer: PostFilterAnswer) -> None:
        """Decide what becomes of the members of a PodGroup."""
        for member in result.members:
            if result.status.is_error:
                self._fail(member.task, member.status if member.status.is_error else result.status)
            elif not member.status.is_success:
                self._wait(member, answer)
            elif result.status.is_success:
                self._acts.bind(member.task, member.row)
            else:
                self._drag_down(member, result.status, answer)
        self._note(result)

    def _fail(self, task: Task, why: Status) -> None:
        self._preemption.nominate(task, -1)
        self._acts.tell(task, FAILED, why.text)

    def _wait(self, member: MemberResult, answer: PostFilterAnswer) -> None:
        """The member found no node, or was not tried."""
        if member.task.uid in answer.nominations:
            self._preemption.nominate(member.task, answer.nominations[member.task.uid])
        elif member.loses_nomination:
            self._preemption.nominate(member.task, -1)
        self._acts.tell(member.task, UNSCHEDULABLE, member.status.text)

    def _drag_down(self, member: MemberResult, group: Status, answer: PostFilterAnswer) -> None:
        """The member would have had a node, but its group has failed."""
        if answer.makes_room:
            if member.task.uid in answer.nominations:
                self._preemption.nominate(member.task, answer.nominations[member.task.uid])
            self._acts.tell(member.task, UNSCHEDULABLE, group.text)
        else:
            self._preemption.nominate(member.task, -1)
            self._acts.tell(member.task, UNSCHEDULABLE, Status.group_unschedulable(group.text).text)

    def _note(self, result: GroupResult) -> None:
        """Note the condition of a PodGroup, unless the group was scheduled before."""
        wire, known = result.group.wire, result.group.condition
        assert isinstance(wire, NativePodGroup), "a leaf"
        done, statuses = result.status.is_success, self._session.decisions.native_groups
        was_done = (known is not None and known.status == "True") or (
            result.group.key in statuses and statuses[result.group.key].is_scheduled
        )
        if was_done and not done:
            return
        reason = SCHEDULED if done else FAILED if result.status.is_error else UNSCHEDULABLE
        statuses[result.group.key] = NativeGroupCondition(wire, done, reason, result.status.text)


def _rest(entity: GroupEntity) -> GroupEntity:
    """What is left of a group. Its members were tried equally often, and came back at the same time, so they come by name."""
    rest = {key: [task for task in tasks if task.status == status.PENDING] for key, tasks in entity.members.items()}
    return GroupEntity(entity.root, {key: sorted(tasks, key=lambda task: task.name) for key, tasks in rest.items() if tasks})


def _policy(task: Task) -> str:
    return task.template.spec.preemption_policy or ANY


def _outcome(root: Status) -> GroupOutcome:
    if root.is_success:
        return GroupOutcome.PLACED
    return GroupOutcome.FAILED if root.is_error else GroupOutcome.REFUSED


def _add(results: Results, answer: PostFilterAnswer) -> None:
    """Add the answer of the post filters to the status of each group. A status that two groups share gets it twice."""
    for result in results.values():
        if answer.error:
            result.status = Status(Code.ERROR, [answer.error])
        else:
            result.status.reasons.append(answer.text)  # even if it is empty
