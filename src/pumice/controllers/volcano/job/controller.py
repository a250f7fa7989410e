"""The job controller: an event leads to an action, the action to a plan, and the plan is carried out on the job's pods.

Commands come before anything else. If a key has failed too often, `gave_up` ends the job instead of trying for ever.

`sync` looks after a job that is to run: it keeps the job's objects and PodGroup up to date, and makes the pods once the PodGroup is
enqueued. No pod is made before that: this is how the scheduler keeps a full cluster free of pods that cannot run. The job's status says
what keeps the job from starting.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from msgspec import Struct

from pumice.api import Key, Object, annotations as key, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.json_objects import annotations_of, controller_of, terminating
from pumice.api.plural import plural
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, result
from pumice.controllers.pod_bursts import MOST_WAITING, REASON, burst, room
from pumice.controllers.volcano.command import commands_for, taken, target_of
from pumice.controllers.volcano.job import event, spec, state, vcjob_status
from pumice.controllers.volcano.job.event import JobEvent, why_unschedulable
from pumice.controllers.volcano.job.kill import condemned, end, end_on_purpose, targeted
from pumice.controllers.volcano.job.plugins import JobPlugin, KeyPairs, SpareKeyPairs, Ssh, plugins_of, with_implied
from pumice.controllers.volcano.job.plugins.plugin import present
from pumice.controllers.volcano.job.plugins.ssh import secret_name
from pumice.controllers.volcano.job.pod_group import group_of, group_writes
from pumice.controllers.volcano.job.pods import by_task, make_pod, may_start
from pumice.controllers.volcano.job.policy import SYNC, PolicyChoice, choose, delayed, still_stands
from pumice.controllers.volcano.job.state import JobPlan
from pumice.controllers.volcano.job.volumes import missing_claim, mount, volume_writes
from pumice.controllers.writes import Create, Emit, Write, delete, patch


class JobSituation(Struct, frozen=True):
    job: Object
    pods: Sequence[Object]
    plugins: Mapping[str, JobPlugin]
    lister: Lister
    most_waiting: int = MOST_WAITING


def sync(at: JobSituation, status: Object) -> list[Write]:
    """The writes that a job which is to run needs now. The counts and reasons go into `status`, the draft of its status."""
    job = at.job
    vcjob_status.count_pods(status, at.pods)
    waits = spec.phase_of(job) in ("", "Pending")
    obstacle = _obstacle(at) if waits else ("", "")
    vcjob_status.explain(status, *(obstacle if obstacle[0] or not waits else _not_placed(at)))
    if obstacle[0]:
        return []
    queue = at.lister.get(kinds.QUEUE, "", spec.queue_name(job))
    forwarded = queue is not None and bool(spec_of(queue).get("extendClusters"))
    return [*_objects(at, status, forwarded), *_pods(at, status, forwarded)]


def _obstacle(at: JobSituation) -> tuple[str, str]:
    """Why the job cannot begin, as reason and message; both are empty if nothing is in the way."""
    queue = spec.queue_name(at.job)
    if at.lister.get(kinds.QUEUE, "", queue) is None:
        return "QueueNotFound", f'queue "{queue}" does not exist; create it or name another'
    claim = missing_claim(at.job, at.lister)
    if claim:
        subject = f'PersistentVolumeClaim "{namespace_of(at.job)}/{claim}"'
        return "PVCError", f"{subject} does not exist; create it, or describe it in volumeClaim"
    return "", ""


def _not_placed(at: JobSituation) -> tuple[str, str]:
    """The scheduler's reason and message from the job's PodGroup, so that users find them in the job's status too."""
    why = why_unschedulable(group_of(at.job, at.lister))
    return ("PodGroupPending", f"PodGroup {namespace_of(at.job)}:{name_of(at.job)} unschedule,reason: {why}") if why else ("", "")


def _objects(at: JobSituation, status: Object, forwarded: bool) -> list[Write]:
    writes: list[Write] = []
    if forwarded and key.JOB_FORWARDING not in annotations_of(at.job):
        writes.append(patch(at.job, {"metadata": {"annotations": {key.JOB_FORWARDING: "true"}}}))
    if spec.phase_of(at.job) in ("", "Pending"):
        writes.extend(volume_writes(at.job, status, at.lister))
    for name, plugin in at.plugins.items():
        writes.extend(plugin.keep(at.job, at.lister))
        status["controlledResources"] = {**(status.get("controlledResources") or {}), f"plugin-{name}": name}
    return [*writes, *group_writes(at.job, group_of(at.job, at.lister), at.lister)]


