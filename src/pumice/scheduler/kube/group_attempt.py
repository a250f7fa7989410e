"""One try to place a group: which of its members would get which node, if the whole group gets what it needs.

Members are tried one after the other in the order in which they wait; each placed one is seen by those after it. A group fails as soon as
its minimum can no longer be met. Below a CompositePodGroup the same is done child by child. With placements, all of this is done in each
of them, and the best one is kept. Nothing is decided here: at the end everything is taken back, and the results say what was found.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.plan_equal_tasks import plan
from pumice.scheduler.framework.decisions import PlacementTries
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.extenders import AttemptFailed
from pumice.scheduler.kube.find_node import FitError, NodeFinder, NoNodes, compares_all
from pumice.scheduler.kube.group_placements import Placement, Placements, Places, Undetermined, asked_by, best, placements
from pumice.scheduler.kube.group_plans import PlacementMemory, places_in
from pumice.scheduler.kube.group_results import Code, GroupResult, MemberResult, Results, Status, placed, successful_leaves
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.pod_groups import LEAF, GroupEntity, Groups, NativeGroup
from pumice.scheduler.model import Mask, Task, Vector

FEWEST = 4  #: fewer equal members are tried one by one
GENERATE, SCORE = "PlacementGenerate", "PlacementScore"  #: extension points
NOWHERE = "no feasible placements found"

Try = Callable[[NativeGroup, Results], GroupResult]


class _PlacedInPart(Exception):
    """A tree succeeds in a placement, but not all of its members have a place there."""


class GroupAttempt:
    """A try to place a group entity, by the rules of one profile."""

    def __init__(
        self, session: Session, finder: NodeFinder, nominations: Nominator, groups: Groups, memory: PlacementMemory, entity: GroupEntity
    ) -> None:
        self._session = session
        self._finder = finder
        self._profile = finder.profile
        self._nominations = nominations
        self._groups = groups
        self._memory = memory
        self._entity = entity
        self._nested = self._profile.tries_placements
        self._observer = session.observer
        self._assumed = 0  #: how many members are placed for now

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
        self._assumed += 1
        self._statement.allocate(task, row)

    def _take_back(self, mark: int) -> None:
        self._statement.rollback(mark)
        self._assumed = mark

    # -- groups

    def _group(self, group: NativeGroup, results: Results) -> GroupResult:
        """Try a group. If it succeeds its members stay placed for those that are tried after them."""
        attempt: Try = self._leaf if group.kind == LEAF else self._composite
        result = self._in_best_placement(group, results, attempt) if self._nested else attempt(group, results)
        results[group.uid] = result
        return result

    def _leaf(self, group: NativeGroup, results: Results) -> GroupResult:
        members = self._entity.members.get(group.key, [])
        scheduled, mark = len(self._groups.scheduled(group)), self._assumed
        result = results[group.uid] = GroupResult(group, Status())
        if not self._begins(result, scheduled, len(members)):
            return result
        if len(rows := self._rows_for(members)) == len(members):
            self._take(result, members, rows)
            return self._settled(result, mark)

        def status_of(task: Task) -> Status:
            result.members.append(self._member(task))
            return result.members[-1].status

        self._try_each(result, map(status_of, members), scheduled, len(members), "failed to schedule other pod from a pod group")
        return self._settled(result, mark)

    def _composite(self, group: NativeGroup, results: Results) -> GroupResult:
        mark = self._assumed
        result = results[group.uid] = GroupResult(group, Status())
        if not self._begins(result, 0, len(group.children)):
            return result
        statuses = (self._group(child, results).status for child in group.children)
        self._try_each(result, statuses, 0, len(group.children), "composite pod group evaluation failed due to child error")
        return self._settled(result, mark)

    def _begins(self, result: GroupResult, scheduled: int, remaining: int) -> bool:
        goes_on, result.status = self._feasible(result.group, scheduled, remaining)
        if not goes_on and result.group.kind == LEAF:
            result.status = Status.group_unschedulable(result.status.text)
        return goes_on

    def _try_each(self, result: GroupResult, statuses: Iterator[Status], scheduled: int, remaining: int, failure: str) -> None:
        """Try one part of the group after the other, as long as the group can still be scheduled."""
        for status in statuses:
            if status.is_error:
                result.status = Status(Code.ERROR, [f"{failure}: {status.text}"])
                return
            remaining, scheduled = remaining - 1, scheduled + status.is_success
            goes_on, result.status = self._feasible(result.group, scheduled, remaining)
            if not goes_on:
                return

    def _settled(self, result: GroupResult, mark: int) -> GroupResult:
        if not result.status.is_success:
            self._take_back(mark)
        result.places_any = self._assumed > mark
        return result

    def _feasible(self, group: NativeGroup, scheduled: int, remaining: int) -> tuple[bool, Status]:
        """Whether to go on, and the status if nothing more is tried."""
        minimum = group.minimum
        if not self._profile.is_gang_checked or scheduled >= minimum:
            return True, Status()
        numbers = f"{scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < minimum:
            return False, Status(Code.UNSCHEDULABLE, [f"minCount ({minimum}) cannot be satisfied: {numbers}"])
        return True, Status.group_unschedulable(f"minCount ({minimum}) is not yet satisfied: {numbers}")

    # -- placements

    def _in_best_placement(self, group: NativeGroup, results: Results, attempt: Try) -> GroupResult:
        outer, running = self._finder.placement, self._groups.scheduled(group)
        options, fault = self._generated(group, self._session.nodes.alive if outer is None else outer, running)
        if fault is not None:
            return GroupResult(group, fault)
        self._observer.begins(Stage.PLACEMENTS, group)
        try:
            if len(options.all) == 1:
                return self._only(options, group, results, attempt)
            if group.kind == LEAF:
                planned = self._planned(options, len(running), group, results)
            else:
                planned = self._planned_tree(options, group, results, attempt) if outer is None and not running else None
            return planned or self._best_of(options, len(running), group, results, attempt)
        finally:
            self._finder.placement = outer

    def _generated(self, group: NativeGroup, among: Mask, running: Sequence[Task]) -> tuple[Placements, Status | None]:
        options, fault = Placements([]), None
        self._observer.begins(Stage.POINT, GENERATE)
        try:
            if self._profile.generates_placements:
                options = placements(group, self._session.nodes, among, running, self._memory.of_all_nodes)
            else:
                options = Placements([Placement("", among)])
            fault = None if options.all else Status(Code.UNSCHEDULABLE, [NOWHERE])
        except Undetermined as error:
            fault = Status(Code.ERROR, [str(error)])
        self._observer.ends(Stage.POINT, (GENERATE, (fault or Status()).code.value, self._profile.name))
        return options, fault

    def _evaluated(self, group: NativeGroup, options: Placements, feasible: int) -> None:
        """Note in how many placements the group fits. Those of CompositePodGroups are not counted."""
        if group.kind == LEAF:
            tries = PlacementTries(self._profile.name, feasible, len(options.all) - feasible)
            self._session.decisions.placement_tries.append(tries)
            self._observer.ends(Stage.PLACEMENTS, tries)

    def _scored(self, options: Placements, feasible: Sequence[int], counts: Vector, asked: Callable[[int], Vector]) -> int:
        if len(feasible) == 1:
            return feasible[0]
        self._observer.begins(Stage.POINT, SCORE)
        number = best(
            options, feasible, counts, asked, self._session.nodes, self._profile.placement_weights, self._profile.placement_resources
        )
        self._observer.ends(Stage.POINT, (SCORE, Code.SUCCESS.value, self._profile.name))
        return number

    def _only(self, options: Placements, group: NativeGroup, results: Results, attempt: Try) -> GroupResult:
        self._finder.placement = options.all[0].rows
        tree: Results = {}
        result = attempt(group, tree)
        self._evaluated(group, options, int(result.status.is_success))
        if result.status.is_error:
            return result  # as upstream, which forgets what it found out below
        results |= tree
        return result if result.status.is_success else _in_none(1, result)

    def _best_of(self, options: Placements, running: int, group: NativeGroup, results: Results, attempt: Try) -> GroupResult:
        mark = self._assumed
        first: Results = {}
        found: dict[int, tuple[Places, Results]] = {}  #: by number of the placement
        for number, option in enumerate(options.all):
            self._finder.placement = option.rows
            tree: Results = {}
            result = attempt(group, tree)
            if result.status.is_error:
                return result
            first = first or tree
            if result.status.is_success:
                found[number] = (placed(successful_leaves(group, tree)), tree)
            self._take_back(mark)
        self._evaluated(group, options, len(found))
        if not found:
            results |= first
            return _in_none(len(options.all), first[group.uid])
        places, tree = found[self._best(options, running, found)]
        for task, row in places:
            self._assume(task, row)
        results |= tree
        return tree[group.uid]

    def _best(self, options: Placements, running: int, found: Mapping[int, tuple[Places, Results]]) -> int:
        counts = np.zeros(len(options.all))
        for number, (places, _) in found.items():
            counts[number] = running + len(places)

        def asked(column: int) -> Vector:
            amounts = np.zeros(len(options.all))
            for number, (places, _) in found.items():
                amounts[number] = sum(asked_by(task.template, column) for task, _ in places)
            return amounts

        return self._scored(options, list(found), counts, asked)

    def _planned(self, options: Placements, running: int, group: NativeGroup, results: Results) -> GroupResult | None:
        """The same for equal members whose places can be planned. None if they cannot, or if not all members have a place in the best
        placement: then they must be tried one by one to find out why."""
        members = self._entity.members.get(group.key, [])
        evaluation = self._plannable(members)
        if evaluation is None:
            return None
        size = len(members)
        plan_in = lambda option: places_in(option, evaluation, size)  # noqa: E731
        places = self._memory.planned((evaluation, size), options, size, plan_in, members[0].template)
        feasible = np.flatnonzero(places.counts + running >= self._needed(group)).tolist()
        if not feasible:
            return None
        template = members[0].template
        amounts = lambda column: places.counts * asked_by(template, column)  # noqa: E731
        number = self._scored(options, feasible, places.counts + running, amounts)
        if places.counts[number] < len(members):
            return None
        self._evaluated(group, options, len(feasible))
        result = results[group.uid] = GroupResult(group, Status(), places_any=True)
        self._take(result, members, places.rows(number))
        return result

    def _planned_tree(self, options: Placements, group: NativeGroup, results: Results, attempt: Try) -> GroupResult | None:
        """The same for a tree of which all leaves have such members. Only whole trees are planned: all of them have a place, or none."""
        shape = self._shape(group)
        if shape is None:
            return None
        members = [task for leaf in group.leaves for task in self._entity.members[leaf.key]]
        try:
            plan_in = lambda option: self._tree_in(option, group, len(members), attempt)  # noqa: E731
            places = self._memory.planned(shape, options, len(members), plan_in)
        except _PlacedInPart:
            return None
        feasible = np.flatnonzero(places.counts).tolist()
        if not feasible:
            return None
        asked = lambda column: places.counts / len(members) * sum(asked_by(task.template, column) for task in members)  # noqa: E731
        number = self._scored(options, feasible, places.counts, asked)
        return self._take_tree(group, results, iter(places.rows(number)))

    def _shape(self, group: NativeGroup) -> Hashable:
        """What decides where a tree goes besides the nodes; None if its places cannot be planned."""
        if group.kind == LEAF:
            members = self._entity.members.get(group.key, [])
            evaluation = self._plannable(members)
            return evaluation and (evaluation, len(members), group.minimum, group.topology_key)
        children = tuple(map(self._shape, group.children))
        return None if None in children else (group.minimum, group.topology_key, children)

    def _tree_in(self, option: Placement, group: NativeGroup, size: int, attempt: Try) -> Sequence[int]:
        """The rows of all members in a placement; none if the tree does not fit there. Raises _PlacedInPart."""
        mark, tree = self._assumed, Results()
        self._finder.placement = option.rows
        result = attempt(group, tree)
        rows = [row for _, row in placed(successful_leaves(group, tree))]
        self._take_back(mark)
        if result.status.is_error or len(rows) not in (0, size):
            raise _PlacedInPart
        return rows

    def _take_tree(self, group: NativeGroup, results: Results, rows: Iterator[int]) -> GroupResult:
        result = results[group.uid] = GroupResult(group, Status(), places_any=True)
        if group.kind == LEAF:
            members = self._entity.members[group.key]
            self._take(result, members, list(islice(rows, len(members))))
        for child in group.children:
            self._take_tree(child, results, rows)
        return result

    def _take(self, result: GroupResult, members: Sequence[Task], rows: Sequence[int]) -> None:
        """Place all members as planned."""
        result.status = Status()
        for task, row in zip(members, rows, strict=True):
            self._assume(task, row)
            result.members.append(MemberResult(task, Status(), row))

    def _rows_for(self, members: Sequence[Task]) -> list[int]:
        """The planned rows of equal members among the nodes that are tried, as many as find one. Empty if there is nothing to plan."""
        evaluation = self._plannable(members) if len(members) >= FEWEST else None
        if evaluation is None:
            return []
        among = self._finder.placement
        candidates = evaluation.admitted if among is None else evaluation.admitted & among
        return list(islice(plan(evaluation, candidates, len(members)), len(members))) if candidates.any() else []

    def _needed(self, group: NativeGroup) -> int:
        return group.minimum if self._profile.is_gang_checked else 0

    def _plannable(self, members: Sequence[Task]) -> Evaluation | None:
        """The evaluation of members that are equal, and of which only what a node has decides; else None."""
        if not members or self._nominations or self._session.undecided or not self._finder.foreseeable:
            return None
        first = members[0]
        if any(task.template is not first.template or task.labels is not first.labels for task in members):
            return None
        evaluation = self._finder.evaluation(first)
        if evaluation.rejected is not None or not evaluation.steady or len(evaluation.failing) or not compares_all(evaluation):
            return None
        return evaluation

    # -- members

    def _member(self, task: Task) -> MemberResult:
        try:
            found = self._finder.find(task)
        except NoNodes as error:
            return MemberResult(task, Status(Code.UNRESOLVABLE, [str(error)]), loses_nomination=True)
        except AttemptFailed as error:
            return MemberResult(task, Status(Code.ERROR, [str(error)]), loses_nomination=True)
        if isinstance(found, FitError):
            return MemberResult(task, Status(Code.UNSCHEDULABLE, [found.text]), fit_error=found)
        self._assume(task, found)
        return MemberResult(task, Status(), found)


def _in_none(options: int, failed: GroupResult) -> GroupResult:
    """The result of a group that fits in none of its placements. `failed`: its result in the first of them."""
    why = f"0/{options} placements are available, first placement status: {failed.status.cited}"
    failed.status = Status.group_unschedulable(why)
    return failed
