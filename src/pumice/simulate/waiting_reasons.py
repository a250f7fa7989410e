"""Why jobs of a simulation wait, by the last cycle that gave a reason for them.

Cycles give one reason for all jobs that wait alike. The reason of a single job is looked up when the job starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.scheduler.framework.decisions import Conclusion, Decisions, Waiting
from pumice.scheduler.model import Job
from pumice.simulate.job_runs import Life, job_of


class Reasons:
    """The reasons why jobs waited. `lives` holds the life of each existing job, by uid."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self._lives = lives
        self._last: Conclusion | None = None
        self._explaining: Conclusion | None = None  #: the same, if it gives a reason for some job

    def take(self, decisions: Decisions) -> None:
        """Take in the reasons that a cycle gives."""
        assert decisions.conclusion is not None
        if self._last is decisions.conclusion:
            return
        before, self._last, self._explaining = self._explaining, decisions.conclusion, None
        for waiting in self._last.refused:
            self._write(waiting)
        for outcome in self._last.outcomes:
            if outcome.pods:
                self._explaining = self._last
                if len(outcome.members) == 1:
                    self._write(outcome.last_word(outcome.members[0]))
            elif before is not None:
                for member in outcome.members:
                    self._keep(member.job, before)
        for waiting in self._last.stranded:
            self._write(waiting)

    def settle(self, job: Job | None) -> None:
        """Keep the reason of a job that no longer waits, or whose simulation ends."""
        if job is not None:
            self._keep(job, self._explaining)

    def _keep(self, job: Job, explaining: Conclusion | None) -> None:
        if explaining is not None:
            self._write(explaining.last_word(job))

    def _write(self, word: Waiting | None) -> None:
        life = self._lives.get(job_of(word.task)) if word is not None else None
        if word is not None and life is not None and life.start is None:
            life.reason = word.message
