"""An API server in memory, as a Transport: what the live loop is tested against, without a network.

It keeps the real one's promises: rising resource versions, optimistic locking, 404, 409, watches that go on from a
version, subresources that write only their part. It also watches over the promises that are made to users: `breaches` lists every bind
that put a node above its allocatable cpu, or that was asked for a pod which stands elsewhere. Its kubelets are instant or as slow as
`start_s` and `stop_s` say. It can be away for a while, and have forgotten earlier versions when it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

import msgspec

from pumice.api.kinds import NODES, POD_GROUPS, PODS, QUEUES, Kind, ObjectRef
from pumice.api.quantity import quantity
from pumice.api.times import rfc3339
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.transport import ListScope, Page, PatchType

Object = dict[str, Any]
Key = tuple[str, str, str]  #: plural, namespace, name


class MemoryServer:
    """See the module. `writes` holds every write that arrived: verb, plural, subresource, name."""

    def __init__(self, *, start_s: float | None = 0.5, stop_s: float = 0.5) -> None:
        self.objects: dict[Key, Object] = {}
        self.version = 100
        self.log: list[tuple[int, str, str, bytes]] = []  #: version, plural, kind of event, object
        self.writes: list[tuple[str, str, str, str]] = []
        self.breaches: list[str] = []
        self.deleted: list[str] = []  #: uids of pods that were deleted over the API, not by stories
        self.missing: set[str] = set()  #: plurals that this server does not know
        self.before_write: Callable[[str, Kind, str], None] = lambda verb, resource, name: None  #: may raise
        self._made = 0
        self._away = False
        self._oldest = 0  #: watches that go on from an earlier version are refused
        self._start_s = start_s
        self._stop_s = stop_s
        self._changed = asyncio.Condition()
        self._kubelets: set[asyncio.Task[None]] = set()

    # ---- for stories

    def put(self, resource: Kind, name: str, namespace: str = "default", **content: Any) -> Object:
        """Create or change an object."""
        key = (resource.plural, namespace if resource.namespaced else "", name)
        old = self.objects.get(key)
        meta = {"name": name, "uid": old["metadata"]["uid"] if old else self._uid(), "creationTimestamp": "2023-11-14T22:00:00Z"}
        meta |= {"namespace": namespace} if resource.namespaced else {}
        meta |= content.pop("metadata", {})
        return self._store(key, {**(old or {}), **content, "metadata": meta})

    def node(self, name: str, cpu: int = 2, **metadata: Any) -> Object:
        amounts = {"cpu": str(cpu), "memory": "100Gi", "pods": "110"}
        return self.put(NODES, name, metadata=metadata, status={"allocatable": amounts, "capacity": amounts})

    def queue(self, name: str = "default", **spec: Any) -> Object:
        return self.put(QUEUES, name, spec={"weight": 1, **spec}, status={"state": "Open"})

    def gang(self, name: str, pods: int, cpu: float = 1, *, minimum: int | None = None, queue: str = "default", **spec: Any) -> None:
        self.put(POD_GROUPS, name, spec={"minMember": pods if minimum is None else minimum, "queue": queue, **spec})
        for number in range(pods):
            self.pod(f"{name}-{number}", cpu, group=name)

    def pod(self, name: str, cpu: float = 1, *, group: str = "", node: str = "", scheduler: str = "volcano", **spec: Any) -> Object:
        annotations = {"annotations": {"scheduling.k8s.io/group-name": group}} if group else {}
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
        body = {"containers": [container], "schedulerName": scheduler, **({"nodeName": node} if node else {}), **spec}
        return self.put(PODS, name, metadata=annotations, spec=body, status={"phase": "Running" if node else "Pending"})

    def remove(self, resource: Kind, name: str, namespace: str = "default") -> None:
        key = (resource.plural, namespace if resource.namespaced else "", name)
        gone = self.objects.pop(key, None)
        if gone is not None:
            self._tell(key, "DELETED", gone)

    def found(self, resource: Kind, name: str, namespace: str = "default") -> Object:
        return self.objects[resource.plural, namespace if resource.namespaced else "", name]

    def all(self, resource: Kind) -> list[Object]:
        return [obj for (plural, _, _), obj in self.objects.items() if plural == resource.plural]

    def placed(self, prefix: str = "") -> dict[str, str]:
        """Pod to node."""
        pods = {obj["metadata"]["name"]: obj for obj in self.all(PODS) if "deletionTimestamp" not in obj["metadata"]}
        return {name: pod["spec"]["nodeName"] for name, pod in pods.items() if name.startswith(prefix) and pod["spec"].get("nodeName")}

    def running(self) -> int:
        return sum(obj["status"].get("phase") == "Running" for obj in self.all(PODS))

    async def outage(self, lasts_s: float, *, forgets: bool) -> None:
        """Killed, and started again."""
        self._away = True
        await self._wake()
        await asyncio.sleep(lasts_s)
        self._away = False
        if forgets:
            self._oldest = self.version

    # ---- Transport

    async def _reached(self) -> None:
        await asyncio.sleep(0)
        if self._away:
            raise NoAnswer("connection refused", sent=False)

    def check_fence(self) -> None:
        """There is none."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        await self._reached()
        return msgspec.json.encode(self._find(resource, ref))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        await self._reached()
        self._known(scope.resource)
        version, items = str(self.version), [msgspec.Raw(msgspec.json.encode(obj)) for obj in self.all(scope.resource)]
        step = limit or len(items) or 1
        for start in range(0, len(items) or 1, step):
            yield Page(items[start : start + step], version)
            await self._reached()

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        await self._reached()
        self._known(scope.resource)
        plural, position = scope.resource.plural, int(resource_version)
        if position < self._oldest:
            raise ApiError(410, "Expired", "too old resource version")
        deadline = asyncio.get_running_loop().time() + timeout_s
        at = 0
        while asyncio.get_running_loop().time() < deadline:
            if self._away:
                raise NoAnswer("connection lost", sent=True)
            news = [line for version, kind, _, line in self.log[at:] if kind == plural and version > position]
            at = len(self.log)
            if news:
                yield news
            await self._until_news(at, deadline)

    async def _until_news(self, at: int, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline), self._changed:
                await self._changed.wait_for(lambda: len(self.log) > at or self._away)
        except TimeoutError:
            pass

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        body = _plain(body)
        name = name or body["metadata"].get("name") or f"{body['metadata']['generateName']}{self._uid()}"
        body["metadata"].setdefault("name", name)
        await self._arrived("create", resource, subresource, name, body)
        if subresource == "binding":
            return self._bind(ObjectRef(name, namespace, body["metadata"].get("uid", "")), body)
        key = (resource.plural, namespace if resource.namespaced else "", name)
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", name)
        return msgspec.json.encode(self._store(key, {**body, "metadata": {**body["metadata"], "uid": self._uid()}}))

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        body = _plain(body)
        await self._arrived("update", resource, subresource, ref.name, body)
        old = self._find(resource, ref)
        if body["metadata"].get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        new = (
            {**old, "status": body["status"]} if subresource == "status" else {**body, "metadata": {**old["metadata"], **body["metadata"]}}
        )
        return msgspec.json.encode(self._store((resource.plural, old["metadata"].get("namespace", ""), ref.name), new))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        await self._arrived("patch", resource, subresource, ref.name, _plain(body))
        body, old = _plain(body), self._find(resource, ref)
        if body.get("metadata", {}).pop("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "another uid")
        if patch_type is PatchType.STRATEGIC:
            body.pop("metadata", None)
        if patch_type is PatchType.STRATEGIC and "schedulingGates" in (spec := body.get("spec", {})):
            gone = {gate["name"] for gate in spec["schedulingGates"] if gate.get("$patch") == "delete"}
            gates = [gate for gate in old["spec"].get("schedulingGates", ()) if gate["name"] not in gone]
            body = {"spec": {**old["spec"], "schedulingGates": gates}}
        new = _merged(old, body) if patch_type is PatchType.MERGE else {**old, **body}
        return msgspec.json.encode(self._store((resource.plural, ref.namespace, ref.name), new))

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._arrived("delete", resource, "", ref.name)
        old = self._find(resource, ref)
        if ref.uid and old["metadata"]["uid"] != ref.uid:
            raise ApiError(409, "Conflict", "another uid")
        if resource == PODS:
            self.deleted.append(old["metadata"]["uid"])
        key = (resource.plural, ref.namespace, ref.name)
        if resource == PODS and old["spec"].get("nodeName"):
            if "deletionTimestamp" not in old["metadata"]:
                self._store(key, {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2023-11-14T23:00:00Z"}})
                self._later(self._stop_s, lambda: self._gone(key, old["metadata"]["uid"]))
        else:
            self.remove(resource, ref.name, ref.namespace)

    # ---- inside

    def _uid(self) -> str:
        """Never the same twice, and the same in every run."""
        self._made += 1
        return f"uid-{self._made}"

    async def _arrived(self, verb: str, resource: Kind, subresource: str, name: str, body: Any = None) -> None:
        await self._reached()
        self._known(resource)
        self.before_write(verb, resource, name)
        self.writes.append((verb, resource.plural, subresource, name))

    def _known(self, resource: Kind) -> None:
        if resource.plural in self.missing:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")

    def _find(self, resource: Kind, ref: ObjectRef) -> Object:
        self._known(resource)
        found = self.objects.get((resource.plural, ref.namespace if resource.namespaced else "", ref.name))
        if found is None:
            raise ApiError(404, "NotFound", f"{resource.plural} {ref} not found")
        return deepcopy(found)

    def _bind(self, ref: ObjectRef, body: Object) -> bytes:
        pod = self._find(PODS, ref)
        if pod["metadata"]["uid"] == ref.uid and pod["spec"].get("nodeName", body["target"]["name"]) != body["target"]["name"]:
            self.breaches.append(f"pod {ref} is on {pod['spec']['nodeName']} and was bound to {body['target']['name']}")
        if pod["metadata"]["uid"] != (ref.uid or pod["metadata"]["uid"]) or pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", f"pod {ref} is already assigned to node {pod['spec'].get('nodeName')!r}")
        pod["spec"]["nodeName"] = node = body["target"]["name"]
        pod["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations") or {})
        rest = [c for c in pod["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
        pod["status"]["conditions"] = [*rest, {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._now()}]
        self._store(("pods", ref.namespace, ref.name), pod)
        self._weigh(node)
        if self._start_s is not None:
            self._later(self._start_s, lambda: self._start(("pods", ref.namespace, ref.name), pod["metadata"]["uid"]))
        return b"{}"

    def _now(self) -> str:
        return rfc3339(asyncio.get_running_loop().time())

    def _weigh(self, node: str) -> None:
        if ("nodes", "", node) not in self.objects:
            return  # a bind to a node that has just gone is taken
        asked = [
            quantity(container.get("resources", {}).get("requests", {}).get("cpu", "0")).milli
            for pod in self.all(PODS)
            if pod["spec"].get("nodeName") == node and pod["status"].get("phase") not in ("Succeeded", "Failed")
            for container in pod["spec"]["containers"]
        ]
        allocatable = quantity(self.found(NODES, node)["status"]["allocatable"]["cpu"]).milli
        if sum(asked) > allocatable:
            self.breaches.append(f"{node} holds {sum(asked)}m of {allocatable}m")

    def _start(self, key: Key, uid: str) -> None:
        pod = self.objects.get(key)
        if pod is not None and pod["metadata"]["uid"] == uid and "deletionTimestamp" not in pod["metadata"]:
            self._store(key, {**pod, "status": {**pod["status"], "phase": "Running"}})

    def _gone(self, key: Key, uid: str) -> None:
        pod = self.objects.get(key)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self.remove(PODS, key[2], key[1])

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, act)

    def _store(self, key: Key, obj: Object) -> Object:
        obj = deepcopy(obj)
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = obj
        self._tell(key, kind, obj)
        return obj

    def _tell(self, key: Key, kind: str, obj: Object) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, key[0], kind, _event(kind, obj)))
        try:
            task = asyncio.get_running_loop().create_task(self._wake())
        except RuntimeError:
            return  # before the story begins
        self._kubelets.add(task)
        task.add_done_callback(self._kubelets.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _merged(old: Any, new: Any) -> Any:
    """By a merge patch."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    merged = {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def _plain(body: Any) -> Object:
    plain: Object = msgspec.json.decode(msgspec.json.encode(body))
    return plain


def _event(kind: str, obj: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj})
