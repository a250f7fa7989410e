"""consolidate: room for a gang by moving pods that lose nothing but a restart.

A job that waits although there is idle room enough, only in pieces, gets room in one place: running pods are evicted, and each has a
place elsewhere. Plans are made by numbers (`eviction/room_by_moves.py`) and then tried with every filter and every queue, all pods of the
job and all that move. Nothing is evicted unless all of them have a place. The places are held until the pods are there (`comeback`).

After a search that found nothing there is none for `retryAfter`.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from math import inf

import numpy as np
from msgspec import field

from pumice.api.times import Duration
from pumice.scheduler.actions.comeback import hold, keep_places, placed
from pumice.scheduler.eviction.movable_pods import Movable, MoveRules, PastMoves
from pumice.scheduler.eviction.room_by_moves import Limit, MovePlan, Places, RoomByMoves
from pumice.scheduler.framework.held_places import MOVED, HeldPlace, held_places
from pumice.scheduler.framework.job_class_turns import Turns
from pumice.scheduler.framework.journal import Otherwise
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import EPSILON, HyperNode, Job, Mask, Task, Vector, status
from pumice.scheduler.placement.jobs_by_queue import by_queue
from pumice.scheduler.placement.pending_tasks import PendingParts, PendingTasks
from pumice.scheduler.placement.room_bound import missing

TRIES = 8  #: plans for one job, each without the places that filters have refused in those before
SHOWN = 5  #: pods that an event names
MOST_DOMAINS = 8  #: HyperNodes that are tried for a job with a network topology
MEMORY = "consolidate"  #: the action's key in the cluster's memory
PAST, AGAIN_AT = "past", "again at"

Within = dict[str, HyperNode]  #: where parts of a job are to be, by uid of the part; empty for anywhere


class ConsolidateArgs(MoveRules, kw_only=True):
    minimum_priority: int | None = field(name="minimumPriority", default=None)  #: of the jobs for which room is made
    minimum_wait: Duration = field(name="minimumWait", default=Duration(0))  #: how long they must have waited
    hold_for: Duration = field(name="holdFor", default=Duration(600))  #: for how long places are held
    retry_after: Duration = field(name="retryAfter", default=Duration(10))


class Consolidate(Action):
    name = "consolidate"
    reads_only_state = True
    Args = ConsolidateArgs

    def run(self, session: Session) -> None:
        if not session.cluster.waiting or session.now < session.memory(MEMORY).get(AGAIN_AT, -inf):
            return
        waiting = by_queue(alike for alike in session.waiting() if self._may_get_room(session, alike.first))
        makers = MakingRoom(session, self.args)
        for queue in session.orders.in_queue_order(session.cluster.queues[name] for name in waiting):
            turns = Turns(session, waiting[queue.name], session.orders.job_key)
            while (job := turns.pop()) and not session.overused(queue):
                makers.serve(job)
        if makers.in_vain:
            session.memory(MEMORY)[AGAIN_AT] = session.now + self.args.retry_after

    def next_turn(self, session: Session) -> float:
        """When a search in vain may be repeated, or when the next job has waited long enough; inf if there is no such time."""
        waiting, wait_s = session.cluster.waiting, self.args.minimum_wait
        times = [session.memory(MEMORY).get(AGAIN_AT, inf)] if waiting else []
        times += [job.created + wait_s for job in waiting.values()] if wait_s else []
        return min((time for time in times if time > session.now), default=inf)

    def _may_get_room(self, session: Session, job: Job) -> bool:
        args: ConsolidateArgs = self.args
        if job.is_pending or session.job_valid(job) is not None or session.job_ready(job) or session.job_pipelined(job):
            return False
        if args.minimum_priority is not None and job.priority < args.minimum_priority:
            return False
        return session.now >= job.created + args.minimum_wait and session.job_starving(job)


class MakingRoom:
    def __init__(self, session: Session, args: ConsolidateArgs) -> None:
        self.session = session
        self.args = args
        self.moved = 0
        self.in_vain = False  #: whether a search has found nothing

    def serve(self, job: Job) -> None:
        """Make room for a job, if moves can make it. One for which evictions have failed may have another plan, but not at once."""
        made = (place.until - self.args.hold_for for place in held_places(job))
        if self.session.now < max(made, default=-inf) + self.args.retry_after:
            self.in_vain = True
        elif (found := self.plan(job)) is not None:
            self._carry_out(job, *found)
            self._note([task for task, _ in found[0].moves])

    def plan(self, job: Job) -> tuple[MovePlan, Within] | None:
        """A plan that stands, and the HyperNodes in which the job gets its room; None if none is found."""
        session, wanted = self.session, self._wanted(job)
        if not wanted or not self._has_room_in_pieces(wanted):
            return None
        session.went_by_clock = True
        movable = Movable(session, self.args, self._past, job)
        most = movable.most(self.moved)
        for within in self._domains(job, wanted) if most > 0 else ():
            plan = Proof(session, movable, job, wanted, within).plan(most)
            if plan is not None:
                return plan, within
        self.in_vain = True
        return None

    def _wanted(self, job: Job) -> list[Task]:
        """The pods without which the job cannot start; of a job in parts all pods of those parts."""
        if not job.has_one_part:
            parts, found, least = PendingParts(self.session, job), list[Task](), missing(self.session, job)
            while parts and (parts.has_needed or len(found) < least):
                found += parts.pop()[1].tasks
            return [task for task in found if not task.gated]
        tasks = PendingTasks.of(self.session, job, (task for task in job.pending.values() if not task.gated)).tasks[::-1]
        lacking = Counter(job.role_minimum)
        lacking.subtract(job.allocated_by_role)
        first = [task for task in tasks if lacking[task.role] > 0 and not lacking.subtract([task.role])]
        rest = [task for task in tasks if task not in first]
        return (first + rest)[: max(len(first), missing(self.session, job))]

    def _has_room_in_pieces(self, wanted: list[Task]) -> bool:
        idle = np.maximum(self.session.nodes.future_idle, 0.0).sum(axis=1)
        need = np.sum([task.template.request for task in wanted], axis=0)
        return bool((need < idle + EPSILON).all())

    def _domains(self, job: Job, wanted: list[Task]) -> Iterator[Within]:
        topology = self.session.topology
        if topology.is_plain(job):
            yield {}
            return
        groups = self.session.gradients(job, topology.tree.root, Purpose.EVICT) if topology.tree.ready else []
        for domain in [domain for group in groups for domain in group][:MOST_DOMAINS]:
            if within := self._of_parts(job, wanted, domain):
                yield within

    def _of_parts(self, job: Job, wanted: list[Task], outer: HyperNode) -> Within:
        """For each part of a job the HyperNode within this one that has most room for it, when the parts before have theirs; empty if one
        may be in none."""
        idle, taken = np.maximum(self.session.nodes.future_idle, 0.0), list[tuple[HyperNode, Vector]]()
        by_part: dict[str, Vector] = {}
        for task in wanted:
            uid = job.subjobs.of(task).uid
            by_part[uid] = by_part.get(uid, 0.0) + task.template.request

        def room(domain: HyperNode, need: Vector) -> float:
            of_others = [other for inner, other in taken if domain.contains(inner) or inner.contains(domain)]
            left = idle[:, domain.rows].sum(axis=1) - sum(of_others, np.zeros_like(need))
            return float((left[need > 0] / need[need > 0]).min())

        found: Within = {}
        for part in job.subjobs:
            need = by_part.get(part.uid)
            if need is None:
                continue
            inner = [domain for group in self.session.sub_gradients(job, part, outer, Purpose.EVICT) for domain in group]
            if not inner:
                return {}
            found[part.uid] = max(inner, key=lambda domain: room(domain, need))
            taken.append((found[part.uid], need))
        return found

    # -- carrying out

    def _carry_out(self, job: Job, plan: MovePlan, within: Within) -> None:
        session, names = self.session, self.session.nodes.names
        until, dimensions = session.now + self.args.hold_for, session.cluster.dimensions
        coming = Counter(task.role for task, _ in plan.places)
        good = {task.node_name for task in job.tasks.values() if task.status == status.PIPELINED}
        held = {job: [place for place in held_places(job) if place.node in good]}
        vacant: list[tuple[Job, HeldPlace]] = []  #: places of pods that move
        for task, row in (*plan.places, *plan.moves):
            its_job = task.job
            assert its_job is not None
            whole = placed(its_job, task.role) + (coming[task.role] if its_job is job else 0)
            place = HeldPlace.of(task, names[row], until, whole, dimensions)
            held.setdefault(its_job, held_places(its_job)).append(place)
            if its_job is not job:
                vacant.append((its_job, place))
        with session.statement() as statement:
            for task, _ in plan.moves:
                statement.evict(task, Consolidate.name, job.uid)
            for task, row in plan.places:
                statement.pipeline(task, row, evicted=True)
            if within:
                session.before.set(job, nominated_hypernodes={uid: domain.name for uid, domain in within.items()})
            statement.commit()
        moved = ", ".join(sorted(task.key for task, _ in plan.moves)[:SHOWN])
        session.event(job, "Normal", "Consolidate", f"pods that move to make room: {len(plan.moves)}, such as {moved}")
        for task, row in plan.moves:
            assert task.job is not None
            session.event(task.job, "Normal", MOVED, f"{task.name} makes room for {job.uid}, and has a place on node {names[row]}")
        for its_job, places in held.items():
            keep_places(session, its_job, places)
        for its_job, place in vacant:
            hold(session, its_job, place)
        self.moved += len(plan.moves)

    @property
    def _past(self) -> PastMoves:
        past: PastMoves = self.session.memory(MEMORY).get(PAST, PastMoves())
        return past

    def _note(self, moved: list[Task]) -> None:
        memory, past = self.session.memory(MEMORY), self._past
        self.session.before.note(Otherwise(lambda: memory.update({PAST: past})))
        memory[PAST] = past.noting(self.session.now, moved, self.args)


class Proof:
    """Plans for one job in certain domains, tried with every rule until one stands."""

    def __init__(self, session: Session, movable: Movable, job: Job, wanted: list[Task], within: Within) -> None:
        self.session = session
        self.movable = movable
        self.job = job
        self.wanted = wanted
        self._domains = within
        self._rules = SessionPlaceRules(session, self._within)

    def plan(self, most: int) -> MovePlan | None:
        """A plan in which every pod has a place; None if none is found, or if the job needs no moves."""
        for _ in range(TRIES):
            plan = RoomByMoves(self.session.nodes, self.wanted, self.movable, self._rules, most).plan()
            if plan is None:
                return None
            with self.session.statement() as statement:
                for task, _ in plan.moves:
                    statement.displace(task)
                stands = self._rules.all_wait(plan.places, statement) and self.session.job_pipelined(self.job)
                if stands and self._rules.all_wait(plan.moves, statement):
                    return plan if plan.moves else None
        return None

    def _within(self, task: Task) -> HyperNode | None:
        """The HyperNode in which a pod must stay or get its place; None if that may be anywhere."""
        if task.job is self.job:
            return self._domains.get(self.job.subjobs.of(task).uid)
        return own_domain(self.session, task)


def own_domain(session: Session, task: Task) -> HyperNode | None:
    """The HyperNode that a running pod must not leave; None if there is none."""
    job = task.job
    return session.topology.occupied(job) if job is not None and job.asks_for_topology else None


class SessionPlaceRules:
    """Where pods may be, by all rules of the session. What is refused when it is tried is not proposed again: a node; or, if pods of the
    same kind go there in the same plan, as many of them on this node, or on the nodes over which they are to be spread."""

    def __init__(self, session: Session, within: Callable[[Task], HyperNode | None], among: Mask | None = None) -> None:
        """`within`: the HyperNode to which a pod is bound; `among`: the rows that count, if not all."""
        self._session = session
        self._within = within
        self._among = session.nodes.alive if among is None else among
        self._masks: dict[Hashable, Mask] = {}  #: by kind of task: the rows where it may be
        self._distances: dict[int, Vector] = {}  #: by row
        self._limits: dict[Hashable, list[Limit]] = {}  #: by kind of task

    def allowed(self, task: Task) -> Mask:
        """The rows where no rule refuses a pod for good, as far as is known."""
        kind = self._kind(task)
        mask = self._masks.get(kind)
        if mask is None:
            evaluation, within = self._session.evaluation(task), self._within(task)
            mask = evaluation.resolvable & self._among if evaluation.rejected is None else np.zeros_like(self._among)
            self._masks[kind] = mask = mask & within.rows if within is not None else mask
        return mask

    def limits(self, task: Task) -> list[Limit]:
        return self._limits.get(self._kind(task), [])

    def distances(self, task: Task) -> Vector:
        """How many levels of HyperNodes one must go up from the pod's node to reach each row."""
        tree = self._session.topology.tree
        if task.node not in self._distances:
            found = np.zeros(len(self._among))
            if len(tree.all) > 1:
                home = tree.all[tree.homes[task.node]]
                for level, domain in reversed([*enumerate(home.upward())]):
                    found[domain.rows] = level
            self._distances[task.node] = found
        return self._distances[task.node]

    def all_wait(self, places: Places, statement: Statement) -> bool:
        """Pipeline pods on these rows, in an order in which every rule allows it. Return whether there is one."""
        left = places
        while left:
            refused = [(task, row) for task, row in left if not self._waits(task, row, statement)]
            if len(refused) == len(left):
                self._learn(*refused[0], places, left)
                return False
            left = refused
        return True

    def _kind(self, task: Task) -> Hashable:
        within = self._within(task)
        return self._session.task_kind(task), within.name if within is not None else ""

    def _waits(self, task: Task, row: int, statement: Statement) -> bool:
        if not self._may_be_tried(task):
            return False
        evaluation = self._session.evaluation(task)
        if evaluation.rejected is None and evaluation.admitted[row] and evaluation.fits_future[row]:
            statement.pipeline(task, row, evicted=True)
            return True
        return False

    def _may_be_tried(self, task: Task) -> bool:
        assert task.job is not None and task.job.queue is not None
        return self._session.allows(task.job.queue, task) and self._session.pre_predicate(task) is None

    def _learn(self, task: Task, row: int, places: Places, left: Places) -> None:
        """Note what is not to be proposed again, after a pod was refused. `left`: those that were refused with it."""
        kind, nodes = self._kind(task), self._session.nodes
        if not self._may_be_tried(task):
            self._masks[kind] = np.zeros_like(self._masks[kind])
            return
        rows = [where for other, where in places if self._kind(other) == kind]
        waiting = [where for other, where in left if self._kind(other) == kind]
        admitted = self._session.evaluation(task).admitted
        for each in task.template.spec.topology_spread_constraints or ():
            codes = nodes.codes(each.topology_key)[0]
            among = codes == codes[row]
            if each.when_unsatisfiable == "DoNotSchedule" and not admitted[among].any():
                self._limits.setdefault(kind, []).append(Limit(among, int(among[rows].sum()) - 1))
                return
        if most := rows.count(row) - waiting.count(row):
            self._limits.setdefault(kind, []).append(Limit(np.arange(len(admitted)) == row, most))
        else:
            self._masks[kind] = self._masks[kind].copy()
            self._masks[kind][row] = False
