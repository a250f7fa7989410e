"""Discovery: `/api` and `/apis`, both in the old form (one request per group version) and aggregated; also version and health."""

import base64
import hashlib
from typing import Any

from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind, priority_of
from pumice.http.messages import Request, Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.1+pumice",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_PATCHES = {37: 2}  #: by minor version: the patch release whose rules are followed


def version_of(minor: int) -> dict[str, str]:
    """What a server of another release says of itself."""
    return VERSION | {"minor": str(minor), "gitVersion": f"v1.{minor}.{_PATCHES[minor]}+pumice"}


ARCHIVE_PATH = "/pumice/archive"  #: the path of the whole cluster as one file
_CREATE, _CHANGE = ("create",), ("get", "patch", "update")
#: by subresource: group/version and kind of the objects that it accepts, and its verbs
SUBRESOURCES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "binding": ("v1", "Binding", _CREATE),
    "eviction": ("policy/v1", "Eviction", _CREATE),
    "token": ("authentication.k8s.io/v1", "TokenRequest", _CREATE),
    "scale": ("autoscaling/v1", "Scale", _CHANGE),
    "log": ("", "", ("get",)),
    "finalize": ("", "", ("update",)),
    "exec": ("v1", "PodExecOptions", ("create", "get")),
    "attach": ("v1", "PodAttachOptions", ("create", "get")),
    "portforward": ("v1", "PodPortForwardOptions", ("create", "get")),
}


Remote = dict[tuple[str, str], list[dict[str, Any]]]
"""What other servers serve: by group and version the resources, as aggregated discovery lists them."""


class Discovery:
    """Answers discovery requests from the table of kinds, and for groups that other servers answer for."""

    def __init__(self, kinds: KindTable, remote: Remote) -> None:
        self._kinds = kinds
        self._remote = remote

    def respond(self, request: Request) -> Response | None:
        parts = request.path.strip("/").split("/")
        match parts:
            case ["version"]:
                return Response.json(VERSION)
            case [("healthz" | "livez" | "readyz"), *_]:
                return Response.text("ok")
            case ["api"]:
                return (
                    self._aggregated(core=True)
                    if _wants_aggregated(request)
                    else Response.json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
                )
            case ["apis"]:
                return self._aggregated(core=False) if _wants_aggregated(request) else Response.json(self._groups())
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                found = [one for one in self._groups()["groups"] if one["name"] == group]
                return Response.json({"kind": "APIGroup", "apiVersion": "v1"} | found[0]) if found else None
            case ["apis", group, version]:
                return self._resources(group, version)
            case [""]:
                return Response.json({"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]})
        return None

    def _versions(self) -> dict[str, dict[str, list[ServedKind]]]:
        found: dict[str, dict[str, list[ServedKind]]] = {}
        for kind in self._kinds:
            found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        for group, version in self._remote:
            found.setdefault(group, {}).setdefault(version, [])
        for group, versions in found.items():
            if all(kind.custom for kinds in versions.values() for kind in kinds):
                found[group] = dict(sorted(versions.items(), key=lambda item: priority_of(item[0]), reverse=True))
        return found

    def _groups(self) -> dict[str, Any]:
        groups = []
        for group, versions in self._versions().items():
            if group:
                named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
                groups.append({"name": group, "versions": named, "preferredVersion": named[0]})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _resources(self, group: str, version: str) -> Response | None:
        kinds = self._versions().get(group, {}).get(version)
        if not kinds:
            return None
        head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}" if group else version}
        return Response.json(head | {"resources": _legacy_entries(kinds)})

    def _aggregated(self, core: bool) -> Response:
        items = []
        for group, versions in self._versions().items():
            if core is (group == ""):
                listed = [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": entries_of(_legacy_entries(kinds), group, version) or self._remote.get((group, version), []),
                    }
                    for version, kinds in versions.items()
                ]
                items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": listed})
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return Response.json(body, content_type=AGGREGATED)


def _wants_aggregated(request: Request) -> bool:
    return "as=APIGroupDiscoveryList" in request.headers.get("accept", "")


def subresources_of(kind: ServedKind) -> list[tuple[str, str, str, tuple[str, ...]]]:
    names = (*(("status",) if kind.has_status else ()), *(("scale",) if kind.scale else ()), *kind.subresources)
    found = []
    for name in names:
        api_version, kind_name, verbs = SUBRESOURCES.get(name, ("", "", _CHANGE))
        found.append((name, api_version or kind.api_version, kind_name or kind.kind, verbs))
    return found


def entries_of(listed: list[dict[str, Any]], group: str, version: str) -> list[dict[str, Any]]:
    """The resources of an APIResourceList as aggregated discovery lists them. Raises KeyError."""
    found: dict[str, dict[str, Any]] = {}
    for one in listed:
        plural, _, subresource = one["name"].partition("/")
        kind = {"group": one.get("group") or group, "version": one.get("version") or version, "kind": one["kind"]}
        head = {"responseKind": kind, "verbs": list(one["verbs"])}
        if subresource:
            found[plural].setdefault("subresources", []).append({"subresource": subresource, **head})
        else:
            scope = "Namespaced" if one["namespaced"] else "Cluster"
            more = {key: list(one[key]) for key in ("shortNames", "categories") if one.get(key)}
            found[plural] = {"resource": plural, "scope": scope, "singularResource": one["singularName"], **head, **more}
    return list(found.values())


def _legacy_entries(kinds: list[ServedKind]) -> list[dict[str, Any]]:
    """The resources of an APIResourceList: kinds and their subresources."""
    entries: list[dict[str, Any]] = []
    for kind in kinds:
        entry = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": kind.verbs}
        entry |= {key: names for key, names in (("shortNames", kind.short_names), ("categories", kind.categories)) if names}
        if not kind.reviewed_only:
            stored = kind.stored_as or kind
            digest = hashlib.sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
            entry["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
        entries.append(entry)
        for name, api_version, kind_name, verbs in subresources_of(kind):
            sub = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced, "kind": kind_name, "verbs": verbs}
            group, _, version = api_version.rpartition("/")
            other = {"group": group, "version": version} if api_version != kind.api_version else {}
            entries.append(sub | {key: value for key, value in other.items() if value})
    return entries
