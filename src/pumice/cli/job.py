"""`pumice job`: Volcano's jobs, with vcctl's commands, flags and columns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from pumice.api import InputError
from pumice.api.annotations import JOB_NAME, JOB_TYPE
from pumice.api.kinds import EVENTS, JOBS, ObjectRef
from pumice.api.quantity import QuantityError, quantity
from pumice.cli.bus_commands import order
from pumice.cli.describe_output import described
from pumice.cli.live_cluster import Remote, everywhere_option, listed, name_option, namespaced_options, output_option, print_all
from pumice.cli.manifests_to_send import Manifest, manifests
from pumice.cli.tables import print_table, say
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from pumice.text_table import wide_columns

if TYPE_CHECKING:
    from pumice.scheduler.model import Cluster

COLUMNS = (
    ("Creation", 15),
    ("Phase", 12),
    ("JobType", 12),
    ("Replicas", 12),
    ("Min", 6),
    ("Pending", 10),
    ("Running", 10),
    ("Succeeded", 12),
    ("Failed", 10),
    ("Unknown", 12),
    ("RetryCount", 10),
)
ETA = ("ETA", 18)
DEFAULT_AMOUNTS = "cpu=1000m,memory=100Mi"

one_job = name_option("-N", "the job")


@click.group()
def job() -> None:
    """Run, look at, suspend, resume and delete Volcano's jobs."""


@job.command()
@namespaced_options
@click.option("-f", "--filename", type=click.Path(), help="The job as a YAML file; the flags below describe one without a file.")
@click.option("-N", "--name", default="", help="The job's name; needed without a file.")
@click.option("-i", "--image", default="busybox", show_default=True, help="The image of its containers.")
@click.option("-c", "--command", default="", help="What they run, as a shell would split it.")
@click.option("-m", "--min", "least", default=1, show_default=True, help="How many pods must run together.")
@click.option("-r", "--replicas", default=1, show_default=True, help="How many pods there are.")
@click.option("-S", "--scheduler", default="volcano", show_default=True, help="Who schedules it.")
@click.option("-q", "--queue", default="", help="Its queue.")
@click.option("-R", "--requests", default=DEFAULT_AMOUNTS, show_default=True, help="What each pod asks for.")
@click.option("-L", "--limits", default=DEFAULT_AMOUNTS, show_default=True, help="What each pod may use.")
def run(remote: Remote, namespace: str | None, filename: str | None, name: str, **described_by: Any) -> None:
    """Create a job from a file or from flags."""
    if not filename and not name:
        raise click.UsageError("a job needs a name (-N), or a file that describes it (-f)")
    manifest = _from_file(filename) if filename else _from_flags(name=name, **described_by)
    where = remote.namespace(namespace or manifest["metadata"].get("namespace"))
    manifest["metadata"]["namespace"] = where
    made = as_dict(remote.run(lambda client: client.create(JOBS, manifest, where)))
    say(f"run job {made['metadata']['name']} successfully")


def _from_file(path: str) -> Manifest:
    found = list(manifests([path]))
    if len(found) != 1 or found[0]["kind"] != JOBS.kind or found[0]["apiVersion"] != JOBS.api_version:
        raise InputError(f"must hold one Job of {JOBS.api_version}; for anything else use pumice apply", where=path)
    return found[0]


def _from_flags(
    *, name: str, image: str, command: str, least: int, replicas: int, scheduler: str, queue: str, requests: str, limits: str
) -> Manifest:
    amounts = {"requests": _amounts(requests, "--requests"), "limits": _amounts(limits, "--limits")}
    container: dict[str, Any] = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "resources": amounts}
    if command:
        container["command"] = _words(command)
    pod = {"metadata": {"name": name, "labels": {JOB_NAME: name}}}
    template = {**pod, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec: dict[str, Any] = {"minAvailable": least, "schedulerName": scheduler}
    spec |= {"queue": queue} if queue else {}
    spec["tasks"] = [{"name": "test", "replicas": replicas, "template": template}]
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": spec}


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"{command} cannot be split into words: {str(error).lower()}", where="--command") from None


def _amounts(text: str, flag: str) -> dict[str, str]:
    """The resource list for a text such as `cpu=1,memory=1Gi`. Raises InputError."""
    found = {}
    for part in filter(None, text.split(",")):
        name, equals, amount = part.partition("=")
        if not equals or not name:
            raise InputError(f'"{part}" is not an amount; write one such as "cpu=1"', where=flag)
        try:
            quantity(amount)
        except QuantityError as error:
            raise InputError(str(error), where=flag) from None
        found[name.strip()] = amount.strip()
    return found