def _pods(at: JobSituation, status: Object, forwarded: bool) -> list[Write]:
    group = group_of(at.job, at.lister)
    if group is None or terminating(group) or status_of(group).get("phase") in (None, "", "Pending"):
        return []
    present = by_task(at.pods)
    left_over = dict(present)
    lacking: list[tuple[Object, int]] = []
    surplus: list[Object] = []
    tasks: dict[str, Object] = {}
    for task in spec.tasks(at.job):
        tasks.setdefault(spec.task_name(at.job, task), task)
    for task in spec.tasks(at.job):
        name = spec.task_name(at.job, task)
        there = left_over.pop(name, {})
        wanted = {spec.pod_name(at.job, name, index): index for index in range(spec.replicas(task))}
        surplus.extend(pod for pod_name, pod in there.items() if pod_name not in wanted)
        if may_start(task, tasks, present):
            missing = (index for pod_name, index in wanted.items() if pod_name not in there and not _taken(at, pod_name))
            lacking.extend((task, index) for index in missing)
    surplus.extend(pod for pods in left_over.values() for pod in pods.values())
    surplus = [pod for pod in surplus if not terminating(pod)]
    chosen = _in_this_turn(at, lacking, status)
    made = [_dress(make_pod(at.job, task, index, name_of(group), forwarded), task, index, at) for task, index in chosen]
    vcjob_status.count_pods(status, [*at.pods, *made], frozenset(map(name_of, surplus)))
    return [*end_on_purpose(surplus), *(Create(pod, at.job) for pod in made)]


def _in_this_turn(at: JobSituation, lacking: list[tuple[Object, int]], status: Object) -> list[tuple[Object, int]]:
    """The pods to make now, of those that lack: those that the gang needs come first, others only while few pods wait for a node. Not more
    than a burst is made in a turn; its pods cause the next one."""
    least = spec.min_available(at.job)
    if least >= spec.total_min_available(at.job):
        needed = [each for each in lacking if each[1] < spec.task_min_available(each[0])]
        others = [each for each in lacking if each[1] >= spec.task_min_available(each[0])]
    else:
        still = max(0, least - len(at.pods))
        needed, others = lacking[:still], lacking[still:]
    free = max(0, room(at.job, at.pods, at.most_waiting) - len(needed))
    if len(others) > free:
        vcjob_status.explain(
            status,
            REASON,
            f"{at.most_waiting} of its pods {plural(at.most_waiting, 'waits', 'wait')} for a node; more are made as these get one",
        )
    return [*needed, *others[:free]][: burst(len(at.pods))]


def _taken(at: JobSituation, pod_name: str) -> bool:
    """Whether another owner's pod has the name: a pod of an earlier job, or of a job whose name and task give the same pod name."""
    return at.lister.get(kinds.POD, namespace_of(at.job), pod_name) is not None


def _dress(pod: Object, task: Object, index: int, at: JobSituation) -> Object:
    """Add the job's volumes to a new pod, and what its plugins add."""
    mount(pod, at.job)
    for plugin in at.plugins.values():
        plugin.dress(pod, at.job, task, index)
    return pod


MAX_FAILURES = 15


