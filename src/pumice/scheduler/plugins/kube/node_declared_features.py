"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes only to nodes that declare the feature."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.api.pod import PodSpec
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.framework.cluster_events import EventKind, always
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube import KubePlugin

REFUSAL = Reason("node(s) didn't match Pod's required features", final=True)
RESTART_ALL, HOST_NETWORK_USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def needed_features(spec: PodSpec) -> frozenset[str]:
    """The features that a node must declare for the pod."""
    rules = (rule for each in (*(spec.containers or ()), *(spec.init_containers or ())) for rule in each.restart_policy_rules or ())
    found = {RESTART_ALL} if any(rule.action == "RestartAllContainers" for rule in rules) else set()
    return frozenset(found | ({HOST_NETWORK_USERS} if spec.host_network and spec.host_users is False else set()))


class NodeDeclaredFeatures(Filter):
    name = "NodeDeclaredFeatures"
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        return needed_features(task.template.spec) or None

    def refuse(self, needed: Any, nodes: View) -> Sequence[Refused]:
        lacking = [not needed <= set(node.status.declared_features or ()) for node in nodes.table.wire]
        return [Refused(nodes.of(np.array(lacking, bool)), REFUSAL)]  # type: ignore[arg-type]


PLUGIN = KubePlugin(
    "NodeDeclaredFeatures",
    "preFilter filter",
    filters=lambda args, cluster: [NodeDeclaredFeatures()],
    hints={EventKind.NODE_ADDED: always, EventKind.NODE_FEATURES: always},
)
