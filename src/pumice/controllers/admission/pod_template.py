"""Rules for the pod template of a task: what would make every pod of it be refused."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from pumice.controllers.admission.problem import A_LABEL, Problem, amounts, is_label, one_of
from pumice.controllers.objects import Object, spec_of


def problems(template: Object, field: str) -> Iterator[Problem]:
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
    names = [volume.get("name") or "" for volume in volumes]
    for index, name in enumerate(names):
        if not is_label(name):
            yield Problem(f"{field}[{index}].name", f'Invalid value: "{name}": {A_LABEL}')
        elif name in names[:index]:
            yield Problem(f"{field}[{index}].name", f'Duplicate value: "{name}"; volumes are told apart by name')


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
