"""Rules for Jobs: defaults are filled in, tasks must fit together, policies must be valid, and few fields may change later."""

from collections.abc import Iterator

from pumice.api import Object, did_you_mean, kinds, name_of, spec_of
from pumice.api.defaults import DEFAULT_QUEUE, ROOT_QUEUE
from pumice.api.dns_names import is_label, is_subdomain
from pumice.api.json_objects import copied
from pumice.controllers.admission.podgroup import open_queue, topology
from pumice.controllers.admission.problem import CREATE, Problem, Settings
from pumice.controllers.admission.semantic_equality import meaning
from pumice.controllers.admission.task import LONGEST_NAME, policy_problems, task_problems
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.plugins import NAMES, PORTS, with_implied
from pumice.controllers.volcano.job.plugins.plugin import flags, is_port
from pumice.controllers.volcano.job.plugins.ringsconfigmap import TEXTS, texts

CALLED_AFTER_JOB = {"svc": ("Service", ""), "ssh": ("volume", "-ssh"), "ray": ("Service", "-head-svc")}  #: by plugin: object, end of name
MAY_CHANGE = ("minAvailable", "priorityClassName")
TASK_MAY_CHANGE = ("replicas", "minAvailable")
NOT_NEGATIVE = {
    "minAvailable": "job 'minAvailable' must be >= 0",
    "maxRetry": "'maxRetry' cannot be less than zero",
    "ttlSecondsAfterFinished": "'ttlSecondsAfterFinished' cannot be less than zero",
}


def mutate(job: Object, lister: Lister, settings: Settings) -> Object:
    result: Object = copied(job)
    spec = result.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or settings.scheduler_names[0]
    spec["maxRetry"] = spec.get("maxRetry") or job_spec.MAX_RETRY
    for index, task in enumerate(job_spec.tasks(result)):
        _default_task(task, index)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = job_spec.total_min_available(result)
    if spec.get("plugins"):
        spec["plugins"] = with_implied(spec["plugins"])
    return result


def _default_task(task: Object, index: int) -> None:
    task["name"] = task.get("name") or f"default{index}"
    task["maxRetry"] = task.get("maxRetry") or job_spec.MAX_RETRY
    pod = spec_of(task.get("template") or {})
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.get("minAvailable") is None:
        partition = task.get("partitionPolicy") or {}
        least = int(partition.get("minPartitions") or 0) * job_spec.partition_size(task)
        task["minAvailable"] = least or job_spec.replicas(task)


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    problems = list(_ranges(new))
    if operation == CREATE:
        return [*problems, *_job(new), *task_problems(new), *_plugins(new), *_hosts(new), *_volumes(new), *_queue(new, lister)]
    return [*problems, *_changes(mutate(new, lister, settings), mutate(old or new, lister, settings))]


def _ranges(job: Object) -> Iterator[Problem]:
    """The problems that are found at creation and at updates: counts that are negative or do not fit together."""
    spec, tasks = spec_of(job), job_spec.tasks(job)
    for field, message in NOT_NEGATIVE.items():
        if (spec.get(field) or 0) < 0:
            yield Problem(f"spec.{field}", f"{message}; {spec[field]} found")
    for index, task in enumerate(tasks):
        field, place = f"spec.tasks[{index}]", f"in task: {job_spec.task_name(job, task)}, job: {name_of(job)}"
        for name in ("replicas", "minAvailable"):
            if (task.get(name) or 0) < 0:
                yield Problem(f"{field}.{name}", f"'{name}' < 0 {place}; write 0 or more")
        if (task.get("replicas") or 0) > job_spec.MOST_REPLICAS:
            yield Problem(f"{field}.replicas", f"'replicas' is too great {place}; write at most {job_spec.MOST_REPLICAS}")
        replicas = job_spec.replicas(task)
        if job_spec.task_min_available(task) > replicas >= 0:
            yield Problem(f"{field}.minAvailable", f"'minAvailable' is greater than 'replicas' {place}; write at most {replicas}")
    total = job_spec.total_replicas(job)
    if tasks and job_spec.min_available(job) > total >= 0:
        message = "job 'minAvailable' should not be greater than total replicas in tasks"
        yield Problem("spec.minAvailable", f"{message}; write at most {total}")


def _job(job: Object) -> Iterator[Problem]:
    spec = spec_of(job)
    if len(name_of(job)) > LONGEST_NAME:
        found = f'"{name_of(job)}" has {len(name_of(job))} characters'
        yield Problem("metadata.name", f"{found} and is written on pods as a label; write at most {LONGEST_NAME}")
    if not job_spec.tasks(job):
        yield Problem("spec.tasks", "No task specified in job spec; describe the pods of at least one")
    if spec.get("minSuccess") is not None and spec["minSuccess"] < 1:
        yield Problem("spec.minSuccess", f"{spec['minSuccess']} pods succeed at once; write 1 or more, or leave it out")
    yield from policy_problems(spec.get("policies") or [], "spec.policies")
    yield from topology(spec.get("networkTopology"), "spec.networkTopology")


