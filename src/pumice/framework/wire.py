"""Our nouns as objects of Kubernetes again, for services that are asked about them."""

from __future__ import annotations

from msgspec import structs

from pumice.api.meta import Metadata
from pumice.api.pod import Pod, PodStatus
from pumice.model.task import Task


def as_pod(task: Task) -> Pod:
    """The pod as far as we read pods."""
    meta = Metadata(
        name=task.name,
        namespace=task.namespace,
        uid=task.uid,
        labels=dict(task.labels) or None,
        annotations=dict(task.annotations) or None,
    )
    spec = structs.replace(task.template.spec, node_name=task.node_name or None)
    return Pod(meta, spec, PodStatus(nominated_node_name=task.nominated or None))
