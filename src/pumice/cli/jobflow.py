"""`pumice jobflow` and `pumice jobtemplate`: the same five commands for two kinds, with vcctl's flags and messages."""

import time
from collections.abc import Callable
from typing import Any

import click

from pumice.api import InputError
from pumice.api.kinds import JOB_FLOWS, JOB_TEMPLATES, Kind, ObjectRef
from pumice.api.times import age
from pumice.cli.live_cluster import Remote, everywhere_option, listed, namespaced_options
from pumice.cli.manifests_to_send import manifests
from pumice.cli.object_output import as_json, as_yaml, without_bookkeeping
from pumice.cli.tables import print_table, say
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from pumice.text_table import columns

Cell = tuple[str, Callable[[dict[str, Any]], str]]


def group(resource: Kind, what: str, more: tuple[Cell, ...]) -> click.Group:
    """The command group of one kind. `more` are the columns between the namespace and the age."""
    made = click.Group(resource.kind.lower(), help=f"Create, look at and delete {what}.")
    for command in (_create(resource), _delete(resource), _list(resource, more), _get(resource, more), _describe(resource)):
        made.add_command(command)
    return made


def _create(resource: Kind) -> click.Command:
    @click.command("create")
    @namespaced_options
    @click.option("-f", "--file", "path", required=True, help="A YAML file.")
    def create(remote: Remote, namespace: str | None, path: str) -> None:
        """Create what a file describes."""
        bodies = _read(path, resource, remote, namespace)

        async def make(client: Client) -> None:
            for ref, body in bodies:
                await client.create(resource, body, ref.namespace)
                say(f"Created {resource.kind}: {ref}")

        remote.run(make)

    return create


def _delete(resource: Kind) -> click.Command:
    @click.command("delete")
    @namespaced_options
    @click.option("-f", "--file", "path", help="A YAML file; what it names is deleted.")
    @click.option("-N", "--name", help="The name of what is to be deleted.")
    def delete(remote: Remote, namespace: str | None, path: str | None, name: str | None) -> None:
        """Delete by name, or what a file names."""
        if bool(path) == bool(name):
            raise click.UsageError("give either a file (-f) or a name (-N)")
        refs = (
            [ref for ref, _ in _read(path, resource, remote, namespace)] if path else [ObjectRef(name or "", remote.namespace(namespace))]
        )

        async def end(client: Client) -> None:
            for ref in refs:
                await client.delete(resource, ref)
                say(f"Deleted {resource.kind}: {ref}")

        remote.run(end)

    return delete


def _read(path: str, resource: Kind, remote: Remote, namespace: str | None) -> list[tuple[ObjectRef, dict[str, Any]]]:
    found = []
    for body in manifests([path]):
        if body["kind"] != resource.kind:
            raise InputError(f"is a {body['kind']}, not a {resource.kind}; for anything else use pumice apply", where=path)
        where = remote.namespace(namespace or body["metadata"].get("namespace"))
        body["metadata"]["namespace"] = where
        found.append((ObjectRef(body["metadata"].get("name") or "", where), body))
    return found


def _list(resource: Kind, more: tuple[Cell, ...]) -> click.Command:
    @click.command("list")
    @namespaced_options
    @everywhere_option
    def list_(remote: Remote, namespace: str | None, everywhere: bool) -> None:
        """List what there is."""
        scope = ListScope(resource, remote.namespace(namespace, everywhere))
        found = remote.run(lambda client: listed(client, scope))
        print_table(_table(found, more) if found else "No resources found")

    return list_


def _get(resource: Kind, more: tuple[Cell, ...]) -> click.Command:
    @click.command("get")
    @namespaced_options
    @click.option("-N", "--name", required=True, help="Its name.")
    def get(remote: Remote, namespace: str | None, name: str) -> None:
        """Show one."""
        ref = ObjectRef(name, remote.namespace(namespace))
        print_table(_table([as_dict(remote.run(lambda client: client.get(resource, ref)))], more))

    return get


def _table(found: list[dict[str, Any]], more: tuple[Cell, ...]) -> str:
    now = time.time()
    head = ("Name", "Namespace", *(title for title, _ in more), "Age")
    rows = []
    for item in found:
        metadata = item["metadata"]
        rows.append(
            (metadata["name"], metadata["namespace"], *(cell(item) for _, cell in more), age(metadata.get("creationTimestamp"), now))
        )
    return columns(head, rows)


def _describe(resource: Kind) -> click.Command:
    @click.command("describe")
    @namespaced_options
    @click.option("-N", "--name", help="Its name; without one, all of the namespace.")
    @click.option("-o", "--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
    def describe(remote: Remote, namespace: str | None, name: str | None, form: str) -> None:
        """Show everything about one, or about all."""
        where = remote.namespace(namespace)

        async def ask(client: Client) -> list[dict[str, Any]]:
            return (
                [as_dict(await client.get(resource, ObjectRef(name, where)))] if name else await listed(client, ListScope(resource, where))
            )

        written = as_json if form == "json" else as_yaml
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        texts = [written(head | without_bookkeeping(item)) for item in remote.run(ask)]
        say(("-" * 33 + "\n").join(texts) or "No resources found", nl=not texts)

    return describe


def _phase(item: dict[str, Any]) -> str:
    return str(((item.get("status") or {}).get("state") or {}).get("phase") or "")


jobflow = group(JOB_FLOWS, "JobFlows, jobs that follow each other", (("Phase", _phase),))
jobtemplate = group(JOB_TEMPLATES, "JobTemplates, which JobFlows make jobs of", ())
