"""Rules for the tasks of a Job: names, dependencies, partitions, valid pod templates; and lifecycle policies.

A policy answers events or one exit code with an action, and no event or exit code is answered twice. The whole Job may have policies too.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from pumice.api import Object, duration, name_of, spec_of
from pumice.api.dns_names import is_label
from pumice.api.quantity import QuantityError, quantity
from pumice.controllers.admission.podgroup import topology
from pumice.controllers.admission.problem import A_LABEL, KnownNames, Problem, amounts, loop, one_of, readable
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.event import ANY, events_of

EVENTS = (ANY, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
ACTIONS = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob")
TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
LONGEST_NAME = 63  #: of a text that is the value of a label or the name of a host


def task_problems(job: Object) -> Iterator[Problem]:
    names = [job_spec.task_name(job, task) for task in job_spec.tasks(job)]
    known, earlier = KnownNames(names), set[str]()
    graph = {}
    for index, task in enumerate(job_spec.tasks(job)):
        field = f"spec.tasks[{index}]"
        yield from _task_name(job, names[index], index, earlier, field)
        earlier.add(names[index])
        yield from policy_problems(task.get("policies") or [], f"{field}.policies")
        yield from readable(f"{field}.template", _template(task, field))
        yield from _partitions(task, field)
        graph[names[index]] = list((task.get("dependsOn") or {}).get("name") or ())
        for number, other in enumerate(graph[names[index]]):
            if other not in known:
                yield Problem(f"{field}.dependsOn.name[{number}]", f'"{other}" is not a task of this job{known.hint(other)}')
    circle = loop(graph)
    if circle:
        yield Problem("spec.tasks", f"{' > '.join(circle)} depend on each other in a loop; let one of them depend on less")


def _task_name(job: Object, name: str, index: int, earlier: Container[str], field: str) -> Iterator[Problem]:
    if not is_label(name):
        yield Problem(f"{field}.name", f'"{name}" is not a name: {A_LABEL}')
    elif name in earlier:
        yield Problem(f"{field}.name", f"duplicated task name {name}; tasks are told apart by name")
    elif len(name_of(job)) <= LONGEST_NAME < len(pod := job_spec.pod_name(job, name, index)):
        problem = f"create pod with name {pod} validate failed: it has {len(pod)} characters, {LONGEST_NAME} are allowed"
        yield Problem(f"{field}.name", f"{problem}; shorten it or the job's name")


def _template(task: Object, field: str) -> Iterator[Problem]:
    yield from _pod_template(task.get("template") or {}, f"{field}.template")
    yield from _numa(task, field)


def _numa(task: Object, field: str) -> Iterator[Problem]:
    policy = task.get("topologyPolicy") or None
    yield from one_of(policy, TOPOLOGY_POLICIES, f"{field}.topologyPolicy")
    if policy in (None, "none"):
        return
    pod = spec_of(task.get("template") or {})
    for part in ("containers", "initContainers"):
        for number, container in enumerate(pod.get(part) or ()):
            resources = container.get("resources") or {}
            cpu = (resources.get("requests") or {}).get("cpu", (resources.get("limits") or {}).get("cpu"))
            if not _whole_cpus(cpu):
                where = f"{field}.template.spec.{part}[{number}].resources.requests.cpu"
                found = f'"{cpu}"' if cpu else "nothing"
                yield Problem(where, f'{found} found; topologyPolicy {policy} needs whole CPUs, such as "2"')


def _whole_cpus(cpu: Any) -> bool:
    try:
        return cpu is not None and quantity(cpu).milli > 0 and quantity(cpu).milli % 1000 == 0
    except QuantityError:
        return False


def _partitions(task: Object, field: str) -> Iterator[Problem]:
    partition = task.get("partitionPolicy")
    if not partition:
        return
    field = f"{field}.partitionPolicy"
    total, size, least = (int(partition.get(name) or 0) for name in ("totalPartitions", "partitionSize", "minPartitions"))
    for name, value in (("totalPartitions", total), ("partitionSize", size)):
        if value <= 0:
            yield Problem(f"{field}.{name}", f"{value} found; write 1 or more")
    if total > 0 and size > 0 and total * size != job_spec.replicas(task):
        replicas = job_spec.replicas(task)
        yield Problem(field, f"{total} partitions of {size} are {total * size} pods, but replicas is {replicas}; make them equal")
    stated = task.get("minAvailable")
    if least and stated is not None and least * size != stated:
        yield Problem(field, f"{least} partitions of {size} are {least * size} pods, but minAvailable is {stated}; make them equal")
    yield from topology(partition.get("networkTopology"), f"{field}.networkTopology")


def _pod_template(template: Object, field: str) -> Iterator[Problem]:
    spec = spec_of(template)
    yield from one_of(spec.get("restartPolicy") or None, ("Always", "OnFailure", "Never"), f"{field}.spec.restartPolicy")
    if not spec.get("containers"):
        yield Problem(f"{field}.spec.containers", "Required value: a pod needs at least one container")
    yield from _volumes(spec.get("volumes") or (), f"{field}.spec.volumes")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    seen: set[str] = set()
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part) or ()):
            where = f"{field}.spec.{part}[{index}]"
            name = container.get("name") or ""
            if not is_label(name):
                yield Problem(f"{where}.name", f'Invalid value: "{name}": {A_LABEL}')
            elif name in seen:
                yield Problem(f"{where}.name", f'Duplicate value: "{name}"; containers are told apart by name')
            seen.add(name)
            if not container.get("image"):
                yield Problem(f"{where}.image", "Required value: write the image to run")
            yield from _resources(container.get("resources") or {}, f"{where}.resources")
            yield from _ports_and_mounts(container, volumes, where)


def _volumes(volumes: Sequence[Object], field: str) -> Iterator[Problem]:
    earlier: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name") or ""
        if not is_label(name):
            yield Problem(f"{field}[{index}].name", f'Invalid value: "{name}": {A_LABEL}')
        elif name in earlier:
            yield Problem(f"{field}[{index}].name", f'Duplicate value: "{name}"; volumes are told apart by name')
        earlier.add(name)


def _ports_and_mounts(container: Object, volumes: Container[str], where: str) -> Iterator[Problem]:
    for index, port in enumerate(container.get("ports") or ()):
        number = port.get("containerPort") or 0
        if not 0 < number < 65536:
            yield Problem(f"{where}.ports[{index}].containerPort", f"Invalid value: {number}: must be between 1 and 65535, inclusive")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            found = mount.get("name") or ""
            yield Problem(f"{where}.volumeMounts[{index}].name", f'Not found: "{found}"; name one of the volumes of the pod')
        if not mount.get("mountPath"):
            yield Problem(f"{where}.volumeMounts[{index}].mountPath", "Required value: write where the volume is to appear, such as /data")


def _resources(resources: Object, field: str) -> Iterator[Problem]:
    requests, unread = amounts(resources.get("requests"), f"{field}.requests")
    limits, more = amounts(resources.get("limits"), f"{field}.limits")
    yield from (*unread, *more)
    for name, amount in requests.items():
        if amount > limits.get(name, amount):
            found, most = resources["requests"][name], resources["limits"][name]
            yield Problem(f"{field}.requests.{name}", f'"{found}" is more than the limit "{most}"; write at most that')


def policy_problems(policies: Sequence[Object], field: str) -> Iterator[Problem]:
    seen: set[str | int] = set()
    for index, policy in enumerate(policies):
        where = f"{field}[{index}]"
        yield from _policy(policy, where)
        events: list[str | int] = [*dict.fromkeys(events_of(policy))]
        answered = [*events, policy["exitCode"]] if policy.get("exitCode") is not None else events
        for cause in answered:
            if cause in seen:
                what = "event" if isinstance(cause, str) else "exitCode"
                yield Problem(where, f"duplicate {what} {cause}: an earlier policy answers it already; keep one of them")
            seen.add(cause)
    if ANY in seen and sum(isinstance(cause, str) for cause in seen) > 1:
        yield Problem(field, f"if there's {ANY} here, no other policy should be here: it answers every event; leave the others out")


def _policy(policy: Object, where: str) -> Iterator[Problem]:
    events, exit_code = events_of(policy), policy.get("exitCode")
    if events and exit_code is not None:
        yield Problem(where, "must not specify event and exitCode simultaneously; write one of them")
    if not events and exit_code is None:
        yield Problem(where, "either event and exitCode should be specified; write one of them")
    if exit_code == 0:
        yield Problem(f"{where}.exitCode", "0 is not a valid error code, for it means success; write that of a failure")
    for event in events:
        if event not in EVENTS:
            yield Problem(f"{where}.event", f'invalid policy event "{event}"; write one of {", ".join(EVENTS)}')
    if policy.get("action") not in ACTIONS:
        yield Problem(f"{where}.action", f'invalid policy action "{policy.get("action") or ""}"; write one of {", ".join(ACTIONS)}')
    try:
        duration(policy.get("timeout") or "0")
    except ValueError as error:
        yield Problem(f"{where}.timeout", str(error))
