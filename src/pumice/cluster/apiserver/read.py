"""Gets, lists and watches: selectors, pages, versions, and the form that the client requests (objects, Tables, metadata alone)."""

import base64
import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from pumice.api import Object
from pumice.api.field_selectors import FieldSelector, FieldTerm, parse_field_selector
from pumice.api.selectors import Selector, parse_selector
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.readable_store import ListPage
from pumice.cluster.apiserver.requests import Target
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.second_versions import core_event_path, to_core_event
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.storage.watch import Key
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams.watch_stream import ErrorStream, Shown, WatchStream
from pumice.cluster.apiserver.tables.table import partial, table
from pumice.cluster.apiserver.validation.name_rules import named
from pumice.http.messages import JSON, Answer, Request, Response
from pumice.http.piecewise_answer import Pieces

WARNING_LENGTH, WARNINGS_ROOM = 256, 4096  #: characters of one warning, and of all warnings of an answer
PIECE_BYTES = 256 * 1024  #: of a list; a longer list is encoded while it is sent
ROWS = 100  #: of a Table that are made at a time
MOST_CONDITIONS, MOST_VALUES = 100, 1000  #: of a selector, which is matched against every object
TOKEN_LASTS_S = 300.0  #: of the cluster's time: for how long a list can be continued as it was
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)
MOST_WATCHES = 1000  #: of one user at a time
_encode, _decode = msgspec.json.encode, msgspec.json.decode


class _Place(NamedTuple):
    """The version that a list is read at, and the key that it begins after (None: at the beginning)."""

    version: int
    after: Key | None


