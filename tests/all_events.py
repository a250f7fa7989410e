"""The events of a cycle, with those that jobs at rest would have, which a cycle that looks at each job tells."""

from __future__ import annotations

from pumice.scheduler.framework.decisions import Decisions, GroupEvent


def all_events(decisions: Decisions) -> list[GroupEvent]:
    resting = decisions.conclusion.at_rest if decisions.conclusion is not None else None
    uids = {job.uid for job in resting.jobs if job.is_pending} if resting is not None else set()
    found = resting.find_out().events if resting is not None and uids else []
    return [*decisions.events, *(event for event in found if event.job.uid in uids)]
