"""What is tried for a group that does not fit, by the plugins of its profile: device claims of no use are given back, pods are evicted.

The first plugin that makes room ends it, and so does one that says that nothing helps; otherwise the words of all plugins are put together.
"""

from collections.abc import Callable

from msgspec import Struct, field

from pumice.scheduler.engine import Reason
from pumice.scheduler.framework.feature_gates import Release
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.claims_given_back import FREED, ClaimsGivenBack, Conflict
from pumice.scheduler.kube.find_node import NodeFinder
from pumice.scheduler.kube.group_preemption import GroupPreemption, GroupVerdict
from pumice.scheduler.kube.group_results import Code, MemberResult, Results, Status
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pod_groups import COMPOSITE, GroupEntity, Groups
from pumice.scheduler.kube.preemption import Preemption
from pumice.scheduler.plugins.kube.devices.claims import claims_of
from pumice.scheduler.plugins.kube.dynamic_resources import ELSEWHERE, NAME as DEVICES

POINT = "PodGroupPostFilter"


class PostFilterAnswer(Struct):
    """`makes_room`: evictions make room for the group. `nominations`: by the uid of a member, the row where it will have room."""

    makes_room: bool = False
    text: str = ""
    error: str = ""
    nominations: dict[str, int] = field(default_factory=dict)


class GroupPostFilters(Struct):
    session: Session
    finder: NodeFinder
    nominations: Nominator
    preemption: Preemption
    groups: Groups
    entity: GroupEntity
    release: Release
    attempt: Callable[[], Results]  #: tries the group again

    def run(self, results: Results) -> PostFilterAnswer:
        observer, profile = self.session.observer, self.finder.profile.name
        observer.begins(Stage.POINT, POINT)
        answer, code = self._run(results)
        observer.ends(Stage.POINT, (POINT, code.value, profile))
        return answer

    def _run(self, results: Results) -> tuple[PostFilterAnswer, Code]:
        reasons: list[str] = []
        for name in self.finder.profile.group_post_filters:
            verdict = GroupVerdict(self._give_claims_back(results)) if name == DEVICES else self._preempt()
            status = verdict.status
            if status.is_success:
                return PostFilterAnswer(True, status.text, nominations={task.uid: row for task, row in verdict.places}), status.code
            if status.is_error:
                return PostFilterAnswer(error=f'error in "{name}" PodGroupPostFilter plugins: {status.text}'), status.code
            if status.code is Code.UNRESOLVABLE:
                return PostFilterAnswer(text=status.text), status.code
            reasons += status.reasons
        return PostFilterAnswer(text=", ".join(reasons)), Code.UNSCHEDULABLE

    def _preempt(self) -> GroupVerdict:
        preemption = GroupPreemption(self.session, self.finder, self.nominations, self.preemption, self.entity, self.attempt)
        return preemption.run(never=self._never_preempts)

    @property
    def _never_preempts(self) -> bool:
        if self.release.has("PodGroupPreemptionPolicy"):
            return self.entity.root.wire.spec.preemption_policy == "Never"
        return any(task.template.never_preempts for task in self.entity.tasks)

    # -- device claims

    def _give_claims_back(self, results: Results) -> Status:
        root = self.entity.root
        if root.kind == COMPOSITE or (self.finder.profile.tries_placements and root.wire.spec.scheduling_constraints is not None):
            return Status(Code.UNSCHEDULABLE)
        tried = [member for member in results[root.uid].members if member.tried and member.asks_about(DEVICES)]
        if not tried:
            return Status(Code.ERROR, ["not found"])
        back = ClaimsGivenBack(self.session, root)
        try:
            out_of_reach = [self._out_of_reach(member) for member in tried]
            freed = [back.of_member(member.task, keys) for member, keys in zip(tried, out_of_reach, strict=True)]
            if all(freed) or not self.session.cluster.shares_claims or self.groups.scheduled(root):
                return Status(Code.UNSCHEDULABLE, [FREED])
            return back.of_group(tried[0].task, [key for keys in out_of_reach for key in keys])
        except Conflict as error:
            return Status(Code.ERROR, [str(error)])

    def _out_of_reach(self, member: MemberResult) -> list[str]:
        """The claims of a member that kept it from a node. Of a placed one only those count that had their devices before."""
        claims = claims_of(self.session.cluster, member.task)
        assert not isinstance(claims, Reason), "nodes were asked about its claims"
        if member.fit_error is not None:
            return (
                [*claims.allocated, *sorted(claims.shareable & claims.waiting.keys())] if ELSEWHERE.text in member.fit_error.counts else []
            )
        nominated = self.session.nodes.rows.get(member.task.nominated, -1)
        if not claims.allocated or member.row == nominated:
            return []
        statuses = self.finder.statuses(member.task, self.finder.evaluation(member.task))
        return list(claims.allocated) if ELSEWHERE.text in statuses.counts else []