@job.command("list")
@namespaced_options
@everywhere_option
@click.option("-S", "--scheduler", help="Only jobs of this scheduler.")
@click.option("-q", "--queue", help="Only jobs of this queue.")
@click.option("--selector", default="", help="Only jobs with this in their names.")
@click.option("--eta", "with_eta", is_flag=True, help="When those that wait will start: P50 and P90, as pumice eta tells them.")
@output_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
def list_(
    remote: Remote, namespace: str | None, everywhere: bool, with_eta: bool, output: str | None, names: tuple[str, ...], **chosen: Any
) -> None:
    """List jobs, all or those named."""
    scope = ListScope(JOBS, remote.namespace(namespace, everywhere))
    found = [item for item in remote.run(lambda client: listed(client, scope)) if _is_meant(item, names, **chosen)]
    if output in ("json", "yaml", "name"):
        print_all(JOBS, found, output)
        return
    if not found:
        say("No resources found")
        return
    widest = [max(len(item["metadata"][field]) for item in found) + 3 for field in ("namespace", "name")]
    head = [*([("Namespace", widest[0])] if everywhere else []), ("Name", max(widest[1], 7)), *COLUMNS, *([ETA] if with_eta else [])]
    rows = [([item["metadata"]["namespace"]] if everywhere else []) + _row(item) for item in found]
    for row, eta in zip(rows, _etas(remote, found) if with_eta else (), strict=False):
        row.append(eta)
    print_table(wide_columns(head, rows))


def _etas(remote: Remote, jobs: list[dict[str, Any]]) -> list[str]:
    """P50 and P90 of each job, as text; empty for jobs that do not wait."""
    from pumice.answers.eta import etas
    from pumice.cli.eta import brief_eta
    from pumice.cli.inputs import cluster_at

    now = time.time()
    cluster, policy = cluster_at(remote, now)
    by_owner = {_owner(cluster, uid): brief_eta(eta) for uid, eta in etas(cluster, policy, now).items()}
    return [by_owner.get((item["metadata"]["namespace"], item["metadata"]["name"]), "") for item in jobs]


def _owner(cluster: Cluster, uid: str) -> tuple[str, str]:
    job = cluster.jobs[uid]
    owner = job.group.metadata.controller if job.group is not None else None
    return job.namespace, owner.name if owner is not None else job.name


def _is_meant(item: dict[str, Any], names: tuple[str, ...], *, scheduler: str | None, queue: str | None, selector: str) -> bool:
    name, spec = item["metadata"]["name"], item["spec"]
    if names and name not in names:
        return False
    return scheduler in (None, spec.get("schedulerName")) and queue in (None, spec.get("queue")) and selector in name


def _row(item: dict[str, Any]) -> list[object]:
    spec, status = item["spec"], item.get("status") or {}
    replicas = sum(task.get("replicas") or 0 for task in spec.get("tasks") or ())
    phase = (status.get("state") or {}).get("phase") or ""
    counts = [status.get(field) or 0 for field in ("pending", "running", "succeeded", "failed", "unknown", "retryCount")]
    kind = (item["metadata"].get("labels") or {}).get(JOB_TYPE) or "Batch"
    created = (item["metadata"].get("creationTimestamp") or "")[:10]
    return [item["metadata"]["name"], created, phase, kind, replicas, spec.get("minAvailable") or 0, *counts]


@job.command()
@namespaced_options
@one_job
def view(remote: Remote, namespace: str | None, name: str) -> None:
    """Show a job in full, with its events and those of its PodGroup, which are the scheduler's."""
    where = remote.namespace(namespace)

    async def ask(client: Client) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        found = as_dict(await client.get(JOBS, ObjectRef(name, where)))
        uid = found["metadata"]["uid"]
        both = f"kind=Job,involvedObject.name={name},involvedObject.uid={uid}", f"kind=PodGroup,involvedObject.name={name}-{uid}"
        events = [
            each for about in both for each in await listed(client, ListScope(EVENTS, where, field_selector=f"involvedObject.{about}"))
        ]
        return found, sorted(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")

    say(described(*remote.run(ask), now=time.time()))


@job.command()
@namespaced_options
@one_job
def suspend(remote: Remote, namespace: str | None, name: str) -> None:
    """Abort a job: its pods end, the job stays and can be resumed."""
    remote.run(lambda client: order(client, JOBS, ObjectRef(name, remote.namespace(namespace)), "AbortJob"))


@job.command()
@namespaced_options
@one_job
def resume(remote: Remote, namespace: str | None, name: str) -> None:
    """Start a suspended job again."""
    remote.run(lambda client: order(client, JOBS, ObjectRef(name, remote.namespace(namespace)), "ResumeJob"))


@job.command()
@namespaced_options
@one_job
def delete(remote: Remote, namespace: str | None, name: str) -> None:
    """Delete a job, and with it its pods."""
    remote.run(lambda client: client.delete(JOBS, ObjectRef(name, remote.namespace(namespace))))
    say(f"delete job {name} successfully")
