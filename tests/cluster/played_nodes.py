"""Nodes that nobody has: what is bound starts, sleeps and exits as its command says, and ends when it is asked to.

Enough for suites that were written for real containers of busybox and nginx. A command that is not known is not found: exit code 127.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pumice.api.kinds import NODES, PODS, VOLUME_CLAIMS, VOLUMES, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError, KubeError
from pumice.client.known_versions import Change, Deleted
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.transport import ListScope, PatchType, as_dict

Body = dict[str, Any]
STARTS_S, STOPS_S, AGAIN_S = 0.3, 1.0, 1.0
PULLED_S = 10.0  #: until an image of somebody's (its name has a slash) is there
FOR_EVER = float("inf")
PROVISIONER = "example.com/played"
SELECTED = "volume.kubernetes.io/selected-node"
TRAPPED = re.compile(r"trap '' TERM")
DONE = ("echo", "env", "mkdir", "true")
PROGRAMS = ("mpiexec", "python", "python3")  #: of images that nobody has here: they end well after a while
WORKS_S = 5.0
STAYS = ("sshd -D", "ray start", "nginx")


class Ending(NamedTuple):
    after_s: float
    code: int


def ending(container: Body) -> Ending:
    """When and how a container ends by itself."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not words:
        return Ending(FOR_EVER, 0) if "busybox" not in container["image"] else Ending(0.0, 0)
    script = words[2] if len(words) > 2 and words[0].endswith("sh") and words[1] == "-c" else " ".join(words)
    return _of_script(script)


def _of_script(script: str) -> Ending:
    """Lines one after the other; `&&` goes on only after success."""
    spent, code = 0.0, 0
    for line in re.split(r";|\n", script):
        for command in filter(None, map(str.strip, line.split("&&"))):
            took, code, exits = _of_command(command)
            spent += took
            if exits:
                return Ending(spent, code)
            if code:
                break
    return Ending(spent, code)


def _of_command(command: str) -> tuple[float, int, bool]:
    """How long it takes, its code, and whether the shell ends with it."""
    if any(word in command for word in STAYS):
        return FOR_EVER, 0, True
    name, *rest = command.split()
    if name == "sleep":
        return float(rest[0].removesuffix("s")), 0, False
    if name == "exit":
        return 0.0, int(rest[0]), True
    if name in PROGRAMS:
        return WORKS_S, 0, False
    known = name.rpartition("/")[2] in (*DONE, "trap", "sshd") or "=" in name
    return 0.0, 0 if known else 127, False


