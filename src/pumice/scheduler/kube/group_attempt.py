"""One try to place a group: which of its members would get which node, if the whole group gets what it needs.

Members are tried one after the other in the order in which they wait; each placed one is seen by those after it. A group fails as soon as
its minimum can no longer be met. Below a CompositePodGroup the same is done child by child. With placements, all of this is done in each
of them, and the best one is kept. Nothing is decided here: at the end everything is taken back, and the results say what was found.
"""

from __future__ import annotations

from collections.abc import Callable

from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.extenders import AttemptFailed
from pumice.scheduler.kube.find_node import FitError, NodeFinder, NoNodes
from pumice.scheduler.kube.group_results import Code, GroupResult, MemberResult, Results, Status, placed, successful_leaves
from pumice.scheduler.kube.groups import LEAF, Group, GroupEntity, Groups
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.placements import Placement, Places, Undetermined, best, placements
from pumice.scheduler.model.task import Task

NOWHERE = "no feasible placements found"

Try = Callable[[Group, Results], GroupResult]


class GroupAttempt:
    """A try to place a group entity, by the rules of one profile."""

    def __init__(self, session: Session, finder: NodeFinder, nominations: Nominator, groups: Groups, entity: GroupEntity) -> None:
        self._session = session
        self._finder = finder
        self._profile = finder.profile
        self._nominations = nominations
        self._groups = groups
        self._entity = entity
        self._nested = self._profile.tries_placements
        self._assumed: list[tuple[Task, int]] = []  #: members that are placed for now, each with the row that it was nominated to

    def run(self) -> Results:
        """The results of the root, and of the groups below it that were tried."""
        results: Results = {}
        with self._session.statement() as self._statement:
            try:
                root = self._group(self._entity.root, results)
            finally:
                self._take_back(0)
        if root.status.is_success and not root.places_any:
            root.status = Status.group_unschedulable()
        return results

    # -- members, placed for now

    def _assume(self, task: Task, row: int) -> None:
        self._assumed.append((task, self._nominations.row_of(task)))
        self._nominations.drop(task)
        self._statement.allocate(task, row)

    def _take_back(self, mark: int) -> None:
        self._statement.rollback(mark)
        while len(self._assumed) > mark:
            task, row = self._assumed.pop()
            if row >= 0:
                self._nominations.add(task, row)

    # -- groups

    def _group(self, group: Group, results: Results) -> GroupResult:
        """Try a group. If it succeeds its members stay placed for those that are tried after them."""
        attempt: Try = self._leaf if group.kind == LEAF else self._composite
        result = self._in_best_placement(group, results, attempt) if self._nested else attempt(group, results)
        results[group.uid] = result
        return result

    def _leaf(self, group: Group, results: Results) -> GroupResult:
        members = self._entity.members.get(group.key, [])
        remaining, scheduled, mark = len(members), len(self._groups.scheduled(group)), len(self._assumed)
        result = results[group.uid] = GroupResult(group, Status())
        goes_on, result.status = self._feasible(group, scheduled, remaining)
        if not goes_on:
            result.status = Status.group_unschedulable(result.status.text)
            return result
        for task in members:
            found = self._member(task)
            result.members.append(found)
            if found.status.is_error:
                result.status = Status(Code.ERROR, [f"failed to schedule other pod from a pod group: {found.status.text}"])
                break
            remaining, scheduled = remaining - 1, scheduled + found.status.is_success
            goes_on, result.status = self._feasible(group, scheduled, remaining)
            if not goes_on:
                break
        return self._settled(result, mark)

    def _composite(self, group: Group, results: Results) -> GroupResult:
        remaining, scheduled, mark = len(group.children), 0, len(self._assumed)
        result = results[group.uid] = GroupResult(group, Status())
        goes_on, result.status = self._feasible(group, scheduled, remaining)
        if not goes_on:
            result.status = Status.group_unschedulable(result.status.text)
            return result
        for child in group.children:
            found = self._group(child, results)
            if found.status.is_error:
                result.status = Status(Code.ERROR, [f"composite pod group evaluation failed due to child error: {found.status.text}"])
                break
            remaining, scheduled = remaining - 1, scheduled + found.status.is_success
            goes_on, result.status = self._feasible(group, scheduled, remaining)
            if not goes_on:
                break
        return self._settled(result, mark)

    def _settled(self, result: GroupResult, mark: int) -> GroupResult:
        if not result.status.is_success:
            self._take_back(mark)
        result.places_any = len(self._assumed) > mark
        return result

    def _feasible(self, group: Group, scheduled: int, remaining: int) -> tuple[bool, Status]:
        """Whether to go on, and the status if nothing more is tried."""
        minimum = group.minimum
        if not self._profile.is_gang_checked or scheduled >= minimum:
            return True, Status()
        numbers = f"{scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < minimum:
            return False, Status(Code.UNSCHEDULABLE, [f"minCount ({minimum}) cannot be satisfied: {numbers}"])
        return True, Status.group_unschedulable(f"minCount ({minimum}) is not yet satisfied: {numbers}")

    # -- placements

    def _in_best_placement(self, group: Group, results: Results, attempt: Try) -> GroupResult:
        outer, table = self._finder.placement, self._session.nodes
        among, running = table.alive if outer is None else outer, self._groups.scheduled(group)
        try:
            options = placements(group, table, among, running) if self._profile.generates_placements else [Placement("", among)]
        except Undetermined as error:
            return GroupResult(group, Status(Code.ERROR, [str(error)]))
        if not options:
            return GroupResult(group, Status(Code.UNSCHEDULABLE, [NOWHERE]))
        try:
            return self._best_of(options, len(running), group, results, attempt)
        finally:
            self._finder.placement = outer

    def _best_of(self, options: list[Placement], running: int, group: Group, results: Results, attempt: Try) -> GroupResult:
        mark = len(self._assumed)
        first: Results = {}
        found: list[tuple[Placement, Places, Results]] = []
        for option in options:
            self._finder.placement = option.rows
            tree: Results = {}
            result = attempt(group, tree)
            if result.status.is_error:
                results |= tree
                return result
            first = first or tree
            if result.status.is_success:
                found.append((option, placed(successful_leaves(group, tree)), tree))
            if len(options) > 1:
                self._take_back(mark)
        if not found:
            failed = first[group.uid]
            why = f"0/{len(options)} placements are available, first placement status: {failed.status.cited}"
            failed.status = Status.group_unschedulable(why)
            results |= first
            return failed
        return self._chosen(found, running, group, results, mark)

    def _chosen(
        self, found: list[tuple[Placement, Places, Results]], running: int, group: Group, results: Results, mark: int
    ) -> GroupResult:
        number = 0
        if len(found) > 1:
            given = [(placement, places) for placement, places, _ in found]
            profile = self._profile
            number = best(given, running, self._session.nodes, profile.placement_weights, profile.placement_resources)
        _, places, tree = found[number]
        if len(self._assumed) == mark:
            for task, row in places:
                self._assume(task, row)
        results |= tree
        return tree[group.uid]

    # -- members

    def _member(self, task: Task) -> MemberResult:
        try:
            found = self._finder.find(task)
        except NoNodes as error:
            return MemberResult(task, Status(Code.UNRESOLVABLE, [str(error)]), loses_nomination=True)
        except AttemptFailed as error:
            return MemberResult(task, Status(Code.ERROR, [str(error)]), loses_nomination=True)
        if isinstance(found, FitError):
            return MemberResult(task, Status(Code.UNSCHEDULABLE, [found.text]), misfit=found)
        self._assume(task, found)
        return MemberResult(task, Status(), found)
