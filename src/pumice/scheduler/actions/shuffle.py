"""shuffle: evict running tasks that a plugin says stand in the wrong place."""

from collections.abc import Iterator
from functools import cached_property

from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Task, status


class Shuffle(Action):
    name = "shuffle"

    def run(self, session: Session) -> None:
        with session.statement() as statement:
            for victim in session.victim_tasks(RunningTasks(session)):
                statement.evict(victim, self.name)
            statement.commit()


class RunningTasks:
    """All running tasks, listed when they are first iterated over: in most sessions no plugin has a task to move."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __iter__(self) -> Iterator[Task]:
        return iter(self._listed)

    @cached_property
    def _listed(self) -> list[Task]:
        session = self._session
        return [task for job in session.jobs(session.cluster.jobs.values()) for task in job.tasks.values() if task.status == status.RUNNING]
