"""allocate: give idle room to pending tasks. The neediest queue first, its first job, that job's tasks in order, gang by gang.

A job is taken until it is ready; what is left of it competes again. A gang that finds only part of its places gives them back;
one whose missing places are being released keeps them reserved for the rest of the session. A gang whose placing was cut short was let in
before, and comes before all others: until it is whole its places serve nobody. Jobs in parts or with a limit in the
network topology are placed by `Domains`, all others in one pass over all nodes.
"""

from msgspec import Struct, field

from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.model import INQUEUE, Job, Queue
from pumice.scheduler.model.half_placed_gangs import cut_short_at
from pumice.scheduler.placement.domains import Choice, Domains
from pumice.scheduler.placement.jobs_by_queue import JobsByQueue
from pumice.scheduler.placement.pending_tasks import PendingParts, PendingTasks
from pumice.scheduler.placement.place_tasks import TaskPlacer
from pumice.scheduler.placement.room_bound import NoDomain


class AllocateArgs(Struct):
    predicate_error_cache_enable: bool = field(name="predicateErrorCacheEnable", default=True)


class Allocate(Action):
    name = "allocate"
    reads_only_state = True
    places_gangs = True
    plain_for_newcomers = True
    Args = AllocateArgs

    def run(self, session: Session) -> None:
        placing = TaskPlacer(session, cache_errors=self.args.predicate_error_cache_enable)
        domains = Domains(session, placing)
        groups = self._groups(session)
        pending_by_part = {alike.first.uid: self.pending(session, alike.first) for alike in groups}
        for pending in pending_by_part.values():
            if pending and pending.job.queue is not None and cut_short_at(pending.job) is not None:
                self.serve(session, placing, domains, pending.job.queue, pending)
        groups = [alike for alike in groups if pending_by_part[alike.first.uid]]
        if session.is_alone(groups) and not session.resting:
            self._serve_alone(session, placing, domains, pending_by_part[groups[0].first.uid])
            return
        startable = StartableJobs(session, lambda job: self.may_be_placed(session, job))
        waiting = JobsByQueue(session, groups, startable=startable)
        while queue := waiting.pop_queue():
            if session.overused(queue):
                continue
            job = waiting.pop_job(queue)
            if job is None:
                continue
            if job.uid not in pending_by_part:  # until now it was in the group of another job
                pending_by_part[job.uid] = self.pending(session, job)
            pending = pending_by_part[job.uid]
            if self.serve(session, placing, domains, queue, pending) and pending and not session.holds_back(job):
                waiting.push_job(job)
            waiting.push_queue(queue)

    def _serve_alone(self, session: Session, placing: TaskPlacer, domains: Domains, pending: PendingTasks | PendingParts) -> None:
        """Give the only job that may be placed its turns: there is no order of queues and jobs to find."""
        job, queue = pending.job, pending.job.queue
        assert queue is not None
        while not session.overused(queue):
            if not self.serve(session, placing, domains, queue, pending) or not pending or session.holds_back(job):
                return

    def _groups(self, session: Session) -> list[JobClass]:
        """The groups of alike jobs that may be placed. Without an enqueue action every job is admitted (phase Inqueue) here."""
        enqueues = session.policy.has_action("enqueue")
        groups = []
        for alike in session.awake():
            job = alike.first
            if job.is_pending:
                if enqueues and cut_short_at(job) is None:
                    continue
                session.set_phase(job, INQUEUE)
            if not self.may_be_placed(session, job):
                continue
            if job.asks_for_topology and job.group is not None and (why := session.policy.why_topology_is_unheeded(job.group)):
                session.event(job, "Warning", "NetworkTopologyIgnored", why)
            if job.asks_for_topology and (trouble := session.topology.tree.trouble):
                session.fit_errors[next(iter(job.pending))] = NoDomain(session, f"no HyperNode can be used: {trouble}")
            else:
                groups.append(alike)
        session.admit_all()
        return groups

    def may_be_placed(self, session: Session, job: Job) -> bool:
        return session.job_valid(job) is None and not session.holds_back(job)

    def pending(self, session: Session, job: Job) -> PendingTasks | PendingParts:
        if session.topology.is_plain(job):
            return PendingTasks.of(session, job, job.pending.values())
        return PendingParts(session, job)

    def serve(self, session: Session, placing: TaskPlacer, domains: Domains, queue: Queue, pending: PendingTasks | PendingParts) -> bool:
        """Give a job one turn. Return whether it got what it needs to start."""
        job = pending.job
        with session.statement() as statement:
            choices: list[Choice] = []
            is_ready = False
            if isinstance(pending, PendingTasks):
                is_ready = placing.place(queue, pending, statement)
            elif not (choices := domains.place(queue, pending, statement)):
                return False
            if is_ready or session.job_ready(job):
                statement.commit()
                for part, domain in choices:
                    session.topology.settle(job, part, domain)
                return True
            if session.job_pipelined(job):
                statement.keep()
        return False
