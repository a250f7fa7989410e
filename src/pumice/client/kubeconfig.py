"""Kubeconfig files: they are read and merged, and one context is chosen.

KUBECONFIG may name several files: the first file that has a current-context, or an entry of a name, decides; entries are never mixed.
Files named there may be missing, a file named by a flag may not. Paths inside a file are relative to its folder. The result is
`ChosenContext`, from which `resolve_access` makes an `Access`; an error is an InputError with file, line, context and field.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pumice.api import InputError, did_you_mean
from pumice.api.files import file_bytes
from pumice.api.yaml import Document, documents
from pumice.client.exec_credentials import ExecSpec


class ClusterEntry(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[dict[str, Any]] | None = None


class UserEntry(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")
    exec: ExecSpec | None = None
    auth_provider: dict[str, Any] | None = None


class ContextEntry(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterEntry


class NamedUser(msgspec.Struct):
    name: str
    user: UserEntry


class NamedContext(msgspec.Struct):
    name: str
    context: ContextEntry


class _File(msgspec.Struct):
    current_context: str | None = msgspec.field(default=None, name="current-context")
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


T = TypeVar("T")


class KubeconfigEntry(msgspec.Struct):
    """One entry of a kubeconfig, and where it was found."""

    value: Any
    document: Document
    path: tuple[str | int, ...]
    subject: str

    @property
    def folder(self) -> Path:
        return Path(self.document.where).resolve().parent

    def error(self, message: str, *field: str | int) -> InputError:
        return self.document.error(message, (*self.path, *field), self.subject)


class ChosenContext(msgspec.Struct):
    """The context that is used, with the cluster and the user that it names."""

    name: str
    context: ContextEntry
    cluster: KubeconfigEntry
    user: KubeconfigEntry | None  #: None: the context names no user


def files(explicit: str, environ: dict[str, str]) -> list[Path]:
    """The files to read: the flag's file, those of KUBECONFIG, or the usual one. Files that do not exist are left out, except the flag's.
    Raises InputError if KUBECONFIG names files and none of them exists."""
    if explicit:
        return [Path(explicit).expanduser()]
    named = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = [Path(part) for part in named] or [Path(environ.get("HOME", "/"), ".kube", "config")]
    found = [path for path in paths if path.is_file()]
    if named and not found:
        raise InputError(f"there is no file {' and none '.join(named)}; unset it or name another", where="KUBECONFIG")
    return found


class Kubeconfig:
    """Several files merged into one: entries by name; the first file with an entry of a name decides."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.clusters: dict[str, KubeconfigEntry] = {}
        self.users: dict[str, KubeconfigEntry] = {}
        self.contexts: dict[str, KubeconfigEntry] = {}
        self.current = ""
        self.where = ""
        for path in paths:
            self._add(path)

    def choose(self, context: str = "") -> ChosenContext:
        """The named context, or the current one. Raises InputError."""
        name = context or self.current
        if not name:
            hint = f"name one with --context: {', '.join(sorted(self.contexts))}" if self.contexts else "there are none to choose from"
            raise InputError(f"no current-context is set; {hint}", where=self.where, field="current-context")
        entry = self.contexts.get(name)
        if entry is None:
            raise InputError(f'there is no context "{name}"{did_you_mean(name, self.contexts)}', where=self.where, field="contexts")
        value: ContextEntry = entry.value
        cluster = self._named(entry, "cluster", value.cluster, self.clusters)
        if cluster is None:
            raise entry.error("names no cluster", "cluster")
        return ChosenContext(name, value, cluster, self._named(entry, "user", value.user, self.users))

    def _named(self, context: KubeconfigEntry, field: str, name: str, known: dict[str, KubeconfigEntry]) -> KubeconfigEntry | None:
        if not name:
            return None
        found = known.get(name)
        if found is None:
            raise context.error(f'there is no {field} "{name}"{did_you_mean(name, known)}', field)
        return msgspec.structs.replace(found, subject=f"{context.subject}, {field} {name}")

    def _add(self, path: Path) -> None:
        text = file_bytes(path)
        self.where = f"{self.where}:{path}" if self.where else str(path)
        for document in documents(text, str(path)):
            read = _converted(document)
            self.current = self.current or read.current_context or ""
            for index, cluster in enumerate(read.clusters or ()):
                entry = KubeconfigEntry(cluster.cluster, document, ("clusters", index, "cluster"), f"cluster {cluster.name}")
                self.clusters.setdefault(cluster.name, entry)
            for index, user in enumerate(read.users or ()):
                self.users.setdefault(user.name, KubeconfigEntry(user.user, document, ("users", index, "user"), f"user {user.name}"))
            for index, context in enumerate(read.contexts or ()):
                entry = KubeconfigEntry(context.context, document, ("contexts", index, "context"), f"context {context.name}")
                self.contexts.setdefault(context.name, entry)


_AT = re.compile(r"^(.*) - at `\$\.?(.*)`$")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def _converted(document: Document) -> _File:
    """The document in our types. Raises InputError; msgspec gives the place of an error as `$.users[0].user.token`."""
    try:
        return msgspec.convert(document.value, _File)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        message, at = found.groups() if found else (str(error), "")
        path = tuple(int(index) if index else key for index, key in _STEP.findall(at))
        raise document.error(_plain(message), path, _subject(document.value, path)) from None


def _plain(message: str) -> str:
    return message[0].lower() + message[1:].replace("`", "").replace("| null", "")


def _subject(value: Any, path: tuple[str | int, ...]) -> str:
    """The entry that a path leads into, for messages: `user admin` for a path into users[0]; empty if there is none."""
    if len(path) < 2 or not isinstance(path[1], int):
        return ""
    named = value[path[0]][path[1]]
    return f"{str(path[0]).removesuffix('s')} {named['name']}" if isinstance(named, dict) and "name" in named else ""
