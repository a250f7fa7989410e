"""Which groups may be tried: those that are complete, whose members are free to be scheduled, and that have enough members (PreEnqueue).

One member that is held back holds back its whole group. A pod whose PodGroup, or a group above that, does not exist is *incomplete*.
"""

from collections.abc import Callable, Iterable, Mapping

from pumice.scheduler.framework.decisions import HeldBack
from pumice.scheduler.framework.pods_to_try import WaitingPods
from pumice.scheduler.framework.profiles import Profile
from pumice.scheduler.kube.pod_groups import LEAF, GroupEntity, Groups, NativeGroup
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube.catalogue import GANG
from pumice.scheduler.plugins.kube.dynamic_resources import NAME as DEVICES

INCOMPLETE = HeldBack("incomplete", "its PodGroup, or a group above that, does not exist")
OTHERS = HeldBack("unschedulable (group gated by another member)", "another member of its group is held back")

Held = dict[Task, HeldBack]


def by_gates(task: Task) -> HeldBack:
    return HeldBack("gated SchedulingGates", f"waiting for scheduling gates: [{' '.join(task.template.gates)}]")


class PreEnqueue:
    def __init__(self, groups: Groups, profiles: Mapping[str, Profile], waiting: WaitingPods, lacks_claims: Callable[[Task], str]) -> None:
        """`lacks_claims`: why a pod's device claims hold it back; empty if they do not."""
        self._groups = groups
        self._profiles = profiles
        self._waiting = waiting
        self._lacks_claims = lacks_claims

    def entities(self, members: Iterable[Task]) -> tuple[list[GroupEntity], Held, set[str]]:
        """The groups that may be tried, the pods that are held back, and the uids of all complete groups. `members`: all pending members,
        the oldest first."""
        held: Held = {}
        found: dict[str, GroupEntity] = {}
        for task in members:
            root = self._groups.root_of(task.group)
            if root is None:
                held[task] = INCOMPLETE
                continue
            entity = found.setdefault(root.uid, GroupEntity(root, {}))
            entity.members.setdefault(task.group, []).append(task)
        ready = [entity for entity in found.values() if not self._hold(entity, held)]
        for entity in ready:
            for tasks in entity.members.values():
                tasks.sort(key=self._turn)
        return ready, held, set(found)

    def _turn(self, task: Task) -> tuple[int, float, int, str]:
        """The sort key of a member in its group: those that were tried more often first, then by time, then by name."""
        tries, at = self._waiting.tries(task)
        return (-tries, at, 0, task.name) if tries else (0, task.created, task.number, "")

    def _hold(self, entity: GroupEntity, held: Held) -> bool:
        """Whether a member is held back. Then all are, each with its own reason if it has one."""
        short = {key: self._short(entity.root, key, tasks[0]) for key, tasks in entity.members.items()}
        own = {task: self._reason(task, short[task.group]) for task in entity.tasks}
        if not any(own.values()):
            return False
        held |= {task: reason or OTHERS for task, reason in own.items()}
        return True

    def _reason(self, task: Task, short: str) -> HeldBack | None:
        if task.gated:
            return by_gates(task)
        if lacking := self._lacks_claims(task):
            return HeldBack(f"gated {DEVICES}", lacking)
        return HeldBack(f"gated {GANG}", short) if short else None

    def _short(self, root: NativeGroup, leaf_key: str, task: Task) -> str:
        """Why a group has too few members to be tried; empty if it has enough."""
        if not self._profiles[task.template.scheduler_name].holds_gangs_back:
            return ""
        if root.kind != LEAF:
            return "" if self._is_ready(root) else f'waiting for composite pod group "{root.wire.metadata.name}" tree to meet quorum'
        return "" if self._is_ready(root) else "waiting for minCount pods from a gang to appear in scheduling queue"

    def _is_ready(self, group: NativeGroup) -> bool:
        if group.kind == LEAF:
            return self._groups.known(group, self._profiles) >= group.minimum
        return sum(map(self._is_ready, group.children)) >= group.minimum
