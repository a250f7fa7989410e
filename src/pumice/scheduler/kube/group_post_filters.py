"""What is tried for a group that does not fit: to give back device claims that are of no use, and to evict less important pods."""

from __future__ import annotations

from msgspec import Struct, field

from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.find_node import NodeFinder
from pumice.scheduler.kube.group_attempt import GroupAttempt
from pumice.scheduler.kube.group_results import Results
from pumice.scheduler.kube.groups import GroupEntity, Groups
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.preemption import Preemption


class PostFilterAnswer(Struct):
    """`makes_room`: evictions make room for the group. `nominations`: by the uid of a member, the row where it will have room."""

    makes_room: bool = False
    text: str = ""
    error: str = ""
    nominations: dict[str, int] = field(default_factory=dict)


class GroupPostFilters:
    def __init__(
        self,
        session: Session,
        finder: NodeFinder,
        nominations: Nominator,
        preemption: Preemption,
        groups: Groups,
        entity: GroupEntity,
    ) -> None:
        self._session = session
        self._finder = finder
        self._nominations = nominations
        self._preemption = preemption
        self._groups = groups
        self._entity = entity

    def run(self, results: Results, attempt: GroupAttempt) -> PostFilterAnswer:
        return PostFilterAnswer()
