"""What an attempt to place a group has found: a status for each group of its tree, and a result for each member.

A child of a failed parent shares the parent's status, so what is added to the status later is added for both.
"""

from __future__ import annotations

from enum import Enum
from typing import Self

from msgspec import Struct, field

from pumice.scheduler.kube.find_node import FitError
from pumice.scheduler.kube.pod_groups import NativeGroup
from pumice.scheduler.model import Task

GROUP_UNSCHEDULABLE = "pod group is unschedulable"


class Code(Enum):
    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"  #: evictions might help
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    ERROR = "Error"


class Status(Struct):
    """A code with reasons. `cause`: what others cite in place of the reasons; empty if they cite the reasons."""

    code: Code = Code.SUCCESS
    reasons: list[str] = field(default_factory=list)
    cause: str = ""

    @classmethod
    def group_unschedulable(cls, *reasons: str) -> Self:
        return cls(Code.UNSCHEDULABLE, [GROUP_UNSCHEDULABLE, *reasons], GROUP_UNSCHEDULABLE)

    @property
    def text(self) -> str:
        return ", ".join(self.reasons)

    @property
    def cited(self) -> str:
        return self.cause or self.text

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_error(self) -> bool:
        return self.code is Code.ERROR

    def copy(self) -> Status:
        return Status(self.code, list(self.reasons), self.cause)


class MemberResult(Struct):
    """The result for one member. `row`: where it was placed, -1 for nowhere; `fit_error`: why no node fits, if that was found out."""

    task: Task
    status: Status
    row: int = -1
    fit_error: FitError | None = None
    tried: bool = True
    loses_nomination: bool = False

    def asks_about(self, plugin: str) -> bool:
        """Whether it came as far as this plugin's first question, which is about the pod alone."""
        if self.fit_error is not None:
            return not self.fit_error.is_rejected_before(plugin)
        return self.row >= 0


class GroupResult(Struct):
    """The result for one group of a tree. A CompositePodGroup has no members of its own."""

    group: NativeGroup
    status: Status
    members: list[MemberResult] = field(default_factory=list)
    places_any: bool = False  #: a member of it, or of a group below it, was placed


Results = dict[str, GroupResult]  #: by the uid of the group


def completed(root: NativeGroup, results: Results, members: dict[str, list[Task]]) -> None:
    """Fill in the results of groups and members that were not tried, and take back those of children whose parent has failed."""
    _handed_down(root, results, None)
    for leaf in root.leaves:
        result = results[leaf.uid]
        for task in members.get(leaf.key, [])[len(result.members) :]:
            result.members.append(MemberResult(task, result.status.copy(), tried=False))


def _handed_down(group: NativeGroup, results: Results, parent: GroupResult | None) -> None:
    result = results.get(group.uid)
    if result is None or (parent is not None and not parent.status.is_success and result.status.is_success):
        assert parent is not None, "the root was tried"
        result = results[group.uid] = GroupResult(group, parent.status)
    for child in group.children:
        _handed_down(child, results, result)


def successful_leaves(group: NativeGroup, results: Results) -> list[GroupResult]:
    """The results of the PodGroups of a tree that succeeded, as did all groups above them."""
    result = results.get(group.uid)
    if result is None or not result.status.is_success:
        return []
    below = [leaf for child in group.children for leaf in successful_leaves(child, results)]
    return [*below, result] if result.members else below


def placed(results: list[GroupResult]) -> list[tuple[Task, int]]:
    return [(member.task, member.row) for result in results for member in result.members if member.row >= 0]