class Jobs:
    """Runs Volcano's Jobs. `key_pairs` makes the SSH keys for the ssh plugin."""

    name = "job"

    def __init__(self, key_pairs: KeyPairs, max_failures: int = MAX_FAILURES, most_waiting: int = MOST_WAITING) -> None:
        self._key_pairs = SpareKeyPairs(key_pairs)
        self.most_waiting = most_waiting
        self.max_failures = max_failures
        self.watches: dict[str, KeysOf] = {
            kinds.JOB: event.from_job,
            kinds.POD: Among(kinds.JOB, event.from_pod),
            kinds.POD_GROUP: event.from_group,
            kinds.QUEUE: event.from_queue,
            kinds.CLAIM: event.from_claim,
            kinds.COMMAND: _from_command,
            **dict.fromkeys((kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY), event.from_lost),
        }

    def gave_up(self, key: Hashable) -> JobEvent:
        """The request that terminates the job, instead of trying for ever."""
        assert isinstance(key, JobEvent)
        return JobEvent(key.namespace, key.job, action=state.TERMINATE_JOB)

    def looks_up(self, key: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]:
        """The Secret with the job's SSH keys, if it is not known: to make new keys takes long, and is in vain if the Secret exists."""
        assert isinstance(key, JobEvent)
        job = lister.get(kinds.JOB, key.namespace, key.job)
        if job is not None and self._ssh_without_secret(job, lister) is not None:
            yield kinds.SECRET, Key(key.namespace, secret_name(key.job))

    def prepares(self, key: Hashable, lister: Lister) -> Callable[[], None] | None:
        """What makes the SSH keys of a job."""
        assert isinstance(key, JobEvent)
        job = lister.get(kinds.JOB, key.namespace, key.job)
        if self._key_pairs or job is None or state.plan(job, SYNC).retain is not None:
            return None
        ssh = self._ssh_without_secret(job, lister)
        return self._key_pairs.prepare if ssh is not None and ssh.makes_keys else None

    def _ssh_without_secret(self, job: Object, lister: Lister) -> Ssh | None:
        """The job's plugin ssh, if its Secret is not known."""
        plugins = with_implied(spec_of(job).get("plugins") or {})
        if "ssh" not in plugins or present(job, kinds.SECRET, secret_name(name_of(job)), lister) is not None:
            return None
        return Ssh(plugins["ssh"], self._key_pairs.take)

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, JobEvent)
        job = lister.get(kinds.JOB, key.namespace, key.job)
        if job is None or terminating(job):
            return NOTHING
        is_order = bool(key.action) and not key.due
        command = None if is_order else next(commands_for(job, lister), None)  # orders are carried out in the order of their Commands
        if command is not None:
            order = JobEvent(key.namespace, key.job, uid=uid_of(job), version=spec.version_of(job), action=command["action"])
            return result([delete(command, surely=True), taken(command, job, "CommandIssued")], [(now, order), (now, key)])
        again = JobEvent(key.namespace, key.job)  # events of thousands of pods that only mean to look at the job are one key
        if key == again and spec.phase_of(job) == state.RUNNING:
            key = _unanswered(job, lister) or key
        if key.due:
            choice = PolicyChoice(key.action if still_stands(job, key, lister) else SYNC)
        else:
            choice = choose(job, key)
        if choice.delay_s is not None:
            later = delayed(key, choice, lister, now)
            return result([], [(later.due, later), (now, again)])
        if choice.action == SYNC and key != again:
            return result([], [(now, again)])
        return result(self._carry_out(job, key, choice.action, lister, now))

    def _carry_out(self, job: Object, key: JobEvent, action: str, lister: Lister, now: float) -> list[Write]:
        pods = [pod for pod in lister.dependents(uid_of(job), kinds.POD) if _is_controlled(pod, job)]
        at = JobSituation(job, pods, plugins_of(job, self._key_pairs.take), lister, self.most_waiting)
        plan = state.plan(job, action)
        if plan.target_only and not key.task:
            plan = state.plan(job, SYNC)  # an event of the whole job, or a user's Command, names no pod
        status = vcjob_status.new_status(job)
        if plan.retain is None:
            writes = sync(at, status)
            plan.enter(job, status)
        elif plan.target_only:
            writes = _restart_part(at, plan, targeted(pods, action, key), status)
        else:
            writes = _kill_all(at, plan, status)
        tell = [Emit(job, "Normal", "ExecuteAction", f"Start to execute action {action}")] if action != SYNC and writes else []
        noted = vcjob_status.status_writes(job, status, now)
        if status["state"]["phase"] in state.ENDING:  # first: whoever finds the job half ended then goes on with that
            return [*noted, *writes, *tell]
        return [*writes, *noted, *tell]


def _unanswered(job: Object, lister: Lister) -> JobEvent | None:
    """The end of a pod or of a task that a policy answers at once, or None. Its event may be queued behind this request, which must not
    end the job before it."""
    answers = ((end, choose(job, end)) for end in event.ends(job, lister))
    return next((end for end, choice in answers if choice.action != SYNC and choice.delay_s is None), None)


def _restart_part(at: JobSituation, plan: JobPlan, meant: Iterable[Object], status: Object) -> list[Write]:
    """The writes that end some of the pods and leave the rest running."""
    gone = condemned(at.job, meant, plan.retain or state.NONE)
    vcjob_status.count_pods(status, at.pods, frozenset(map(name_of, gone)))
    plan.enter(at.job, status)
    return end_on_purpose(gone)


def _kill_all(at: JobSituation, plan: JobPlan, status: Object) -> list[Write]:
    """The writes that end this attempt: they delete the pods, the PodGroup, and the objects of plugins."""
    gone = condemned(at.job, at.pods, plan.retain or state.NONE)
    vcjob_status.count_pods(status, at.pods, frozenset(map(name_of, gone)))
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
