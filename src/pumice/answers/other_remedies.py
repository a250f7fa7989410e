"""What could be done in place of the headline's remedy: nodes that are opened instead of pods that ask for less, or a wider topology.

Each way is a list of changes from the smallest to the largest: if one of them helps, so do those after it.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import ClusterChange, LabelNodes, Recover, Uncordon, Untaint, is_of_condition
from pumice.answers.closed_nodes import untolerated
from pumice.answers.pod_changes import Drop, Tolerate
from pumice.answers.request_changes import WiderTopology
from pumice.answers.subject import WaitingPart
from pumice.scheduler.model import Cluster, Task, copies
from pumice.scheduler.model.hypernodes import hypernodes_of

MOST_NODES = 64
ROOM = (
    Because.NO_ROOM,
    Because.FRAGMENTED,
    Because.TOO_LARGE,
    Because.GANG,
    Because.GANG_TOO_LARGE,
)  #: room is short on the nodes that a job may use
OF_NODES = "kubernetes.io/"  #: labels with such a prefix say what a node is, so nobody sets them to let a pod in


def other_ways(cluster: Cluster, waits: WaitingPart, headline: Headline) -> Iterator[list[ClusterChange]]:
    task, tasks = waits.tasks[0], waits.tasks
    match headline.because, headline.remedy:
        case because, _ if because in ROOM:
            yield from _closed_nodes(cluster, waits)
        case Because.TAINT, (Tolerate(taints=taints), *_):
            yield _untainted(cluster, tasks, taints)
        case Because.AFFINITY, _ if labels := _wanted(task):
            lacking = {row for row in cluster.nodes if not labels.items() <= (cluster.nodes.wire[row].metadata.labels or {}).items()}
            yield _steps(cluster, tasks, lacking, lambda names: LabelNodes(names, labels))
        case Because.TOPOLOGY, _ if task.job is not None:
            tree, uid = hypernodes_of(cluster), task.job.uid
            tiers = sorted({each.tier for each in tree.all if each is not tree.root})
            yield [*(WiderTopology(uid, tier) for tier in tiers), WiderTopology(uid)]


def _closed_nodes(cluster: Cluster, waits: WaitingPart) -> Iterator[list[ClusterChange]]:
    """Nodes that have room, and that a cordon, a taint, their state or the job's own selector closes: of each kind the roomiest."""
    nodes, task = cluster.nodes, waits.tasks[0]
    room = copies(task.template.needs, nodes.idle)
    roomy = [row for row in np.argsort(-room, kind="stable").tolist() if room[row] > 0 and row in nodes]
    for row in [row for row in roomy if nodes.cordoned[row]][:1]:
        yield [Uncordon(nodes.names[row])]
    tainted = [row for row in roomy if not nodes.cordoned[row] and untolerated(nodes, task, row)]
    failed = [row for row in tainted if any(map(is_of_condition, nodes.wire[row].spec.taints or ()))]
    for row in failed[:1]:
        yield [Recover(nodes.names[row])]
    for row in [row for row in tainted if row not in failed][:1]:
        taints = untolerated(nodes, task, row)
        yield [Tolerate(waits.name, taints)]
        yield _untainted(cluster, waits.tasks, taints)
    spec = task.template.spec
    if spec.node_selector or (spec.affinity is not None and spec.affinity.node_affinity is not None):
        yield [Drop(waits.name, "node affinity")]


def _untainted(cluster: Cluster, tasks: Sequence[Task], taints: tuple[str, ...]) -> list[ClusterChange]:
    tainted = {row for row in cluster.nodes if (left := untolerated(cluster.nodes, tasks[0], row)) and set(left) <= set(taints)}
    return _steps(cluster, tasks, tainted, lambda names: Untaint(names, taints))


def _steps(
    cluster: Cluster, tasks: Sequence[Task], rows: set[int], change: Callable[[tuple[str, ...]], ClusterChange]
) -> list[ClusterChange]:
    """The change for one node, for two, and so on; those with most room for the pods come first."""
    room = copies(tasks[0].template.needs, cluster.nodes.idle)
    first = [row for row in np.argsort(-room, kind="stable").tolist() if row in rows][: min(len(tasks), MOST_NODES)]
    return [change(tuple(cluster.nodes.names[row] for row in first[:count])) for count in range(1, len(first) + 1)]


def _wanted(task: Task) -> dict[str, str]:
    """The labels of the task's node selector; empty if labels alone cannot be what it lacks."""
    spec = task.template.spec
    labels = spec.node_selector or {}
    is_all = spec.affinity is None or spec.affinity.node_affinity is None
    return labels if is_all and not any(OF_NODES in key for key in labels) else {}
