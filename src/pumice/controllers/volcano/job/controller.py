"""The job controller: an event becomes an action, an action a plan, and a plan is carried out on the job's pods.

Commands come before anything else. Where a key has failed too often, `gave_up` ends the job instead of trying for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pumice.api import kinds
from pumice.api.json_objects import Key, Object, controller_of, name_of, spec_of, terminating, uid_of
from pumice.controllers.controller import NOTHING, Emit, ObjectChange, Result, Write, delete, result
from pumice.controllers.lister import Lister
from pumice.controllers.volcano.command import commands_for, taken, target_of
from pumice.controllers.volcano.job import event, spec, state
from pumice.controllers.volcano.job.event import SYNC, JobEvent, choose, delayed, still_stands
from pumice.controllers.volcano.job.plugins import KeyPairs, plugins_of, with_implied
from pumice.controllers.volcano.job.plugins.ssh import secret_name
from pumice.controllers.volcano.job.state import JobPlan
from pumice.controllers.volcano.job.sync_job import Setting, condemned, end, end_on_purpose, group_of, sync, targeted

MAX_FAILURES = 15


class Jobs:
    """Runs vcjobs. `key_pairs` makes the SSH keys that the ssh plugin hands out."""

    name = "job"

    def __init__(self, key_pairs: KeyPairs, max_failures: int = MAX_FAILURES) -> None:
        self.key_pairs = key_pairs
        self.max_failures = max_failures
        self.watches = {
            kinds.JOB: event.from_job,
            kinds.POD: event.from_pod,
            kinds.POD_GROUP: event.from_group,
            kinds.QUEUE: event.from_queue,
            kinds.CLAIM: event.from_claim,
            kinds.COMMAND: _from_command,
            **dict.fromkeys((kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY), event.from_lost),
        }

    def gave_up(self, key: Hashable) -> JobEvent:
        """End the job instead of trying for ever."""
        assert isinstance(key, JobEvent)
        return JobEvent(key.namespace, key.job, action=state.TERMINATE_JOB)

    def looks_up(self, key: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]:
        """SSH keys that are not known: to make new ones where there are some takes long and is for nothing."""
        assert isinstance(key, JobEvent)
        job = lister.get(kinds.JOB, key.namespace, key.job)
        if job is not None and "ssh" in with_implied(spec_of(job).get("plugins") or {}):
            place = Key(key.namespace, secret_name(job))
            if lister.get(kinds.SECRET, *place) is None:
                yield kinds.SECRET, place

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, JobEvent)
        job = lister.get(kinds.JOB, key.namespace, key.job)
        if job is None or terminating(job):
            return NOTHING
        command = next(commands_for(job, lister), None)
        if command is not None:
            order = JobEvent(key.namespace, key.job, uid=uid_of(job), version=spec.version_of(job), action=command["action"])
            return result([delete(command, surely=True), taken(command, job, "CommandIssued")], [(now, order), (now, key)])
        if key.due:
            action = key.action if still_stands(job, key, lister) else SYNC
            return result(self._carry_out(job, key, action, lister, now))
        if key.event == event.OUT_OF_SYNC and not key.action and spec.phase_of(job) == state.RUNNING:
            key = _unanswered(job, lister) or key
        choice = choose(job, key)
        if choice.delay_s is None:
            return result(self._carry_out(job, key, choice.action, lister, now))
        later = delayed(key, choice, lister, now)
        return result(self._carry_out(job, key, SYNC, lister, now), [(later.due, later)])

    def _carry_out(self, job: Object, key: JobEvent, action: str, lister: Lister, now: float) -> list[Write]:
        pods = [pod for pod in lister.dependents(uid_of(job), kinds.POD) if _is_controlled(pod, job)]
        at = Setting(job, pods, plugins_of(job, self.key_pairs), lister)
        plan = state.plan(job, action)
        if plan.target_only and not key.task:
            plan = state.plan(job, SYNC)  # an event of the whole job, or a user's order, names no pod
        status = state.new_status(job)
        if plan.retain is None:
            writes = sync(at, status)
            plan.enter(job, status)
        elif plan.target_only:
            writes = _restart_part(at, plan, targeted(pods, action, key), status)
        else:
            writes = _kill_all(at, plan, status)
        tell = [Emit(job, "Normal", "ExecuteAction", f"Start to execute action {action}")] if action != SYNC and writes else []
        return [*writes, *state.status_writes(job, status, now), *tell]


def _unanswered(job: Object, lister: Lister) -> JobEvent | None:
    """A failure that a policy answers at once. Its event may stand behind this look at the job, which must not end the job before."""
    answers = ((failure, choose(job, failure)) for failure in event.failures(job, lister))
    return next((failure for failure, choice in answers if choice.action != SYNC and choice.delay_s is None), None)


def _restart_part(at: Setting, plan: JobPlan, meant: Iterable[Object], status: Object) -> list[Write]:
    """End some of the pods and leave the rest at work."""
    gone = condemned(at.job, meant, plan.retain or state.NONE)
    state.count_pods(status, at.pods, frozenset(map(name_of, gone)))
    plan.enter(at.job, status)
    return end_on_purpose(gone)


def _kill_all(at: Setting, plan: JobPlan, status: Object) -> list[Write]:
    """End this attempt: the pods, the group, and what plugins made."""
    gone = condemned(at.job, at.pods, plan.retain or state.NONE)
    state.count_pods(status, at.pods, frozenset(map(name_of, gone)))
    plan.enter(at.job, status)
    if gone or not plan.retain or status["state"]["phase"] != spec.phase_of(at.job):
        status["version"] = spec.version_of(at.job) + 1
    writes = end(gone)
    for plugin in at.plugins.values():
        writes.extend(plugin.remove(at.job, at.lister))
    kept = {name: value for name, value in (status.get("controlledResources") or {}).items() if not name.startswith("plugin-")}
    status["controlledResources"] = kept or None
    group = group_of(at.job, at.lister)
    return [*writes, *([delete(group)] if group is not None and not terminating(group) else [])]


def _is_controlled(pod: Object, job: Object) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["uid"] == uid_of(job)


def _from_command(change: ObjectChange, lister: Lister) -> Iterable[JobEvent]:
    return (JobEvent(*key) for key in target_of(kinds.JOB)(change, lister))
