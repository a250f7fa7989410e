"""Why jobs wait, as the last cycle that had something to say of them said.

Jobs that wait alike are told of together, and what is said of one of them is looked up when he starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
        self._write(self._last.refused)
        for standing in self._last.standings:
            if not standing.pods:
                for member in standing.members:
                    self._keep(member.job, before)
            elif len(standing.members) == 1:
                self._write(standing.waiting(standing.members[0])[-1:])
        self._write(self._last.stranded)

    def settle(self, job: Job | None) -> None:
        """The job waits no more, or nobody will look at it again."""
        if job is not None:
            self._keep(job, self._last)

    def _keep(self, job: Job, said: Conclusion | None) -> None:
        if said is not None and (word := said.last_word(job)) is not None:
            self._write([word])

    def _write(self, words: Iterable[Waiting]) -> None:
        for waiting in words:
            life = self._lives.get(waiting.task.uid)
            if life is not None and life.start is None:
                life.reason = waiting.message
