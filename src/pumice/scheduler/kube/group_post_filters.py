"""What is tried for a group that does not fit, by the plugins of its profile: device claims of no use are given back, pods are evicted.

The first plugin that makes room ends it, and so does one that says that nothing helps; otherwise the words of all plugins are put together.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from pumice.api.devices import ResourceClaimStatus
from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.scheduler.engine import Reason
from pumice.scheduler.framework.features import Release
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.find_node import NodeFinder
from pumice.scheduler.kube.group_attempt import GroupAttempt
from pumice.scheduler.kube.group_preemption import GroupPreemption, GroupVerdict
from pumice.scheduler.kube.group_results import Code, Results, Status
from pumice.scheduler.kube.groups import COMPOSITE, GroupEntity, Groups
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.planned_places import PlacementMemory
from pumice.scheduler.kube.preemption import Preemption
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube.devices.claims import claims_of, group_claims
from pumice.scheduler.plugins.kube.dynamic_resources import ELSEWHERE, NAME as DEVICES

POINT = "PodGroupPostFilter"
FREED = "deallocation and deletion of ResourceClaims completed"


class PostFilterAnswer(Struct):
    """`makes_room`: evictions make room for the group. `nominations`: by the uid of a member, the row where it will have room."""

    makes_room: bool = False
    text: str = ""
    error: str = ""
    nominations: dict[str, int] = field(default_factory=dict)


class GroupPostFilters:
    """The post filters for one group."""

    def __init__(
        self,
        session: Session,
        finder: NodeFinder,
        nominations: Nominator,
        preemption: Preemption,
        groups: Groups,
        memory: PlacementMemory,
        entity: GroupEntity,
        release: Release,
    ) -> None:
        self._session = session
        self._finder = finder
        self._nominations = nominations
        self._preemption = preemption
        self._groups = groups
        self._memory = memory
        self._entity = entity
        self._release = release

    def run(self, results: Results) -> PostFilterAnswer:
        observer, profile = self._session.observer, self._finder.profile.name
        observer.begins(Stage.POINT, POINT)
        answer, code = self._run(results)
        observer.ends(Stage.POINT, (POINT, code.value, profile))
        return answer

    def _run(self, results: Results) -> tuple[PostFilterAnswer, Code]:
        reasons: list[str] = []
        for name in self._finder.profile.group_post_filters:
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
        session, finder, entity = self._session, self._finder, self._entity

        def attempt() -> Results:
            return GroupAttempt(session, finder, self._nominations, self._groups, self._memory, entity).run()

        preemption = GroupPreemption(session, finder, self._nominations, self._preemption, entity, attempt)
        return preemption.run(never=self._never_preempts)

    @property
    def _never_preempts(self) -> bool:
        if self._release.has("PodGroupPreemptionPolicy"):
            return self._entity.root.wire.spec.preemption_policy == "Never"
        return any(task.template.never_preempts for task in self._entity.tasks)

    # -- device claims

    def _give_claims_back(self, results: Results) -> Status:
        root = self._entity.root
        if root.kind == COMPOSITE or (self._finder.profile.tries_placements and root.wire.spec.scheduling_constraints is not None):
            return Status(Code.UNSCHEDULABLE)
        tried = [member for member in results[root.uid].members if member.tried]
        if not any(member.asks_about(DEVICES) for member in tried):
            return Status(Code.ERROR, ["not found"])
        for member in tried:
            if member.fit_error is not None and ELSEWHERE.text in member.fit_error.counts and (fault := self._give_back(member.task)):
                return Status(Code.ERROR, [fault])
        return Status(Code.UNSCHEDULABLE, [FREED])

    def _give_back(self, task: Task) -> str:
        """Take devices away from a member's claims that keep it from other nodes, if nobody else uses them. Return what goes wrong."""
        cluster = self._session.cluster
        claims, shared = claims_of(cluster, task), group_claims(cluster, task)
        assert not isinstance(claims, Reason), "nodes were asked about its claims"
        for key in claims.waiting:
            if key in claims.shareable:  # it was decided for an earlier member, and kube-scheduler tries to take that back, too
                name = key.partition("/")[2]
                return f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "{name}": the object has been modified'
        of_group = {f"{task.namespace}/{name}" for name in shared.values()}
        group = cluster.of(NATIVE_POD_GROUP)[task.group].metadata.identity
        for key, claim in claims.allocated.items():
            users = {user.uid for user in claim.status.reserved_for or ()}
            in_use = bool(self._groups.scheduled(self._entity.root)) if key in of_group else False
            if users <= {group if key in of_group else task.uid} and not in_use:
                self._session.before.put("ResourceClaim", replace(claim, status=ResourceClaimStatus()))
                self._session.decisions.released_claims.append(key)
        return ""
