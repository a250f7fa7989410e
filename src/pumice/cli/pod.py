"""`pumice pod list`: the pods of Volcano's jobs, with vcctl's flags and columns."""

import time
from typing import Any

import click

from pumice.api.annotations import JOB_NAME, JOB_QUEUE, QUEUE_NAME
from pumice.api.kinds import PODS
from pumice.api.times import age
from pumice.cli.live_cluster import Remote, everywhere_option, listed, namespaced_options
from pumice.cli.tables import print_table, say
from pumice.client.transport import ListScope
from pumice.text_table import columns

HEAD = ("Name", "Ready", "Status", "Restart", "Age")


@click.group()
def pod() -> None:
    """Look at the pods of Volcano's jobs."""


@pod.command("list")
@namespaced_options
@everywhere_option
@click.option("-j", "--job", help="Only pods of this job.")
@click.option("-q", "--queue", help="Only pods in this queue, plain ones too.")
def list_(remote: Remote, namespace: str | None, everywhere: bool, job: str | None, queue: str | None) -> None:
    """List the pods that belong to jobs."""
    chosen = f"{JOB_NAME}={job}" if job else "" if queue else JOB_NAME
    scope = ListScope(PODS, remote.namespace(namespace, everywhere), label_selector=chosen)
    found = [item for item in remote.run(lambda client: listed(client, scope)) if queue in (None, _queue(item["metadata"]))]
    if not found:
        say("No resources found")
        return
    now = time.time()
    rows = [([item["metadata"]["namespace"]] if everywhere else []) + _row(item, now) for item in found]
    print_table(columns((("Namespace",) if everywhere else ()) + HEAD, rows))


def _queue(metadata: dict[str, Any]) -> str | None:
    """The queue of a pod: pods of jobs have a label for it, other pods an annotation. None if there is neither."""
    return (metadata.get("labels") or {}).get(JOB_QUEUE) or (metadata.get("annotations") or {}).get(QUEUE_NAME)


def _row(item: dict[str, Any], now: float) -> list[str]:
    metadata, status = item["metadata"], item.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in containers)
    restarts = sum(each.get("restartCount") or 0 for each in containers)
    phase = "Terminating" if metadata.get("deletionTimestamp") else status.get("reason") or status.get("phase") or "Unknown"
    wanted = len(item["spec"].get("containers") or ())
    return [metadata["name"], f"{ready}/{wanted}", phase, str(restarts), age(metadata.get("creationTimestamp"), now)]