class ReadHandler:
    """Answers the requests that change nothing: get, list and watch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: Counter[str] = Counter()  #: by the user's name

    def read(self, request: Request, target: Target, verb: str) -> Answer:
        if verb == "watch":
            return self._watch(request, target)
        if verb == "list":
            place = self._place(request)
            selected = self.selected(request, target, place)
            return self.page(request, target.kind, selected.items, selected)
        return self.one(request, target.kind, self._store.get(target.kind, target.name, target.namespace))

    # One object

    def one(self, request: Request, kind: ServedKind, obj: Object, code: int = 200, options: WriteOptions | None = None) -> Response:
        warnings = warning_headers(options.warnings) if options and options.warnings else ()
        form = form_of(request)
        if form.kind == "Table":
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            obj = table(kind, [obj], self._store.now(), metadata, _included(request), form.api_version)
        elif form.kind == "PartialObjectMetadata":
            obj = partial(obj, form.api_version)
        return Response(self._store.storage.json(kind.storage, obj), code, headers=warnings)

    # Lists

    def selected(self, request: Request, target: Target, place: _Place | None = None) -> ListPage:
        labels, fields = _selectors(request, target)
        version, after = place if place else (None, None)
        return self._store.list(target.kind, target.namespace, labels, fields, _number(request, "limit"), version, after)

    def page(self, request: Request, kind: ServedKind, items: list[Object], page: ListPage | None = None) -> Response | Pieces:
        version = page.version if page else self._store.storage.version
        metadata: Object = {"resourceVersion": str(version)}
        if page and page.rest:
            metadata["continue"] = _token(version, page.rest, self._store.now())
            if not (request.query.get("labelSelector") or request.query.get("fieldSelector")):
                metadata["remainingItemCount"] = page.remaining
        form = form_of(request)
        if form.kind == "Table":
            now, include = self._store.now(), _included(request)

            def in_table(some: list[Object]) -> Object:
                return table(kind, some, now, metadata, include, form.api_version)

            head, field = in_table([]), "rows"
            parts: Iterator[Any] = (row for some in _batched(items, ROWS) for row in in_table(some)["rows"])
        elif form.kind == "PartialObjectMetadata":
            head, field = {"kind": "PartialObjectMetadataList", "apiVersion": form.api_version, "metadata": metadata}, "items"
            parts = (partial(obj, form.api_version) for obj in items)
        else:
            head, field = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}, "items"
            parts = iter(items)
        pieces = _pieces(head, field, parts)
        first, second = next(pieces), next(pieces, None)
        if second is None:
            return Response(first, content_type=JSON)
        return Pieces(chain((first, second), pieces), self._store.storage.version)

    def _place(self, request: Request) -> _Place | None:
        """The version to read a list at, and where to begin; None: the present version, from the beginning. Raises StatusError."""
        token = request.query.get("continue")
        if "sendInitialEvents" in request.query:
            text = "Forbidden: sendInitialEvents is forbidden for list"
            raise status.invalid("ListOptions", "meta.k8s.io", "", [("sendInitialEvents", text)])
        if token and request.query.get("resourceVersion") not in (None, "", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        if token:
            return self._continued(token)
        version = _version(request)
        match = request.query.get("resourceVersionMatch")
        if match:
            _check_match(match, request.query.get("resourceVersion") or "")
        if version > self._store.storage.version:
            raise _too_new(version, self._store.storage.version)
        return _Place(version, None) if match == "Exact" and version else None

    def _continued(self, token: str) -> _Place:
        """The place of a continue token. Raises StatusError 410 if it is too old: then with another token, which continues with the objects
        as they are now."""
        version, after, made = _read_token(token)
        if version and self._store.now() - made > TOKEN_LASTS_S:
            error = status.expired(_TOO_OLD)
            error.metadata["continue"] = _token(0, after, made)
            raise error
        return _Place(version or self._store.storage.version, after)

    # Watches

    def _watch(self, request: Request, target: Target) -> Answer:
        user = request.user.name
        if self._watches[user] >= MOST_WATCHES:
            raise status.too_many_requests(f"{user} has {MOST_WATCHES} watches already; end some, or watch more in one", 1)
        labels, fields = _selectors(request, target)
        if target.name:
            fields = (*fields, FieldTerm(("metadata", "name"), True, target.name))
        version, initial_events = _version(request), request.flag("sendInitialEvents")
        if initial_events and request.query.get("resourceVersionMatch") != "NotOlderThan":
            text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise status.invalid("ListOptions", "meta.k8s.io", "", [("resourceVersionMatch", text)])
        if version > self._store.storage.version:
            raise _too_new(version, self._store.storage.version)
        from_start = initial_events or (version == 0 and request.query.get("sendInitialEvents") != "false")
        page = self._store.list(target.kind, target.namespace, labels, fields) if from_start else None
        since = page.version if page else version or self._store.storage.version
        try:
            watch = self._store.watch(target.kind, target.namespace, labels, fields, since)
        except StatusError as error:
            return ErrorStream(error)
        stream = WatchStream(
            self._store, target.kind, watch, page.items if page else [], self._shown(request, target.kind), _timeout_s(request)
        )
        self._watches[user] += 1
        stream.when_stopped = lambda: self._watches.subtract((user,))
        stream.bookmarks = request.flag("allowWatchBookmarks")
        stream.mark_initial_end = initial_events and stream.bookmarks
        return stream

    def _shown(self, request: Request, kind: ServedKind) -> Shown | None:
        form, include = form_of(request), _included(request)

        def in_table(obj: Object, first: bool) -> Object:
            metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return table(kind, [obj], self._store.now(), metadata, include, form.api_version, first)

        def empty_table(bookmark: Object) -> Object:
            return table(kind, [], self._store.now(), bookmark["metadata"], api_version=form.api_version, headed=False)

        if form.kind == "Table":
            return Shown(in_table, empty_table)
        if form.kind == "PartialObjectMetadata":
            return Shown(lambda obj, first: partial(obj, form.api_version), lambda bookmark: partial(bookmark, form.api_version))
        return None


def _included(request: Request) -> str:
    """The part of each object that is in its row of a Table."""
    return request.query.get("includeObject", "Metadata")


def _pieces(head: Object, field: str, parts: Iterator[Any]) -> Iterator[bytes]:
    """A list in JSON, in pieces of about PIECE_BYTES."""
    piece = [_encode({key: value for key, value in head.items() if key != field})[:-1], b',"%s":[' % field.encode()]
    size, comma = 0, b""
    for part in parts:
        text = _encode(part)
        piece += (comma, text)
        size, comma = size + len(text), b","
        if size >= PIECE_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    yield b"".join((*piece, b"]}"))


def _batched(items: list[Object], count: int) -> Iterator[list[Object]]:
    return (items[start : start + count] for start in range(0, len(items), count))


class Form(NamedTuple):
    """What an answer is written as."""

    kind: str = ""  #: Table or PartialObjectMetadata; empty: the objects themselves
    api_version: str = ""


PLAIN = Form()
_GROUP = "meta.k8s.io"
_ACCEPTED = (JSON, "application/yaml", "application/vnd.kubernetes.protobuf")  #: all are answered in JSON
_ANY = ("*/*", "application/*")


def form_of(request: Request) -> Form:
    """The first form of the Accept header that is served. Raises StatusError 406 if none is."""
    accept = request.headers.get("accept") or JSON
    if "as=" not in accept and (JSON in accept or "*/*" in accept):
        return PLAIN
    for part in accept.split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        if media not in _ACCEPTED and media not in _ANY:
            continue
        options = dict(word.split("=", 1) for word in parameters if "=" in word)
        form, version = options.get("as", ""), options.get("v", "")
        if not form:
            return PLAIN
        kind = form.removesuffix("List")
        if kind in ("Table", "PartialObjectMetadata") and version in ("v1", "v1beta1") and options.get("g") == _GROUP:
            return Form(kind, f"{_GROUP}/{version}")
    raise not_acceptable()


def not_acceptable() -> StatusError:
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(_ACCEPTED)}", {})


def _selectors(request: Request, target: Target) -> tuple[Selector, FieldSelector]:
    return selectors_of(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""), target.kind)


def selectors_of(label_selector: str, field_selector: str, kind: ServedKind) -> tuple[Selector, FieldSelector]:
    """The label selector and the field selector of a request, parsed. Raises StatusError 400."""
    try:
        labels = parse_selector(label_selector)
    except ValueError as error:
        raise status.bad_request(f"unable to parse requirement: {error}") from None
    if wrong := [cause for each in labels for cause in named("label", each.key, "<nil>")]:
        raise status.bad_request(f"unable to parse requirement: {wrong[0][0]}: {wrong[0][1]}")
    try:
        fields = parse_field_selector(field_selector, kind.fields)
    except ValueError as error:
        raise status.bad_request(str(error)) from None
    if kind.to_stored is to_core_event:
        fields = tuple(term._replace(path=core_event_path(term.path)) for term in fields)
    if len(labels) + len(fields) > MOST_CONDITIONS or sum(len(each.values) for each in labels) > MOST_VALUES:
        raise status.bad_request(f"a selector may have at most {MOST_CONDITIONS} conditions and {MOST_VALUES} values")
    return labels, fields


def _check_match(match: str, version: str) -> None:
    """Raises StatusError for a resourceVersionMatch that says nothing."""
    if not version:
        text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match not in ("Exact", "NotOlderThan"):
        text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == "0":
        text = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    else:
        return
    raise status.invalid("ListOptions", "meta.k8s.io", "", [("resourceVersionMatch", text)])


def _number(request: Request, name: str) -> int:
    text = request.query.get(name) or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise status.bad_request(f'{name}: "{text}" is not a number')
    return int(text)


def _version(request: Request) -> int:
    text = request.query.get("resourceVersion") or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise status.bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": not a resource version')
    return int(text)


def _too_new(version: int, current: int) -> StatusError:
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}
    return StatusError(504, "Timeout", f"Too large resource version: {version}, current: {current}", details)


def _timeout_s(request: Request) -> float:
    """The timeout that the request states, else a random one from 30 to 60 minutes, so that many watches do not end at once."""
    return float(_number(request, "timeoutSeconds") or random.randint(1800, 3600))


def _token(version: int, after: Key, now: float) -> str:
    return base64.urlsafe_b64encode(_encode([version, *after, int(now)])).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key, int]:
    """The version (0: any), the last key and the time of a token."""
    try:
        decoded = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        version, namespace, name, made = _decode(decoded, type=tuple[int, str, str, int])
    except (ValueError, msgspec.MsgspecError):
        raise status.bad_request("continue key is not valid") from None
    return version, (namespace, name), made


def warning_headers(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """The warnings as headers: the first of them, as many as clients are ready to read."""
    headers: list[tuple[str, str]] = []
    room = WARNINGS_ROOM
    for text in texts:
        quoted = _quoted(text)
        room -= len(quoted)
        if room < 0:
            break
        headers.append(("Warning", f'299 - "{quoted}"'))
    return tuple(headers)


def _quoted(text: str) -> str:
    """The text in a form that can be quoted: whatever it contains, it cannot end the header."""
    printable = "".join(letter if " " <= letter <= "~" else "?" for letter in text[:WARNING_LENGTH])
    return printable.replace("\\", "\\\\").replace('"', '\\"')
