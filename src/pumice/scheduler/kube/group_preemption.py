"""Workload-aware preemption: a group that does not fit takes the place of less important pods and groups, anywhere in the cluster.

All less important units leave in thought, and the group is tried once. If it fits, its places are fixed, and the units return one by one
as long as the members still fit in their places: first those that violate a budget, each from the most important. What cannot return is
evicted, and the members are nominated to their places.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.engine import View
from pumice.scheduler.framework.decisions import PreemptionTry
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.diagnosis import run_filters, sees_columns_only, speaking
from pumice.scheduler.kube.find_node import NodeFinder
from pumice.scheduler.kube.group_placements import Places
from pumice.scheduler.kube.group_results import Code, Results, Status
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pod_groups import GroupEntity
from pumice.scheduler.kube.preemption import Preemption
from pumice.scheduler.kube.preemption_dry_run import Trial
from pumice.scheduler.kube.preemption_units import POD, PreemptionUnit, Units, by_budget, by_importance
from pumice.scheduler.model import Task

PREFIX = "pod group preemption: "
NO_VICTIMS = "No preemption victims found for incoming preemptor"


class GroupVerdict(Struct):
    """The result of preemption for a group. With SUCCESS it waits for its victims; `places`: the members' places then."""

    status: Status
    places: list[tuple[Task, int]] = field(default_factory=list)


class GroupPreemption:
    """The preemption for one group. `attempt` tries the group on the state as it is now."""

    def __init__(
        self,
        session: Session,
        finder: NodeFinder,
        nominations: Nominator,
        preemption: Preemption,
        entity: GroupEntity,
        attempt: Callable[[], Results],
    ) -> None:
        self._session = session
        self._cluster = session.cluster
        self._finder = finder
        self._nominations = nominations
        self._preemption = preemption
        self._units: Units = preemption.units
        self._entity = entity
        self._attempt = attempt

    def run(self, *, never: bool) -> GroupVerdict:
        """Make room for the group. `never`: its preemption policy forbids that."""
        kind, tries, observer = self._entity.root.kind, self._session.decisions.preemption_tries, self._session.observer
        if never or self._goes_on():
            waits = _verdict(Code.SUCCESS, "ongoing preemption on nominated nodes")
            verdict = _verdict(Code.UNSCHEDULABLE, "not eligible due to preemptionPolicy=Never.") if never else waits
            tries.append(PreemptionTry(kind, verdict.status.code.value))
            return verdict
        observer.begins(Stage.EVALUATION, self._entity)
        verdict, lost = self._evaluate()
        victims = [task for unit in lost for task in unit.tasks]
        code, violations = verdict.status.code, sum(unit.violations for unit in lost)
        chosen = len(victims) if code is Code.SUCCESS else None
        tries.append(tried := PreemptionTry(kind, code.value, chosen, sum(unit.kind != POD for unit in lost), violations))
        observer.ends(Stage.EVALUATION, tried)
        if chosen is not None:
            observer.begins(Stage.EXECUTION, tried)
            self._preemption.evict(victims, self._entity.root.key)
            observer.ends(Stage.EXECUTION, tried)
        return verdict

    def _evaluate(self) -> tuple[GroupVerdict, list[PreemptionUnit]]:
        """Find the places of the group, and the units that must go, the most important first."""
        priority, table = self._entity.root.priority, self._session.nodes
        lower = self._units.of((task for row in table for task in table.tasks[row].values()), priority)
        if not lower:
            return _verdict(Code.UNRESOLVABLE, NO_VICTIMS), []
        with Trial(self._cluster) as trial:
            for unit in lower:
                for task in unit.tasks:
                    trial.remove(task)
            results = self._on_the_emptied()
            root = results[self._entity.root.uid].status
            if not root.is_success:
                return _verdict(Code.UNSCHEDULABLE, root.text), []
            places = [(member.task, member.row) for each in results.values() for member in each.members if member.row >= 0]
            order = by_importance(lower, self._session.now)
            lost = set(self._give_back(trial, by_budget(order, self._preemption.budgets), places))
        victims = sum(len(unit.tasks) for unit in lost)
        text = f"found a placement for podgroup, preempting {victims} victims"  # whatever its type
        return GroupVerdict(Status(Code.SUCCESS, [PREFIX + text]), places), [unit for unit in order if unit in lost]

    def _goes_on(self) -> bool:
        """Whether pods that are less important are leaving a node to which a member is nominated, because of a preemption."""
        table, priority = self._session.nodes, self._entity.root.priority
        rows = {table.rows.get(task.nominated, -1) for task in self._entity.tasks if task.nominated} - {-1}
        on_node = (task for row in rows for task in table.tasks[row].values())
        return any(task.deleting and task.disrupted and self._units.priority(task) < priority for task in on_node)

    def _on_the_emptied(self) -> Results:
        """The results of the group without the less important units. Devices are decided for its members as ever."""
        self._cluster.imagined = False
        try:
            return self._attempt()
        finally:
            self._cluster.imagined = True

    # -- giving back

    def _give_back(self, trial: Trial, units: list[PreemptionUnit], places: Places) -> list[PreemptionUnit]:
        """Let the units return that can, and return the others."""
        by_room = all(sees_columns_only(self._finder.evaluation(task)) for task, _ in places)
        fits = self._fits_by_room(places) if by_room else self._fits_by_rules(places)
        near = {row for _, row in places}
        lost = []
        for unit in units:
            if by_room and near.isdisjoint(unit.rows):
                continue  # it returns: no member has its place there
            mark = trial.mark()
            for task in unit.tasks:
                trial.put_back(task)
            if not fits(unit):
                trial.rollback(mark)
                lost.append(unit)
        return lost

    def _fits_by_rules(self, places: Places) -> Callable[[PreemptionUnit], bool]:
        def fits(unit: PreemptionUnit) -> bool:
            with Trial(self._cluster) as trial:
                for task, row in places:
                    if not self._admits(task, row):
                        return False
                    trial.place(task, row)
            return True

        return fits

    def _admits(self, task: Task, row: int) -> bool:
        """Whether filters admit a member to its place, with the pods nominated there and without them."""
        filters = speaking(self._finder.evaluation(task))
        with Trial(self._cluster) as trial:
            for other in self._nominations.held_against(task, row):
                trial.place(other, row)
            if trial.operations and run_filters(filters, self._view(row), np.ones(1, bool)).refused[0]:
                return False
        return not run_filters(filters, self._view(row), np.ones(1, bool)).refused[0]

    def _view(self, row: int) -> View:
        return View(self._cluster.nodes, np.array([row]))

    def _fits_by_room(self, places: Places) -> Callable[[PreemptionUnit], bool]:
        """The same where only what a node has decides: then a unit matters only to the members on its own nodes."""
        by_row: dict[int, list[Task]] = {}
        for task, row in places:
            by_row.setdefault(row, []).append(task)

        def fits(unit: PreemptionUnit) -> bool:
            return all(self._row_fits(row, by_row[row]) for row in unit.rows if row in by_row)

        return fits

    def _row_fits(self, row: int, tasks: list[Task]) -> bool:
        """Whether a row has room for its members, one after the other."""
        idle = self._cluster.nodes.row_idle(row)
        for task in tasks:
            free = idle.copy()
            for other in self._nominations.held_against(task, row):
                free[other.template.columns] -= other.template.amounts
            columns = task.template.columns
            if (free[columns] < task.template.amounts).any():
                return False
            idle[columns] -= task.template.amounts
        return True


def _verdict(code: Code, text: str) -> GroupVerdict:
    return GroupVerdict(Status(code, [PREFIX + text]))
