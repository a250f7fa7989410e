"""The base class of job plugins, their arguments, and the changes to pods that several plugins need."""

from collections.abc import Iterator, Mapping, Sequence

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of, spec_of, uid_of
from pumice.api.json_objects import controlled_by, controller_of
from pumice.api.kinds import kind_of
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.writes import Write, delete


class JobPlugin:
    """The base class of job plugins. A method that a plugin does not override does nothing."""

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        """The writes that create and update the objects which the job needs beside its pods."""
        return []

    def remove(self, job: Object, lister: Lister) -> list[Write]:
        """The writes that delete these objects, because an attempt of the job is over."""
        return []

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        """Change a pod that is about to be created."""


def owned(job: Object, kind: str, name: str, **fields: object) -> Object:
    """A new object that the job owns. By its label the controllers find it."""
    made = kinds.new(kind, namespace_of(job), name, **fields)
    made["metadata"] |= {"labels": {key.JOB_NAME: name_of(job)}, "ownerReferences": [controlled_by(job)]}
    return made


def present(job: Object, kind: str, name: str, lister: Lister) -> Object | None:
    """The object of this name. Not one of an earlier job of the same name: it is on its way out, or gone although nobody has told us so."""
    found = lister.get(kind, namespace_of(job), name)
    owner = controller_of(found) if found is not None else None
    earlier = owner is not None and (kind_of(owner), owner["name"]) == (kinds.JOB, name_of(job)) and owner["uid"] != uid_of(job)
    return None if earlier else found


def removed(job: Object, kind: str, name: str, lister: Lister) -> list[Write]:
    """The write that deletes an object of the job; an object of this name with another owner stays."""
    found = lister.get(kind, namespace_of(job), name)
    owner = controller_of(found) if found is not None else None
    return [delete(found)] if found is not None and owner is not None and owner["uid"] == uid_of(job) else []


def flags(arguments: Sequence[str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The values of `--name=value`, `--name value` and bare `--name` (true), else the defaults. Unknown flags are ignored."""
    found = dict(defaults)
    words = iter([*arguments, ""])
    word = next(words)
    while word:
        following = next(words, "")
        name, equals, value = word.lstrip("-").partition("=")
        takes_next = not equals and bool(following) and not following.startswith("-")
        if name in found:
            found[name] = value if equals else following if takes_next else "true"
        word = next(words, "") if takes_next else following
    return found


def is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536


def port(given: str, default: str) -> int:
    """The port that an argument states; the default if the argument is not a port."""
    return int(given if is_port(given) else default)


def containers(pod: Object) -> Iterator[Object]:
    for part in ("initContainers", "containers"):
        yield from pod["spec"].get(part) or ()


def set_env(pod: Object, **variables: str | Object) -> None:
    """Set environment variables in every container. A value is a text, or a source for `valueFrom`."""
    for container in containers(pod):
        env = container.setdefault("env", [])
        env.extend({"name": name, "value" if isinstance(value, str) else "valueFrom": value} for name, value in variables.items())


def open_port(pod: Object, name: str, port: int) -> None:
    """Declare a port in every container that does not have a port of this number. Init containers are left out."""
    for container in pod["spec"].get("containers") or ():
        ports = container.setdefault("ports", [])
        if all(each.get("containerPort") != port for each in ports):
            ports.append({"name": name, "containerPort": port, "protocol": "TCP"})


def mount(pod: Object, volume: Object, path: str, folder: str = "") -> None:
    """Add a volume to a pod, and mount it, or one folder of it, in every container."""
    pod["spec"].setdefault("volumes", []).append(volume)
    place = {"name": volume["name"], "mountPath": path} | ({"subPath": folder} if folder else {})
    for container in containers(pod):
        container.setdefault("volumeMounts", []).append(dict(place))


def hosts(job: Object, task: Object) -> list[str]:
    """The host names by which the pods of a job reach the pods of this task."""
    template = spec_of(task.get("template") or {})
    domain = template.get("subdomain") or name_of(job)
    if template.get("hostname"):
        return [f"{template['hostname']}.{domain}"]
    return [f"{spec.pod_name(job, spec.task_name(job, task), index)}.{domain}" for index in range(spec.replicas(task))]


def hosts_of(job: Object, task_name: str) -> list[str]:
    task = spec.task_named(job, task_name)
    return hosts(job, task) if task is not None else []


def number_of(job: Object, task_name: str) -> int:
    """How many pods a task has."""
    task = spec.task_named(job, task_name)
    return spec.replicas(task) if task is not None else 0


class Env(JobPlugin):
    """env: every container gets the index of its pod within the task as a variable, under Volcano's name and under the old one."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Takes no arguments."""

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        set_env(pod, VK_TASK_INDEX=str(index), VC_TASK_INDEX=str(index))
