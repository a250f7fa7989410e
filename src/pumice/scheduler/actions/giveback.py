"""giveback: a gang whose placing was cut short, and for which no room has come in a minute, gives back the places it has.

Part of a gang is of no use, and two gangs that wait for each other's places would wait for ever. Only a gang whose pods are made anew by
the owner of its PodGroup gives back. The action is not named in configurations: it runs last wherever the plugin gang is configured.
"""

from math import inf

from pumice.scheduler.framework.decisions import GroupEvent
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job
from pumice.scheduler.model.half_placed_gangs import PLACED, cut_short_at

PATIENCE_S = 60.0  #: how long a gang whose placing was cut short may keep its places


class Giveback(Action):
    name = "giveback"
    settles = True
    reads_only_state = True
    plain_for_newcomers = True

    def run(self, session: Session) -> None:
        for alike in session.awake():
            since = cut_short_at(alike.first)
            if since is not None and session.now >= since + PATIENCE_S and not alike.first.is_pipelined and _made_anew(alike.first):
                self._give_back(session, alike.first)

    def next_turn(self, session: Session) -> float:
        """When the next gang whose placing was cut short must give back its places; inf if there is none."""
        ends = (since + PATIENCE_S for alike in session.awake() if (since := cut_short_at(alike.first)) is not None)
        return min((end for end in ends if end > session.now), default=inf)

    def _give_back(self, session: Session, job: Job) -> None:
        placed = [task for task in job.tasks.values() if task.status & PLACED]
        with session.statement() as statement:
            for task in placed:
                statement.evict(task, self.name)
            statement.commit()
        text = f"{len(placed)} of {job.min_member} pods had nodes when placing was cut short; for {PATIENCE_S:.0f} s the others found none"
        session.decisions.events.append(GroupEvent(job, "Warning", "GangGivenBack", text))


def _made_anew(job: Job) -> bool:
    """Whether a controller makes new pods in place of evicted ones."""
    owner = job.group.metadata.controller if job.group is not None else None
    return owner is not None and owner.kind != "Pod"
