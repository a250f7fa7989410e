"""`pumice get`: kubectl's get for machines without kubectl. The server makes the tables, so they have the same columns as kubectl's."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple
from urllib.parse import urlencode

import click
import msgspec

from pumice.api import InputError, kinds
from pumice.api.kinds import ObjectRef
from pumice.cli.live_cluster import Remote, everywhere_option, listed, namespaced_options
from pumice.cli.server_table import ServerTable, print_objects
from pumice.cli.tables import print_table, say
from pumice.client.client import Client
from pumice.client.discovery import ServedResource, discover, named
from pumice.client.failures import ApiError, NoAnswer, api_error
from pumice.client.transport import ListScope, as_dict
from pumice.text_table import GAP

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
WATCH_IDLE_S = 600.0
PAGE = 500


class GetTarget(NamedTuple):
    """One resource of the command line, and the names of the wanted objects; no names mean all objects."""

    served: ServedResource
    names: tuple[str, ...]
    namespace: str
    selector: str

    @property
    def paths(self) -> Iterator[str]:
        resource = self.served.resource
        if not self.names:
            yield resource.path(namespace=self.namespace)
        for name in self.names:
            yield resource.path(name, self.namespace)


def _kinds(context: click.Context, argument: click.Parameter, begun: str) -> list[str]:
    """The completions of a kind, from our own table of kinds: the server is not asked while the user types."""
    known = {kind.plural for kind in kinds.KINDS if kind not in kinds.NEVER_STORED}
    return sorted(name for name in known if name.startswith(begun)) if not context.params.get("what") else []


@click.command()
@namespaced_options
@everywhere_option
@click.argument("what", nargs=-1, required=True, metavar="KIND[/NAME] [NAME]...", shell_complete=_kinds)
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml", "name"]), help="Another form than a table.")
@click.option("-l", "--selector", default="", help="Only objects with these labels, such as app=web.")
@click.option("-w", "--watch", "watching", is_flag=True, help="Go on printing what changes.")
def get(
    remote: Remote, namespace: str | None, everywhere: bool, what: tuple[str, ...], output: str | None, selector: str, watching: bool
) -> None:
    """Show objects, as kubectl get does: pumice get pods, pumice get queue default -o yaml, pumice get vcjob,podgroup -A."""
    where = remote.namespace(namespace, everywhere)

    async def show(client: Client) -> None:
        wanted = list(_wanted(what, await discover(client), where, selector))
        if watching and (len(wanted) != 1 or len(wanted[0].names) > 1 or output not in (None, "wide")):
            raise InputError("one resource, or one object, can be watched, as a table", where="--watch")
        if watching:
            await _watch(client, wanted[0], wide=output == "wide", everywhere=everywhere)
        elif output in (None, "wide"):
            await _tables(client, wanted, wide=output == "wide", everywhere=everywhere)
        else:
            print_objects(await _objects(client, wanted), output or "", single=sum(len(each.names) for each in wanted) == 1)

    remote.run(show)


def _wanted(what: tuple[str, ...], served: list[ServedResource], namespace: str, selector: str) -> Iterator[GetTarget]:
    slashed = [word.partition("/") for word in what]
    chosen: list[tuple[ServedResource, tuple[str, ...]]]
    if all(slash for _, slash, _ in slashed):
        chosen = [(named(word, served), (name,)) for word, _, name in slashed]
    elif any(slash for _, slash, _ in slashed):
        raise InputError('write either "KIND NAME NAME" or "KIND/NAME KIND/NAME"')
    else:
        chosen = [(named(word, served), what[1:]) for word in what[0].split(",")]
    for one, its_names in chosen:
        if its_names and selector:
            raise InputError("objects are chosen either by name or by labels", where="--selector")
        if its_names and one.resource.namespaced and not namespace:
            raise InputError("an object is in one namespace; give it with -n in place of -A", where="--all-namespaces")
        yield GetTarget(one, its_names, namespace if one.resource.namespaced else "", selector)


async def _objects(client: Client, wanted: list[GetTarget]) -> list[tuple[ServedResource, dict[str, Any]]]:
    found = []
    for each in wanted:
        resource = each.served.resource
        if each.names:
            items = [as_dict(await client.get(resource, ObjectRef(name, each.namespace))) for name in each.names]
        else:
            items = await listed(client, ListScope(resource, each.namespace, label_selector=each.selector))
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        found += [(each.served, head | item) for item in items]
    return found


async def _tables(client: Client, wanted: list[GetTarget], *, wide: bool, everywhere: bool) -> None:
    texts = []
    for each in wanted:
        table: ServerTable | None = None
        rows: list[dict[str, Any]] = []
        async for part in _parts(client, each):
            table = table or _new_table(part, each, wide, everywhere)
            rows += part.get("rows") or ()
        if table is not None and rows:
            prefix = f"{each.served.title}/" if len(wanted) > 1 else ""
            texts.append(table.text(_prefixed(rows, prefix)))
    print_table("\n\n".join(texts)) if texts else _nothing(wanted, everywhere)


def _new_table(part: dict[str, Any], wanted: GetTarget, wide: bool, everywhere: bool) -> ServerTable:
    return ServerTable(part["columnDefinitions"], wide=wide, with_namespace=everywhere and wanted.served.resource.namespaced)


def _prefixed(rows: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    return [row | {"cells": [f"{prefix}{row['cells'][0]}", *row["cells"][1:]]} for row in rows] if prefix else rows


def _nothing(wanted: list[GetTarget], everywhere: bool) -> None:
    namespace = wanted[0].namespace
    say(f"No resources found in {namespace} namespace." if namespace and not everywhere else "No resources found", err=True)


async def _parts(client: Client, wanted: GetTarget) -> AsyncIterator[dict[str, Any]]:
    """The tables that the server makes: one for each named object, or one for each page of the list."""
    for path in wanted.paths:
        query = {} if wanted.names else {"limit": str(PAGE)} | ({"labelSelector": wanted.selector} if wanted.selector else {})
        while True:
            part = _table(await client.get_path(f"{path}?{urlencode(query)}" if query else path, TABLE))
            yield part
            following = (part.get("metadata") or {}).get("continue")
            if not following:
                break
            query["continue"] = following


def _table(raw: bytes) -> dict[str, Any]:
    part = as_dict(raw)
    if part.get("kind") != "Table":
        raise InputError("the server makes no tables of this kind; use -o yaml or -o name")
    return part


async def _watch(client: Client, wanted: GetTarget, *, wide: bool, everywhere: bool) -> None:
    """Print the list, and then a row for each change. Columns are as wide as in the list."""
    table: ServerTable | None = None
    rows: list[dict[str, Any]] = []
    version = ""
    async for part in _parts(client, wanted):
        table = table or _new_table(part, wanted, wide, everywhere)
        version = (part.get("metadata") or {}).get("resourceVersion") or version
        rows += part.get("rows") or ()
    assert table is not None
    widths = _Widths(table.head, [table.row(row) for row in rows])
    for line in widths.lines:
        say(line)
    async for changed in _changes(client, wanted, version):
        for row in changed.get("rows") or ():
            say(widths.line(table.row(row)))


class _Widths:
    """The widths of a table's columns, for rows that are printed one by one after the table."""

    def __init__(self, head: list[str], rows: list[list[str]]) -> None:
        self._widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        self.lines = [self.line(row) for row in ([head, *rows] if rows else [head])]

    def line(self, row: list[str]) -> str:
        return GAP.join(cell.ljust(width) for cell, width in zip(row, self._widths, strict=True)).rstrip()


async def _changes(client: Client, wanted: GetTarget, version: str) -> AsyncIterator[dict[str, Any]]:
    """The tables of a watch, one for each change, as long as the server keeps the watch open."""
    query = {"watch": "true", "resourceVersion": version}
    query |= {"fieldSelector": f"metadata.name={wanted.names[0]}"} if wanted.names else {}
    query |= {"labelSelector": wanted.selector} if wanted.selector else {}
    path = f"{wanted.served.resource.path(namespace=wanted.namespace)}?{urlencode(query)}"
    try:
        async with aclosing(client.watch_path(path, TABLE, WATCH_IDLE_S)) as lines:  # type: ignore[type-var]
            async for batch in lines:
                for line in filter(None, batch):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise api_error(500, msgspec.json.encode(event["object"]))
                    yield event["object"]
    except (ApiError, NoAnswer) as error:
        if isinstance(error, ApiError):
            raise
        say(str(error), err=True)
