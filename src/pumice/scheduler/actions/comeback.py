"""comeback: pods that were moved come back, and so do those for which they gave way, to the places that are held for them.

The action consolidate notes where each moved pod, and each pod that waits for its room, has its place. Until a pod of that job and role is
there, a placeholder holds the place in every cycle: in the sums of the node, of the job and of its queue. Then the job is served before all
others, and takes the held place or a better one. A place that nobody takes is given back after `holdFor`. Places are noted in an annotation
of the job's PodGroup, so that the next scheduler goes on to hold them. The action is not named in configurations: it runs first where
consolidate is configured.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf

import msgspec

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.meta import Metadata
from pumice.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.api.quantity import quantity
from pumice.scheduler.actions.allocate import Allocate
from pumice.scheduler.framework.held_places import GIVEN_BACK, HeldPlace, held_places
from pumice.scheduler.framework.job_class_turns import apart
from pumice.scheduler.framework.journal import Otherwise
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, INQUEUE, Job, Task, status
from pumice.scheduler.placement.domains import Domains
from pumice.scheduler.placement.place_tasks import TaskPlacer

HAS_PLACE = status.READY | status.PIPELINED


def keep_places(session: Session, job: Job, places: Sequence[HeldPlace]) -> None:
    cluster, before = session.cluster, job.held_places
    session.before.note(Otherwise(lambda: cluster.hold_places(job, before)))
    cluster.hold_places(job, msgspec.json.encode(places).decode() if places else "")


def placed(job: Job, role: str) -> int:
    """How many pods of a role have a place, placeholders included."""
    return sum(task.role == role and bool(task.status & HAS_PLACE) for task in job.tasks.values())


def hold(session: Session, job: Job, place: HeldPlace) -> Task | None:
    """Let a placeholder hold the place until the actions have run. None if there is no room for it."""
    holder = _holder(session, job, place)
    if holder is not None:
        session.moved(holder, status.PENDING)
    return holder


def _holder(session: Session, job: Job, place: HeldPlace) -> Task | None:
    cluster, row = session.cluster, session.nodes.rows.get(place.node, -1)
    cluster.sequence += 1
    name = f"{job.name}~{cluster.sequence}"  # no object can have this name
    key, notes = f"{job.namespace}/{name}", {GROUP_NAME: job.name, TASK_SPEC: place.role}
    asked = ResourceRequirements(requests={resource: quantity(text) for resource, text in place.requests.items()})
    spec = PodSpec(containers=[Container(name="main", resources=asked)], scheduler_name=min(cluster.schedulers))
    cluster.put("Pod", Pod(Metadata(name, job.namespace, uid=key, annotations=notes), spec, PodStatus(phase="Pending")))
    holder = cluster.tasks[key]
    if row < 0 or any(amount > session.nodes.row_future_idle(row)[column] + EPSILON for column, amount in holder.template.needs):
        cluster.remove("Pod", key)
        return None
    session.pretended.note(Otherwise(lambda: cluster.remove("Pod", key)))
    cluster.move(holder, status.PIPELINED, row)
    return holder


class Comeback(Action):
    name = "comeback"
    settles = True
    reads_only_state = True

    def enter(self, session: Session) -> None:
        """Let placeholders hold the places of pods that are not there, and forget the places that have been taken or are given back."""
        self._holders: dict[Job, list[tuple[HeldPlace, Task | None]]] = {}
        for job in list(session.cluster.expecting.values()):
            held = held_places(job)
            left = []
            for place in sorted(held, key=lambda place: _is_taken(session, job, place)):
                if placed(job, place.role) >= place.whole:
                    continue
                if _lasts(session, place):
                    self._holders.setdefault(job, []).append((place, _holder(session, job, place)))
                    left.append(place)
                else:
                    session.event(job, "Warning", GIVEN_BACK, f"the place on node {place.node} is given back: no pod took it in time")
            if len(left) < len(held) or not held:
                keep_places(session, job, left)

    def run(self, session: Session) -> None:
        allocate, placing = Allocate(), TaskPlacer(session, cache_errors=False)
        domains = Domains(session, placing)
        for job in self._holders:
            if job.is_pending:  # its room is held, so it is let in unasked: else nobody would make its pods again
                session.set_phase(job, INQUEUE)
        session.together({job.uid: job for job in self._holders})
        groups = [alike for alike in session.alike if any(member.job in self._holders for member in alike.members)]
        jobs = [job for alike in groups for job in apart(session, alike) if job in self._holders]
        for job in sorted(jobs, key=session.orders.job_key):
            self._serve(session, job, self._holders[job], allocate, placing, domains)

    def next_turn(self, session: Session) -> float:
        return min((place.until for job in session.cluster.expecting.values() for place in held_places(job)), default=inf)

    def _serve(
        self,
        session: Session,
        job: Job,
        holders: Iterable[tuple[HeldPlace, Task | None]],
        allocate: Allocate,
        placing: TaskPlacer,
        domains: Domains,
    ) -> None:
        """Place the job's pods that have come: in the room that is held for it, or where else they fit."""
        assert job.queue is not None
        if not allocate.may_be_placed(session, job):
            return
        come = Counter(task.role for task in job.pending.values())
        freed = []
        for place, holder in holders:
            if holder is not None and come[place.role]:
                come[place.role] -= 1
                _release(session, holder)
                freed.append(place)
        pending = allocate.pending(session, job)
        for _ in freed:
            if not pending or not allocate.serve(session, placing, domains, job.queue, pending):
                break
        for place in freed:
            if placed(job, place.role) < place.whole:
                hold(session, job, place)


def _lasts(session: Session, place: HeldPlace) -> bool:
    return session.now < place.until and place.node in session.nodes.rows


def _is_taken(session: Session, job: Job, place: HeldPlace) -> bool:
    """Whether a pod of the job and role is on the node: of places that are held in vain, these go first."""
    row = session.nodes.rows.get(place.node, -1)
    return any(task.node == row and task.role == place.role and bool(task.status & status.READY) for task in job.tasks.values())


def _release(session: Session, holder: Task) -> None:
    """Take a placeholder away, so that a pod can have its place."""
    session.cluster.move(holder, status.PENDING, -1)
    session.moved(holder, status.PIPELINED)
    session.cluster.remove("Pod", holder.key)
