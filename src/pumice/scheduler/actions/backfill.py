"""backfill: place the tasks that ask for nothing but a place, wherever the filters allow one.

On nodes that lose tasks in this very session, those that need a port or another thing of the leaving wait.
"""

from pumice.scheduler.actions.allocate import AllocateArgs
from pumice.scheduler.engine import Reason
from pumice.scheduler.framework.fit_errors import everywhere, explain
from pumice.scheduler.framework.job_class_turns import apart
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import Job, Mask, Task, status


class Backfill(Action):
    name = "backfill"
    reads_only_state = True
    plain_for_newcomers = True
    Args = AllocateArgs

    def run(self, session: Session) -> None:
        cluster = session.cluster
        clearing = session.clearing()
        promised = {uid: job for uid, job in cluster.changed.items() if job.waiting_count}
        waiting = {job.uid: job for alike in session.awake() if alike.first.pending_best_effort for job in apart(session, alike)}
        jobs = [job for job in session.jobs({**waiting, **promised}.values()) if not job.is_pending and session.job_valid(job) is None]
        by_queue: dict[str, list[Job]] = {}
        for job in jobs:
            assert job.queue is not None
            by_queue.setdefault(job.queue.name, []).append(job)
        tasks = {job.uid: self._tasks(session, job, clearing) for job in jobs}
        for queue in session.orders.in_queue_order(session.cluster.queues[name] for name in by_queue):
            for job in sorted(by_queue[queue.name], key=session.orders.job_key):
                self._serve(session, job, tasks[job.uid], clearing)

    def _serve(self, session: Session, job: Job, tasks: list[Task], clearing: Mask) -> None:
        with session.statement() as statement:
            for task in sorted(tasks, key=session.orders.task_key):
                self._place(session, task, statement, clearing)
            if session.job_ready(job):
                statement.commit()
            else:
                statement.keep()

    def _tasks(self, session: Session, job: Job, clearing: Mask) -> list[Task]:
        """The tasks to place. Those that are pipelined although they need no room are taken back to Pending until their turn."""
        waiting = (task for task in job.tasks.values() if task.status & (status.PENDING | status.PIPELINED))
        tasks = [task for task in waiting if task.best_effort and not task.gated and not _waits_for_the_leaving(task, clearing)]
        with session.statement() as statement:
            for task in tasks:
                if task.status == status.PIPELINED:
                    statement.displace(task)
            statement.keep()
        return tasks

    def _place(self, session: Session, task: Task, statement: Statement, clearing: Mask) -> None:
        evaluation = session.evaluation(task)
        if (stopped := session.pre_predicate(task)) is not None:
            session.fit_errors[task.uid] = everywhere(evaluation, Reason(stopped.message))
            return
        free = evaluation.admitted & session.may_bind(task, evaluation, clearing)
        row = -1 if evaluation.rejected else session.best_node(task, evaluation, free)
        if row >= 0:
            statement.allocate(task, row)
        else:
            session.fit_errors[task.uid] = evaluation.remember(explain)


def _waits_for_the_leaving(task: Task, clearing: Mask) -> bool:
    return task.node >= 0 and bool(clearing[task.node]) and not task.template.needs_only_room
