"""shuffle: evict running tasks that a plugin says stand in the wrong place."""

from __future__ import annotations

from pumice.framework.policy import Action
from pumice.framework.session import Session
from pumice.model import status


class Shuffle(Action):
    name = "shuffle"

    def run(self, session: Session) -> None:
        if not session.moves_tasks:
            return
        running = [
            task for job in session.jobs(session.cluster.jobs.values()) for task in job.tasks.values() if task.status == status.RUNNING
        ]
        with session.statement() as statement:
            for victim in session.victim_tasks(running):
                statement.evict(victim, self.name)
            statement.commit()