class PlayedNodes:
    """Kubelets of all nodes, and who makes volumes for claims of the class `standard`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lives: dict[str, asyncio.Task[None]] = {}  #: by uid
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._addresses = (f"10.200.{number // 250 % 250}.{number % 250 + 1}" for number in itertools.count())

    async def run(self) -> None:
        """For good."""
        pods = Reflector(self._client, ListScope(PODS), as_dict, self._heard, metadata=dict_metadata)
        claims = Reflector(self._client, ListScope(VOLUME_CLAIMS), as_dict, self._claimed, metadata=dict_metadata)
        async with asyncio.TaskGroup() as group:
            group.create_task(pods.run())
            group.create_task(claims.run())

    def _heard(self, change: Change[Body]) -> None:
        if isinstance(change, Deleted):
            for tasks in (self._lives, self._ends):
                if (task := tasks.pop(change.uid, None)) is not None:
                    task.cancel()
            return
        pod = change.object
        uid = pod["metadata"]["uid"]
        bound = pod["spec"].get("nodeName")
        if bound and uid not in self._lives and pod["status"].get("phase") == "Pending":
            self._lives[uid] = asyncio.create_task(self._life(pod))
        if bound and pod["metadata"].get("deletionTimestamp") and uid not in self._ends:
            self._ends[uid] = asyncio.create_task(self._end(pod))

    async def _life(self, pod: Body) -> None:
        with suppress(ApiError):  # it is gone
            await asyncio.sleep(PULLED_S if any("/" in each["image"] for each in pod["spec"]["containers"]) else STARTS_S)
            address = next(self._addresses)
            policy = pod["spec"].get("restartPolicy", "Always")
            runs = [_Container(each, policy) for each in pod["spec"]["containers"]]
            while True:
                await self._report(pod, address, runs)
                coming = min((run.next_s for run in runs), default=FOR_EVER)
                if coming == FOR_EVER:
                    return
                await asyncio.sleep(coming)
                for run in runs:
                    run.pass_time(coming)

    async def _report(self, pod: Body, address: str, runs: list[_Container]) -> None:
        states = [run.status() for run in runs]
        over = all("terminated" in each["state"] for each in states)
        failed = any(each["state"].get("terminated", {}).get("exitCode") for each in states)
        phase = ("Failed" if failed else "Succeeded") if over else "Running"
        ready = "True" if all(each["ready"] for each in states) else "False"
        kinds = {"Initialized": "True", "PodReadyToStartContainers": "True", "ContainersReady": ready, "Ready": ready}
        conditions = [{"type": kind, "status": status, "lastTransitionTime": _now()} for kind, status in kinds.items()]
        status = {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "10.199.0.1",
            "startTime": _now(),
            "conditions": conditions,
            "containerStatuses": states,
        }
        await self._write(pod, status)

    async def _end(self, pod: Body) -> None:
        """A process that ignores the signal has its whole time."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        stubborn = any(TRAPPED.search(" ".join(each.get("command") or ())) for each in pod["spec"]["containers"])
        await asyncio.sleep(grace if stubborn else min(grace, STOPS_S))
        with suppress(KubeError):
            await self._client.delete(PODS, _ref(pod), grace_s=0)

    async def _write(self, pod: Body, status: Body) -> None:
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._client.patch(PODS, _ref(pod), patch, PatchType.STRATEGIC, subresource="status")

    def _claimed(self, change: Change[Body]) -> None:
        if not isinstance(change, Deleted):
            claim = change.object
            node = (claim["metadata"].get("annotations") or {}).get(SELECTED)
            if node and not claim["spec"].get("volumeName") and claim["metadata"]["uid"] not in self._lives:
                self._lives[claim["metadata"]["uid"]] = asyncio.create_task(self._provide(claim, node))

    async def _provide(self, claim: Body, node: str) -> None:
        meta = claim["metadata"]
        there = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
        spec = {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **{key: meta[key] for key in ("name", "namespace", "uid")}},
            "hostPath": {"path": "/tmp/played"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": there}},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": claim["spec"]["storageClassName"],
        }
        made = {"metadata": {"name": f"pvc-{meta['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}, "spec": spec}
        with suppress(ApiError):
            await self._client.create(VOLUMES, made)


class _Container:
    """One container, from run to run."""

    def __init__(self, container: Body, policy: str) -> None:
        self._name, self._image, self._policy = container["name"], container["image"], policy
        self._ending = ending(container)
        self._restarts = 0
        self._code: int | None = None  #: after its end
        self.next_s = self._ending.after_s

    def pass_time(self, seconds: float) -> None:
        self.next_s -= seconds
        if self.next_s > 0:
            return
        if self._code is None:
            self._code = self._ending.code
            again = self._policy == "Always" or (self._policy == "OnFailure" and self._code)
            self.next_s = AGAIN_S if again else FOR_EVER
        else:
            self._code, self.next_s = None, self._ending.after_s
            self._restarts += 1

    def status(self) -> Body:
        state: Body = {"running": {"startedAt": _now()}}
        if self._code is not None:
            state = {"terminated": {"exitCode": self._code, "reason": "Error" if self._code else "Completed", "finishedAt": _now()}}
            if self.next_s != FOR_EVER:
                state = {"waiting": {"reason": "CrashLoopBackOff"}}
        head = {"name": self._name, "image": self._image, "imageID": self._image, "restartCount": self._restarts}
        return {**head, "state": state, "ready": self._code is None, "started": self._code is None}


async def add_node(client: Client, name: str, amounts: dict[str, str], labels: dict[str, str] | None = None, taint: str = "") -> None:
    """A node that is ready."""
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    await client.create(NODES, {"metadata": {"name": name, "labels": usual | (labels or {})}})
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now(), "lastTransitionTime": _now()}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions, "addresses": [{"type": "Hostname", "address": name}]}
    await client.patch(NODES, ObjectRef(name), {"status": status}, PatchType.MERGE, subresource="status")
    key, _, value = taint.partition("=")
    taints = [{"key": key, "value": value, "effect": "NoSchedule"}] if taint else None
    await client.patch(NODES, ObjectRef(name), {"spec": {"taints": taints}}, PatchType.MERGE)


def _ref(pod: Body) -> ObjectRef:
    meta = pod["metadata"]
    return ObjectRef(meta["name"], meta["namespace"], meta["uid"])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
