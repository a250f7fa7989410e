"""The REST API over the store: each request becomes one call of a verb, each refusal becomes a Status.

An answer is never sent before the writes that it shows are durable: every response has the store's version at the time it was made.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import msgspec

from pumice.api import Object, duration
from pumice.cluster.apiserver import deletion, requests, status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.aggregation import Aggregation
from pumice.cluster.apiserver.archive import export_cluster
from pumice.cluster.apiserver.auth.access_control import AccessControl
from pumice.cluster.apiserver.auth.access_reviews import reviewed
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH, Discovery
from pumice.cluster.apiserver.openapi.v3 import OPENAPI_PATH, OpenApi
from pumice.cluster.apiserver.pending_calls import Pending, attempted, until_done
from pumice.cluster.apiserver.read import ReadHandler, form_of, not_acceptable, warning_headers
from pumice.cluster.apiserver.requests import Target, name_matches, options_of, patch_of, place_of, target_of
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams.remote import Containers
from pumice.cluster.apiserver.subresources import Subresources, bind
from pumice.http.messages import JSON, Answer, Request, Response, Stream
from pumice.http.piecewise_answer import Pieces

_log = logging.getLogger(__name__)
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

DELETED_AT_ONCE = 100
LONGEST_WAIT_S = 60.0
METRICS_PATH = "/metrics"

Kept = TypeVar("Kept")


class RestHandler:
    """Answers requests. `containers` answers for the containers of pods, since the server itself runs none."""

    def __init__(self, store: Store, access: AccessControl, containers: Containers, aggregation: Aggregation) -> None:
        self.store = store
        self.access = access
        self._aggregation = aggregation
        self._discovery = Discovery(store.kinds, aggregation.served)
        self._openapi = OpenApi(store.kinds, aggregation.served, lambda: store.version, aggregation.documents)
        self._reader = ReadHandler(store)
        self._subresources = Subresources(store, access, containers)
        self.documents: dict[str, Callable[[], bytes]] = {}  #: by path: JSON that other parts of the process tell

    def respond(self, request: Request) -> Answer:
        """The answer to a request. Never raises: an error becomes a Status."""
        try:
            answer = attempted(self.store, partial(self._attempted, request, partial(self._respond, request)))
        except Pending as pending:
            return asyncio.get_running_loop().create_task(self._answered(request, pending))
        return answer if isinstance(answer, asyncio.Future) else self._finished(request, answer)

    async def _answered(self, request: Request, pending: Pending) -> Response | Stream:
        """The answer to a request that waits for programs outside. Other requests are answered meanwhile."""
        answer: Answer
        try:
            async with asyncio.timeout(_time_limit_s(request)):
                answer = await until_done(self.store, lambda: self._respond(request), pending)
        except StatusError as error:
            answer = status.refusal(error)
        except TimeoutError:
            answer = status.refusal(StatusError(504, "Timeout", "request did not complete within the allotted timeout"))
        return await answer if isinstance(answer, asyncio.Future) else self._finished(request, answer)

    def _attempted(self, request: Request, work: Callable[[], Kept]) -> Kept | Response:
        """What the work returns, or its refusal. Raises Pending."""
        try:
            return work()
        except Pending:
            raise
        except StatusError as error:
            return status.refusal(error)
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return status.refusal(StatusError(500, "InternalError", "an error on the server has prevented the request from succeeding"))

    def _finished(self, request: Request, answer: Response | Stream) -> Response | Stream:
        if request.method == "HEAD":
            if not isinstance(answer, Response):
                answer.stop()
            answer = Response(b"", answer.status if isinstance(answer, Response) else 200, answer.content_type)
        if isinstance(answer, Response):
            answer.version = self.store.storage.version
            if answer.content_type == JSON and answer.body and _is_read_by_people(request):
                answer.body = msgspec.json.format(answer.body, indent=2) + b"\n"
        return answer

    def _respond(self, request: Request) -> Answer:
        request.user = self.access.user_of(request)
        _time_limit_s(request)
        target = target_of(self.store.kinds, request.path)
        if target is None:
            return self._of_another(request) or self._elsewhere(request)
        verb = self._verb(request, target)
        self.access.require(request.user, verb, target)
        answer = self._by_verb(request, target, verb)
        if target.kind.deprecation and isinstance(answer, Response):
            answer.headers += warning_headers([target.kind.deprecation])
        return answer

    def _by_verb(self, request: Request, target: Target, verb: str) -> Answer:
        if target.subresource:
            return self._subresources.respond(request, target, verb)
        if verb not in target.kind.verbs:
            raise status.method_not_allowed(verb)
        match verb:
            case "get" | "list" | "watch":
                return self._reader.read(request, target, verb)
            case "create":
                return self._create(request, target)
            case "update":
                return self._update(request, target)
            case "patch":
                return self._patch(request, target)
            case "delete":
                return self._delete(request, target)
            case _:
                return self._delete_all(request, target)

    def _verb(self, request: Request, target: Target) -> str:
        verb = _VERBS.get(request.method)
        if verb is None or (target.name and request.method == "POST" and not target.subresource):
            raise status.method_not_allowed(request.method.lower())
        if target.name:
            return "watch" if verb == "get" and request.flag("watch") and not target.subresource else verb
        if verb == "get":
            return "watch" if request.flag("watch") else "list"
        if verb in ("update", "patch"):
            raise status.method_not_allowed(verb)
        return "deletecollection" if verb == "delete" else verb

    def _of_another(self, request: Request) -> Answer | None:
        """The answer of another server, if the path is in a group that it answers for, or is the group's OpenAPI document."""
        _, root, group, version, *_ = [*request.path.removeprefix(OPENAPI_PATH).split("/"), "", "", ""]
        service = self._aggregation.service_of(group, version) if root == "apis" else None
        if service is None:
            return None
        place = place_of(request.path)
        if place is None:
            self.access.require_path(request.user, request.path)
        else:
            plural, namespace, name, subresource = place[2:]
            target = Target(ServedKind(group, version, plural, plural, bool(namespace)), namespace, name, subresource)
            self.access.require(request.user, self._verb(request, target), target)
        return asyncio.get_running_loop().create_task(self._forwarded(request, service))

    async def _forwarded(self, request: Request, service: Object) -> Response | Stream:
        try:
            return self._finished(request, await self._aggregation.forward(request, request.user, service))
        except StatusError as error:
            return self._finished(request, status.refusal(error))

    def _elsewhere(self, request: Request) -> Answer:
        """The answer for a path that is not a resource: discovery, OpenAPI, version, health, the export of all objects."""
        if request.method not in ("GET", "HEAD"):
            raise status.no_such_path()
        self.access.require_path(request.user, request.path)
        if request.path == ARCHIVE_PATH:
            return Pieces(export_cluster(self.store), self.store.storage.version)
        if request.path in self.documents:
            return Response(self.documents[request.path](), content_type=JSON)
        if request.path == METRICS_PATH:
            return Response.text(_metrics(self.store))
        answer = self._openapi.respond(request) or self._discovery.respond(request)
        if answer is None:
            raise status.no_such_path()
        return answer

    # Writes

    def _create(self, request: Request, target: Target) -> Response:
        kind, options = target.kind, options_of(request)
        obj = self._body(request, target.kind, options)
        if kind.reviewed_only and kind.kind == "Binding":
            bind(self.store, obj, target.namespace, str((obj.get("metadata") or {}).get("name") or ""), options)
            return Response.json(status.success(201), 201)
        if kind.reviewed_only:
            if form_of(request).kind:
                raise not_acceptable()
            return Response.json(reviewed(self.store, self.access.tokens, request.user, kind, obj, target.namespace), 201)
        if kind.namespaced and not target.namespace:
            raise status.method_not_allowed("create")
        metadata = obj.get("metadata")
        if isinstance(metadata, dict) and metadata.get("resourceVersion") not in (None, "", "0"):
            raise StatusError(500, "InternalError", "resourceVersion should not be set on objects to be created")
        created = self.store.create(kind, obj, target.namespace, options)
        return self._reader.one(request, kind, created, 201, options)

    def _update(self, request: Request, target: Target) -> Response:
        kind, options = target.kind, options_of(request)
        obj = self._body(request, target.kind, options)
        name_matches(obj, target)
        if not self._exists(target) and kind.created_by_update:
            self.access.require(request.user, "create", target)
            return self._reader.one(request, kind, self.store.create(kind, obj, target.namespace, options), 201, options)
        return self._reader.one(request, kind, self.store.update(kind, obj, "", options), 200, options)

    def _patch(self, request: Request, target: Target) -> Response:
        options = options_of(request)
        patch = patch_of(request, options)
        existed = self._exists(target)
        if not existed and patch.type == "apply":
            self.access.require(request.user, "create", target)
        obj = self.store.patch(target.kind, target.name, patch, target.namespace, "", options)
        return self._reader.one(request, target.kind, obj, 200 if existed else 201, options)

    def _exists(self, target: Target) -> bool:
        return self.store.find(target.kind.storage, target.namespace, target.name) is not None

    def _delete(self, request: Request, target: Target) -> Response:
        kind, (delete_options, options) = target.kind, self._delete_options(request)
        obj, gone = self.store.delete(kind, target.name, target.namespace, delete_options, options)
        if not gone or kind.shown_when_deleted:
            return self._reader.one(request, kind, obj, 200, options)
        details = {"name": target.name, "group": kind.group, "kind": kind.plural, "uid": obj["metadata"]["uid"]}
        success = status.success(200, {key: value for key, value in details.items() if value})
        return Response.json(success, headers=warning_headers(options.warnings))

    def _delete_all(self, request: Request, target: Target) -> Answer:
        delete_options, options = self._delete_options(request)
        objects = self._reader.selected(request, target).items
        deleting = self._deleted(target.kind, objects, delete_options, options)
        if next(deleting, None) is None:
            return self._reader.page(request, target.kind, objects)
        return asyncio.get_running_loop().create_task(self._go_on(request, target.kind, objects, deleting))

    def _deleted(
        self, kind: ServedKind, objects: list[Object], delete_options: deletion.DeleteOptions, options: WriteOptions
    ) -> Iterator[int]:
        """Delete the objects. After each DELETED_AT_ONCE objects, the number of objects done so far is yielded."""
        for done, obj in enumerate(objects):
            if done and done % DELETED_AT_ONCE == 0:
                yield done
            metadata = obj["metadata"]
            if self.store.find(kind.resource, metadata.get("namespace", ""), metadata["name"]) is not None:
                self.store.delete(kind, metadata["name"], metadata.get("namespace", ""), delete_options, options)

    async def _go_on(self, request: Request, kind: ServedKind, objects: list[Object], deleting: Iterator[int]) -> Response | Stream:
        """Delete the rest of the objects, while other requests are answered in between. Returns the answer."""

        def some() -> Response | Stream | None:
            return self._reader.page(request, kind, objects) if next(deleting, None) is None else None

        answer: Response | Stream | None = None
        while answer is None:
            await asyncio.sleep(0)
            try:
                answer = self._attempted(request, some)
            except Pending as pending:
                answer = status.refusal(pending)
        return self._finished(request, answer)

    def _delete_options(self, request: Request) -> tuple[deletion.DeleteOptions, WriteOptions]:
        body = requests.read_object(request.body, request.headers.get("content-type", "")) if request.body else {}
        options, delete_options = options_of(request), deletion.read_delete_options(body, request.query)
        options.dry_run = options.dry_run or delete_options.dry_run
        return delete_options, options

    def _body(self, request: Request, kind: ServedKind, options: WriteOptions) -> Object:
        content_type = request.headers.get("content-type", "")
        obj = requests.read_object(request.body, content_type, kind.kind)
        if "fieldValidation" in request.query and ("json" in content_type or not content_type):
            options.doubled += requests.doubled_fields(request.body)
        return obj


def _is_read_by_people(request: Request) -> bool:
    """Whether JSON is to have lines: if the request says so, or comes from curl, wget or a browser and does not say no."""
    stated = request.query.get("pretty")
    if stated is not None:
        return stated.lower() in ("", "1", "t", "true")
    return request.headers.get("user-agent", "").startswith(("curl/", "Wget/", "Mozilla/5.0"))


def _time_limit_s(request: Request) -> float:
    """How long a request may wait for programs outside. Raises StatusError 400."""
    stated = request.query.get("timeout")
    try:
        limit_s = duration(stated) if stated else 0.0
    except ValueError:
        raise status.bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{stated}"') from None
    return min(limit_s, LONGEST_WAIT_S) if limit_s > 0 else LONGEST_WAIT_S


def _metrics(store: Store) -> str:
    """How many objects of each resource are stored, as Prometheus reads it."""
    name = "apiserver_resource_objects"
    lines = [f"# HELP {name} Number of stored objects.", f"# TYPE {name} gauge"]
    for resource, kept in sorted(store.storage.kind_storages.items()):
        plural, _, group = resource.partition(".")
        lines.append(f'{name}{{group="{group}",resource="{plural}"}} {len(kept.objects)}')
    return "\n".join([*lines, ""])
