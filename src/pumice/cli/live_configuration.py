"""The configuration in force on a live cluster, found where its scheduler reads it; the answer to a question names it in one line.

In this order: a cluster of `pumice up` tells its configuration at a path of its API server. Else it is the ConfigMap that the scheduler's
Deployment (or StatefulSet) mounts where its --scheduler-conf points. Else a ConfigMap with the name that Volcano's installation gives it.
Else the built-in configuration, as of a scheduler that is started without any.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from pumice.api import name_of, namespace_of
from pumice.api.kinds import CONFIG_MAPS, DEPLOYMENTS, STATEFUL_SETS, ObjectRef
from pumice.api.manifests import CONFIG_MAP_KEYS, ConfigText
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, as_dict
from pumice.scheduler.config import config_text

CONFIGURATION_PATH = "/pumice/configuration"  #: at which the API server of `pumice up` tells the configuration of its scheduler
CONFIG_MAP = "volcano-scheduler-configmap"
LABELS = "app=volcano-scheduler"  #: of the scheduler's Deployment, in Volcano's installation and in ours
PROGRAMS = ("vc-scheduler", "scheduler")
FLAG = "--scheduler-conf"
_NO_QUOTES = str.maketrans("'\"", "  ")


class InForce(Struct, frozen=True):
    """The configurations in force; none if they are the built-in ones."""

    where: str  #: in words
    texts: list[ConfigText]
    plugins_dir: str | None = None


class ConfigurationInForce(Struct, rename="camel"):
    """What the API server of `pumice up` tells about the configuration of its scheduler."""

    where: str
    texts: list[str]
    plugins_dir: str | None = None


async def in_force(client: Client) -> InForce:
    """The configuration in force. What may not be read is taken as not there. Raises KubeError."""
    with suppress(ApiError):
        in_use = msgspec.json.decode(await client.get_path(CONFIGURATION_PATH), type=ConfigurationInForce)
        return InForce(f"{in_use.where}, of its pumice up", [config_text(text, in_use.where) for text in in_use.texts], in_use.plugins_dir)
    async for kind, workload in _schedulers(client):
        if (found := await _mounted(client, f"{kind} {namespace_of(workload)}/{name_of(workload)}", workload)) is not None:
            return found
    async for config_map in _listed(client, ListScope(CONFIG_MAPS, field_selector=f"metadata.name={CONFIG_MAP}")):
        if (key := next((key for key in CONFIG_MAP_KEYS if key in (config_map.get("data") or {})), None)) is not None:
            return _of(config_map, key, "no Deployment of a scheduler was found")
    return InForce("the built-in one, as no other was found; name another with --conf", [])


async def _schedulers(client: Client) -> Any:
    """The workloads that run a scheduler: those with the label of an installation, else those that run its program."""
    for labels in (LABELS, ""):
        found = False
        for kind in (DEPLOYMENTS, STATEFUL_SETS):
            async for workload in _listed(client, ListScope(kind, label_selector=labels)):
                if any(_is_scheduler(container) for container in _pod_spec(workload).get("containers") or ()):
                    found = True
                    yield kind.kind, workload
        if found:
            return


async def _listed(client: Client, scope: ListScope) -> Any:
    with suppress(ApiError):
        async for page in client.pages(scope):
            for raw in page.items:
                yield as_dict(raw)


def _pod_spec(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec


def _words(container: dict[str, Any]) -> list[str]:
    """The command and the arguments of a container, word by word, also where a shell is given them as one text."""
    texts = [*(container.get("command") or ()), *(container.get("args") or ())]
    return " ".join(map(str, texts)).translate(_NO_QUOTES).split()


def _is_scheduler(container: dict[str, Any]) -> bool:
    words = _words(container)
    names = [word.rpartition("/")[2] for word in words]
    return any(name in PROGRAMS for name in names) or any(word.startswith(FLAG) for word in words)


async def _mounted(client: Client, whose: str, workload: dict[str, Any]) -> InForce | None:
    """The configuration that a workload mounts; the built-in one if it names none. None if it cannot be read."""
    container = next(each for each in _pod_spec(workload)["containers"] if _is_scheduler(each))
    path = _flag(_words(container))
    if not path:
        return InForce(f"the built-in one, as {whose} names no {FLAG}", [])
    place = next(_places(path, container, _pod_spec(workload)), None)
    if place is None:
        return None
    name, key = place
    with suppress(ApiError):
        config_map = as_dict(await client.get(CONFIG_MAPS, ObjectRef(name, namespace_of(workload))))
        if key in (config_map.get("data") or {}):
            return _of(config_map, key, f"which {whose} mounts")
    return None


def _flag(words: list[str]) -> str:
    """The value of the last --scheduler-conf among the words; empty without one."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{FLAG}=")]
    values += [after for word, after in pairwise(words) if word == FLAG]
    return values[-1] if values else ""


def _places(path: str, container: dict[str, Any], spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The ConfigMap and the key that are mounted at this path, the innermost mount first."""
    volumes = {volume["name"]: volume.get("configMap") for volume in spec.get("volumes") or ()}
    for mount in sorted(container.get("volumeMounts") or (), key=lambda each: -len(each["mountPath"])):
        source, at = volumes.get(mount["name"]), mount["mountPath"].rstrip("/")
        if not source or not f"{path}/".startswith(f"{at}/"):
            continue
        inside = mount.get("subPath") or path.removeprefix(at).lstrip("/")
        keys = {item["path"]: item["key"] for item in source.get("items") or ()}
        yield source["name"], keys.get(inside, inside)


def _of(config_map: dict[str, Any], key: str, why: str) -> InForce:
    where = f"ConfigMap {namespace_of(config_map)}/{name_of(config_map)}"
    text = config_text(config_map["data"][key], f"{where}, {key}")
    text.key = key
    return InForce(f"that of {where} ({key}), {why}", [text])
