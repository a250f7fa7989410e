"""The interface to an API server, apart from how requests get there.

`Transport` has a method for each of Kubernetes' verbs, and no policy of its own. `Client` implements it over HTTP. A single object is
returned as JSON, and the caller decodes just the fields that it reads. A list comes page by page with its items undecoded, and a watch
as batches of lines, so that one malformed object does not affect the others.

`repeatable` says that the write may reach the server twice without harm; see `Retry`.
"""

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.odd_json import decode

_dict = msgspec.json.Decoder(dict[str, Any])


def as_dict(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    return decode(_dict, raw)


class WatchedEvent(msgspec.Struct):
    """An event of a watch, as a line has it."""

    type: str
    object: msgspec.Raw


WatchLine = bytes | WatchedEvent  #: an event in JSON, or as it is read from that


class ListScope(msgspec.Struct, frozen=True):
    """The objects of a resource to list or watch: all objects, or those of one namespace, or those that selectors choose."""

    resource: Kind
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Page(msgspec.Struct):
    """A part of a list. All pages of one list show the state at the same `resource_version`."""

    items: list[msgspec.Raw]
    resource_version: str


class PatchType(Enum):
    """The content types of the three patches that clients send."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Transport(Protocol):
    """The calls to an API server. They raise ApiError, NoAnswer, NoCredentials and, for writes only, Fenced."""

    def check_fence(self) -> None:
        """Raise Fenced if writes are not sent now. For a write that somebody else is asked to do."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes: ...

    def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        """The pages of the list as it is now; one page if `limit` is 0. ApiError 410 if reading took so long that the server forgot it, and
        504 if it has not come to the version `not_older` (`ApiError.is_too_large`)."""

    def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[Sequence[WatchLine]]:
        """The lines of a watch from that version on, until the server ends it. Raises NoAnswer after `idle_s` seconds of silence."""

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes: ...

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        """Delete the object. If `ref` has a uid, an object with another uid is left alone (ApiError 409). ApiError 404 if it is gone.
        `propagation` says what happens to its dependents (Background, Foreground, Orphan); "" leaves this to the server."""
