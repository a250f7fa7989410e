"""Subresources: status, scale, binding, eviction, finalize, token, and those that reach into containers (`streams/remote.py`)."""

from collections.abc import Callable
from typing import Any

from pumice.api import Object
from pumice.cluster.apiserver import deletion, requests, status
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, WriteOptions
from pumice.cluster.apiserver.auth import token_requests
from pumice.cluster.apiserver.auth.access_control import AccessControl
from pumice.cluster.apiserver.discovery import SUBRESOURCES
from pumice.cluster.apiserver.patches.patch import PatchRequest, changed
from pumice.cluster.apiserver.read import ReadHandler
from pumice.cluster.apiserver.requests import Target, name_matches, options_of, patch_of
from pumice.cluster.apiserver.scale import rescale, scale_of
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams import forwarding, remote, wires
from pumice.http.messages import Request, Response, Stream

_PARTS = ("status", "resize", "ephemeralcontainers", "approval")  #: parts of an object that are written by themselves


class Subresources:
    def __init__(self, store: Store, access: AccessControl, containers: remote.Containers) -> None:
        self._store = store
        self._access = access
        self._containers = containers
        self._reader = ReadHandler(store)

        self._answers: dict[tuple[str, str], Callable[[Request, Target], Response | Stream]] = {
            **{(part, "get"): self._get for part in _PARTS},
            **{(part, "update"): self._update for part in (*_PARTS, "finalize")},
            **{(part, "patch"): self._patch for part in _PARTS},
            ("scale", "get"): self._scale,
            ("scale", "update"): self._scale,
            ("scale", "patch"): self._scale,
            ("binding", "create"): self._bind,
            ("eviction", "create"): self._evict,
            ("token", "create"): self._token,
            ("log", "get"): self._log,
            **{(part, verb): self._connect for part in ("exec", "attach", "portforward") for verb in ("get", "create")},
        }

    def respond(self, request: Request, target: Target, verb: str) -> Response | Stream:
        answer = self._answers.get((target.subresource, verb))
        if answer is None:
            raise status.method_not_allowed(verb)
        return answer(request, target)

    def _get(self, request: Request, target: Target) -> Response:
        return self._reader.one(request, target.kind, self._store.get(target.kind, target.name, target.namespace))

    def _update(self, request: Request, target: Target) -> Response:
        options = options_of(request)
        obj = requests.read_object(request.body, request.headers.get("content-type", ""))
        name_matches(obj, target)
        return self._reader.one(request, target.kind, self._store.update(target.kind, obj, target.subresource, options), 200, options)

    def _patch(self, request: Request, target: Target) -> Response:
        options = options_of(request)
        obj = self._store.patch(target.kind, target.name, patch_of(request, options), target.namespace, target.subresource, options)
        return self._reader.one(request, target.kind, obj, 200, options)

    def _scale(self, request: Request, target: Target) -> Response:
        old = self._store.get(target.kind, target.name, target.namespace)
        scale = scale_of(target.kind, old)
        if request.method in ("GET", "HEAD"):
            return Response.json(scale)
        options = options_of(request)
        if request.method == "PUT":
            wanted = requests.read_object(request.body, request.headers.get("content-type", ""))
            name_matches(wanted, target)
        else:
            patch = patch_of(request, options)
            wanted = changed(target.kind, scale, patch if patch.type == "json" else PatchRequest("merge", patch.body))
        return Response.json(rescale(self._store, target.kind, old, wanted, options))

    def _admitted(self, request: Request, target: Target, obj: Object, operation: str = "CREATE", dry_run: bool = False) -> Object:
        """What a request asks for, as policies and webhooks leave it. Raises StatusError."""
        if not self._store.is_reviewed(target.kind, target.subresource, operation):
            return obj
        place = (operation, target.kind, target.namespace, target.name, target.subresource)
        return self._store.admit(AdmissionAttributes(*place, obj, None, request.user, dry_run))

    def _connected(self, request: Request, target: Target, **options: Any) -> None:
        """Show a connection to a container to policies and webhooks. Raises StatusError."""
        api_version, kind, _ = SUBRESOURCES[target.subresource]
        container = {"container": name} if (name := request.query.get("container")) else {}
        self._admitted(request, target, {"kind": kind, "apiVersion": api_version, **container, **options}, "CONNECT")

    def _bind(self, request: Request, target: Target) -> Response:
        options = options_of(request)
        body = requests.read_object(request.body, request.headers.get("content-type", ""))
        body = self._admitted(request, target, body, dry_run=options.dry_run)
        bind(self._store, body, target.namespace, target.name, options)
        return Response.json(status.success(201), 201)

    def _evict(self, request: Request, target: Target) -> Response:
        body = requests.read_object(request.body, request.headers.get("content-type", "")) if request.body else {}
        stated = body.get("deleteOptions") or {}
        if not isinstance(stated, dict):
            raise status.bad_request("deleteOptions: not an object")
        if _name_in(body) != target.name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        options, delete_options = options_of(request), deletion.read_delete_options(stated, {})
        options.dry_run = options.dry_run or delete_options.dry_run
        self._admitted(request, target, body, dry_run=options.dry_run)
        self._store.evict(target.namespace, target.name, delete_options, options)
        return Response.json(status.success(201), 201)

    def _token(self, request: Request, target: Target) -> Response:
        body = requests.read_object(request.body, request.headers.get("content-type", ""))
        return Response.json(token_requests.answer(self._store, self._access.tokens, target.namespace, target.name, body), 201)

    def _log(self, request: Request, target: Target) -> Response | Stream:
        pod = self._store.get("pods", target.name, target.namespace)
        container = remote.container_of(pod, request.query.get("container", ""))
        if request.flag("previous"):
            raise status.bad_request(f'previous terminated container "{container}" in pod "{target.name}" not found')

        def log(pod: Object) -> str:
            return self._containers.log(pod, container, request.query)

        def ended(pod: Object) -> bool:
            return not request.flag("follow") or "terminated" in remote.state_of(pod, container)

        if "upgrade" in request.headers:
            _, protocol = wires.wire_of(request, remote.LOG_PROTOCOLS)
            return remote.SocketLog(request, protocol, remote.Following(self._store, pod, log, ended))
        if not request.flag("follow"):
            return Response.text(log(pod))
        return remote.LogStream(remote.Following(self._store, pod, log, ended))

    def _connect(self, request: Request, target: Target) -> Stream:
        self._access.require(request.user, "create", target)
        return self._forward(request, target) if target.subresource == "portforward" else self._command(request, target)

    def _command(self, request: Request, target: Target) -> Stream:
        pod = self._store.get("pods", target.name, target.namespace)
        command = remote.Command(request)
        words = {"command": command.words} if target.subresource == "exec" else {}
        self._connected(request, target, tty=command.tty, **dict.fromkeys(command.channels, True), **words)
        container = remote.container_of(pod, request.query.get("container", ""))
        remote.must_run(pod, container)
        wire, protocol = wires.wire_of(request, remote.COMMAND_PROTOCOLS)
        if target.subresource == "exec" and not command.words:
            raise status.bad_request("you must specify at least 1 command for the container")

        def issue(source: Object) -> str:
            return token_requests.for_pod(self._store, self._access.tokens, pod, source)

        has_stdin = "stdin" in command.channels
        process = self._containers.run(self._store, issue, pod, container, words.get("command", []), command.tty, has_stdin)
        if wire == "websocket":
            return remote.SocketCommand(request, protocol, command, process)
        return remote.SpdyCommand(protocol, command, process)

    def _forward(self, request: Request, target: Target) -> Stream:
        pod = self._store.get("pods", target.name, target.namespace)
        self._connected(request, target)
        remote.must_run(pod, remote.container_of(pod, ""))
        wire, protocol = wires.wire_of(request, (forwarding.FORWARD, *remote.COMMAND_PROTOCOLS), (forwarding.TUNNEL,))
        if wire == "spdy":
            return forwarding.SpdyForward(pod, self._containers)
        if protocol == forwarding.TUNNEL:
            return forwarding.TunnelForward(request, pod, self._containers)
        return forwarding.SocketForward(request, protocol, pod, self._containers, forwarding.ports_of(request))


def _name_in(body: Object) -> Any:
    metadata = body.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def bind(store: Store, body: Object, namespace: str, name: str, options: WriteOptions) -> None:
    """Bind a pod as the Binding in `body` requests. Raises StatusError."""
    metadata, wanted = body.get("metadata") or {}, body.get("target") or {}
    if not isinstance(metadata, dict) or not isinstance(wanted, dict):
        raise status.bad_request("a Binding has metadata and a target")
    if _name_in(body) not in (None, name):
        raise status.bad_request("name in URL does not match name in Binding object")
    if wanted.get("kind", "Node") not in ("", "Node"):
        raise status.invalid("Binding", "", name, [("target.kind", f'Unsupported value: "{wanted["kind"]}": supported values: "Node"')])
    annotations = metadata.get("annotations")
    if annotations is not None and not (isinstance(annotations, dict) and all(isinstance(value, str) for value in annotations.values())):
        raise status.bad_request("metadata.annotations: not a map of strings")
    store.bind(namespace, name, str(wanted.get("name") or ""), str(metadata.get("uid") or ""), annotations, options)
