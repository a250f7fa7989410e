"""Why jobs wait, as the last cycle that had something to say of them said.

Jobs that wait alike are told of together, and what is said of one of them is looked up when he starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.scheduler.framework.decisions import Conclusion, Decisions, Waiting
from pumice.scheduler.model.job import Job
from pumice.simulate.life import Life


class Reasons:
    """Why jobs waited. `lives` are those of the pods that there are, by uid."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self._lives = lives
        self._last: Conclusion | None = None

    def take(self, decisions: Decisions) -> None:
        """What a cycle says."""
        assert decisions.conclusion is not None
        before, self._last = self._last, decisions.conclusion
        if self._last is before:
            return
        for waiting in self._last.refused:
            self._write(waiting)
        for standing in self._last.standings:
            if not standing.pods:
                for member in standing.members:
                    self._keep(member.job, before)
            elif len(standing.members) == 1:
                self._write(standing.last_word(standing.members[0]))
        for waiting in self._last.stranded:
            self._write(waiting)

    def settle(self, job: Job | None) -> None:
        """The job waits no more, or nobody will look at it again."""
        if job is not None:
            self._keep(job, self._last)

    def _keep(self, job: Job, said: Conclusion | None) -> None:
        self._write(said.last_word(job) if said is not None else None)

    def _write(self, word: Waiting | None) -> None:
        life = self._lives.get(word.task.uid) if word is not None else None
        if word is not None and life is not None and life.start is None:
            life.reason = word.message