def _plugins(job: Object) -> Iterator[Problem]:
    plugins = spec_of(job).get("plugins") or {}
    for name in plugins:
        if name not in NAMES:
            yield Problem(
                f"spec.plugins.{name}",
                f"unable to find job plugin: {name}{did_you_mean(name, NAMES)}; known are {', '.join(sorted(NAMES))}",
            )
    for name in sorted(PORTS.keys() & plugins.keys()):
        for flag, text in flags(plugins[name] or [], dict.fromkeys(PORTS[name], "")).items():
            if text and not is_port(text):
                yield Problem(f"spec.plugins.{name}", f'--{flag}: "{text}" is not a port; write a number from 1 to 65535')
    for flag, text in flags(plugins.get("ringsconfigmap") or [], TEXTS).items():
        if texts(text) is None:
            yield Problem("spec.plugins.ringsconfigmap", f'--{flag}: "{text}" is not JSON of texts; write such as {{"name": "value"}}')
    if "mpi" in plugins:
        roles = flags(plugins["mpi"] or [], {"master": "master", "worker": "worker"})
        for role, task in roles.items():
            if job_spec.task_named(job, task) is None:
                yield Problem("spec.plugins.mpi", f'no task is called "{task}"; add it, or name the {role} with --{role}=TASK')


def _hosts(job: Object) -> Iterator[Problem]:
    """The problems with names: plugins call Services and volumes after the job; with svc, the names of pods are host names."""
    plugins = with_implied(spec_of(job).get("plugins") or {})
    for plugin, (made, ending) in CALLED_AFTER_JOB.items():
        if plugin in plugins and not is_label(name_of(job) + ending):
            found = f'"{name_of(job)}{ending}" cannot name the {made} that plugin {plugin} makes'
            yield Problem("metadata.name", f'{found}; write up to {LONGEST_NAME - len(ending)} lower case letters, digits and "-"')
            break
    if "svc" not in plugins:
        return
    for index, task in enumerate(job_spec.tasks(job)):
        last = job_spec.pod_name(job, job_spec.task_name(job, task), max(0, job_spec.replicas(task) - 1))
        if len(last) > LONGEST_NAME and not spec_of(task.get("template") or {}).get("hostname"):
            found = f'its pods would be called "{last}"'
            yield Problem(f"spec.tasks[{index}].name", f"{found}, which is too long for a host (plugin svc); shorten it or the job's name")


def _volumes(job: Object) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, volume in enumerate(spec_of(job).get("volumes") or ()):
        field, path = f"spec.volumes[{index}]", volume.get("mountPath") or ""
        if not path:
            yield Problem(f"{field}.mountPath", "mountPath is required; write where the volume is to appear, such as /data")
        elif path in seen:
            yield Problem(f"{field}.mountPath", f"duplicated mountPath: {path}; write another path")
        seen.add(path)
        name, claim = volume.get("volumeClaimName") or "", volume.get("volumeClaim")
        if bool(name) == bool(claim):
            message = (
                "conflict: both VolumeClaimName and VolumeClaim given"
                if name
                else "either VolumeClaim or VolumeClaimName must be specified"
            )
            yield Problem(field, f"{message}; write one: what to claim, or an existing claim")
        elif name and not is_subdomain(name):
            yield Problem(f"{field}.volumeClaimName", f'"{name}" is not a name; write that of a PersistentVolumeClaim')


def _queue(job: Object, lister: Lister) -> Iterator[Problem]:
    name = job_spec.queue_name(job)
    if name == ROOT_QUEUE:
        yield Problem("spec.queue", "can not submit job to root queue, which holds other queues and no jobs; name a queue below it")
        return
    yield from open_queue(name, lister, "job")
    children = [name_of(child) for child in lister.by_field(kinds.QUEUE, "spec.parent", name)]
    if children:
        yield Problem(
            "spec.queue",
            f"can only submit job to leaf queue, queue `{name}` holds other queues; name one below it, such as `{children[0]}`",
        )


def _changes(new: Object, old: Object) -> Iterator[Problem]:
    """The problems of an update: fields that may not change. Both versions have their defaults, so applying a file again removes none."""
    before, after = (_fixed(job) for job in (old, new))
    if len(before["tasks"]) != len(after["tasks"]):
        yield Problem("spec.tasks", "job updates may not add or remove tasks; delete the job and create it anew")
        return
    fields = [*(f"`{name}`" for name in MAY_CHANGE), *(f"`tasks[*].{name}`" for name in TASK_MAY_CHANGE)]
    refusal = f"job updates may not change fields other than {', '.join(fields)} under spec"
    for name in sorted(before.keys() | after.keys()):
        if name != "tasks" and meaning(before.get(name), name) != meaning(after.get(name), name):
            yield Problem(f"spec.{name}", refusal)
    for index, (was, is_now) in enumerate(zip(before["tasks"], after["tasks"], strict=True)):
        for name in sorted(was.keys() | is_now.keys()):
            if meaning(was.get(name), name) != meaning(is_now.get(name), name):
                yield Problem(f"spec.tasks[{index}].{name}", refusal)


def _fixed(job: Object) -> Object:
    spec = {name: value for name, value in spec_of(job).items() if name not in MAY_CHANGE}
    spec["tasks"] = [{name: value for name, value in task.items() if name not in TASK_MAY_CHANGE} for task in job_spec.tasks(job)]
    spec["volumes"] = [_described(volume) for volume in spec.get("volumes") or ()]
    return spec


def _described(volume: Object) -> Object:
    """A volume as its user wrote it, without the name that the controller gives to a claim which it makes."""
    return {name: value for name, value in volume.items() if name != "volumeClaimName" or not volume.get("volumeClaim")}
