"""The kinds that a server has, and which of them a user means by a word such as "po", "vcjob" or "jobs.batch.volcano.sh".

Discovery uses the aggregated form, two calls in all, which servers have since 1.27. Names are looked up as in kubectl:
plural, singular, short name or kind, with or without the group; if several groups have the name, the first in the server's order wins.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pumice.api import InputError, did_you_mean
from pumice.api.kinds import Kind
from pumice.client.client import Client
from pumice.client.transport import as_dict

ACCEPT = ",".join(f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1"))
LISTED_AS = "APIGroupDiscoveryList"


class ServedResource(msgspec.Struct, frozen=True):
    resource: Kind
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.resource.plural, self.singular, *self.short_names, self.resource.kind.lower())

    @property
    def title(self) -> str:
        """The name by which kubectl calls an object of this resource: "pod", "job.batch.volcano.sh"."""
        name = self.singular or self.resource.kind.lower()
        return f"{name}.{self.resource.group}" if self.resource.group else name


async def discover(client: Client) -> list[ServedResource]:
    """Every resource, in the server's order; the preferred version of a group comes first. Raises InputError if the server is too old."""
    found: list[ServedResource] = []
    for path in ("/api", "/apis"):
        answer = as_dict(await client.get_path(path, ACCEPT))
        if answer.get("kind") != LISTED_AS:
            raise InputError("the server is too old to tell which kinds it has (Kubernetes 1.27 or newer is needed)", where=path)
        found += _served(answer)
    return found


def _served(answer: dict[str, Any]) -> Iterator[ServedResource]:
    for group in answer.get("items") or ():
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind") or ""
                namespaced = entry.get("scope") == "Namespaced"
                resource = Kind(group["metadata"].get("name") or "", version["version"], kind, entry["resource"], namespaced)
                short_names = tuple(entry.get("shortNames") or ())
                yield ServedResource(resource, entry.get("singularResource") or "", short_names, tuple(entry.get("verbs") or ()))


def named(word: str, served: Iterable[ServedResource]) -> ServedResource:
    """The resource that a user means by this word. Raises InputError if there is none."""
    known = list(served)
    name, _, group = word.lower().partition(".")
    for one in known:
        if name in one.names and group in ("", one.resource.group, f"{one.resource.version}.{one.resource.group}"):
            return one
    names = {name for one in known for name in one.names if name}
    raise InputError(f'the server doesn\'t have a resource type "{word}"{did_you_mean(name, names)}')


def of_kind(api_version: str, kind: str, served: Iterable[ServedResource]) -> ServedResource:
    """The resource for the apiVersion and kind of a manifest. Raises InputError if there is none."""
    for one in served:
        if one.resource.kind == kind and one.resource.api_version == api_version:
            return one
    raise InputError(f'no matches for kind "{kind}" in version "{api_version}"; install its definition first')
