"""comeback: pods that were moved come back, and so do those for which they gave way, to the places that are held for them.

The action consolidate notes where each moved pod, and each pod that waits for its room, has its place. Until a pod of that job and role
is there, a placeholder holds the place in every cycle: in the sums of the node, of the job and of its queue. Then the job is served before
all others, and takes the held place or a better one. A place that nobody takes is given back after `holdFor`; so are all places when the
scheduler starts anew, as it keeps them in memory. The action is not named in configurations: it runs first where consolidate is configured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from math import inf

from msgspec import Struct

from pumice.scheduler.actions.allocate import Allocate
from pumice.scheduler.framework.alike import apart
from pumice.scheduler.framework.journal import Otherwise
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.job import INQUEUE, Job
from pumice.scheduler.model.resources import EPSILON
from pumice.scheduler.model.task import Task
from pumice.scheduler.placement.domains import Domains
from pumice.scheduler.placement.placing import Placing

MEMORY = "consolidate"  #: the key of both actions in the cluster's memory
PLACES = "places"
HAS_PLACE = status.READY | status.PIPELINED


class HeldPlace(Struct, frozen=True):
    """A place for a pod of a job."""

    job: str  #: uid
    pod: Task  #: the pod for which it was found; another pod of the job and role may take it
    node: str
    until: float
    whole: int  #: how many pods of the role have a place when all have come


def held_places(session: Session) -> tuple[HeldPlace, ...]:
    places: tuple[HeldPlace, ...] = session.memory(MEMORY).get(PLACES, ())
    return places


def keep_places(session: Session, places: Iterable[HeldPlace]) -> None:
    memory, before = session.memory(MEMORY), held_places(session)
    session.before.note(Otherwise(lambda: memory.update({PLACES: before})))
    memory[PLACES] = tuple(places)


def placed(job: Job, role: str) -> int:
    """How many pods of a role have a place, placeholders included."""
    return sum(task.role == role and bool(task.status & HAS_PLACE) for task in job.tasks.values())


def hold(session: Session, place: HeldPlace) -> Task | None:
    """Let a placeholder hold the place until the actions have run. None if there is no room for it."""
    holder = _holder(session, place)
    if holder is not None:
        session.moved(holder, status.PENDING)
    return holder


def _holder(session: Session, place: HeldPlace) -> Task | None:
    cluster, row = session.cluster, session.nodes.rows.get(place.node, -1)
    if row < 0 or any(amount > session.nodes.row_future_idle(row)[column] + EPSILON for column, amount in place.pod.template.needs):
        return None
    holder = copy(place.pod)
    cluster.sequence += 1
    holder.number = cluster.sequence
    holder.key = holder.uid = f"{place.job}~{holder.number}"  # no object can have this name
    holder.job, holder.node, holder.nominated, holder.claims = None, -1, "", ()
    holder.deleting = holder.disrupted = holder.evicted = False
    session.pretended.note(Otherwise(lambda: cluster.remove("Pod", holder.key)))
    cluster.put_back(holder, status.PENDING, "", place.job.partition("/")[2])
    cluster.move(holder, status.PIPELINED, row)
    return holder


class Comeback(Action):
    name = "comeback"
    settles = True
    reads_only_state = True

    def enter(self, session: Session) -> None:
        """Let placeholders hold the places of pods that are not there, and forget the places that have been taken or are given back."""
        self._holders: dict[str, list[tuple[HeldPlace, Task | None]]] = {}
        held = [place for place in held_places(session) if self._lasts(session, place)]
        left = []
        for place in sorted(held, key=lambda place: self._is_taken(session, place)):
            if placed(session.cluster.jobs[place.job], place.pod.role) < place.whole:
                self._holders.setdefault(place.job, []).append((place, _holder(session, place)))
                left.append(place)
        if len(left) < len(held_places(session)):
            keep_places(session, left)

    def run(self, session: Session) -> None:
        allocate, placing = Allocate(), Placing(session, cache_errors=False)
        domains = Domains(session, placing)
        session.together({uid: session.cluster.jobs[uid] for uid in self._holders})
        groups = [alike for alike in session.alike if any(member.uid in self._holders for member in alike.members)]
        jobs = [job for alike in groups for job in apart(session, alike) if job.uid in self._holders]
        for job in sorted(jobs, key=session.job_key):
            self._serve(session, job, self._holders[job.uid], allocate, placing, domains)

    def next_turn(self, session: Session) -> float:
        return min((place.until for place in held_places(session)), default=inf)

    @staticmethod
    def _lasts(session: Session, place: HeldPlace) -> bool:
        job = session.cluster.jobs.get(place.job)
        if job is None or job.queue is None or not job.queue.exists:
            return False
        return session.now < place.until and place.node in session.nodes.rows

    @staticmethod
    def _is_taken(session: Session, place: HeldPlace) -> bool:
        """Whether a pod of the job and role has come to the node since."""
        tasks = session.nodes.tasks[session.nodes.rows[place.node]].values()
        return any(
            task.job is not None and task.job.uid == place.job and task.role == place.pod.role and task.number >= place.pod.number
            for task in tasks
        )

    def _serve(
        self,
        session: Session,
        job: Job,
        holders: list[tuple[HeldPlace, Task | None]],
        allocate: Allocate,
        placing: Placing,
        domains: Domains,
    ) -> None:
        """Place the job's pods that have come: in the room that is held for it, or where else they fit."""
        assert job.queue is not None
        if job.is_pending:  # it has been let in before, and its room is held
            session.job_enqueued(job)
            session.set_phase(job, INQUEUE)
        if not allocate.may_be_placed(session, job):
            return
        come = Counter(task.role for task in job.pending.values())
        freed = []
        for place, holder in holders:
            if holder is not None and come[place.pod.role]:
                come[place.pod.role] -= 1
                _release(session, holder)
                freed.append(place)
        sheet = allocate.sheet(session, job)
        for _ in freed:
            if not sheet or not allocate.serve(session, placing, domains, job.queue, sheet):
                break
        for place in freed:
            if placed(job, place.pod.role) < place.whole:
                hold(session, place)


def _release(session: Session, holder: Task) -> None:
    """Take a placeholder away, so that a pod can have its place."""
    session.cluster.move(holder, status.PENDING, -1)
    session.moved(holder, status.PIPELINED)
    session.cluster.remove("Pod", holder.key)
