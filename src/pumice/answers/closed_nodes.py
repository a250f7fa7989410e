"""Nodes that rules close to a pod: which rule to name, and what would open a node.

A rule is binding if it alone closes a node that would otherwise do. Where no rule alone is in the way, the node that nearly fits decides
which rule is named.
"""

import numpy as np
from msgspec import Struct

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import ClusterChange, Gone, Recover, Uncordon, is_of_condition, written
from pumice.answers.completed_objects import runtime_classes
from pumice.answers.pod_changes import Drop, MakeClaim, Tolerate
from pumice.answers.refusing_rules import Closed, NodesFor
from pumice.api.core import Taint
from pumice.api.plural import counted
from pumice.scheduler.engine import Evaluation
from pumice.scheduler.model import Cluster, Mask, Nodes, Task
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import ExistingTerms, TermRole
from pumice.scheduler.plugins.kube.inter_pod_affinity import EXISTING
from pumice.scheduler.plugins.kube.node_affinity import ENFORCED
from pumice.scheduler.plugins.kube.taint_toleration import HARD, tolerated
from pumice.scheduler.plugins.kube.volume_matching import claim_of, is_bound, uses, waits_for_pod

BECAUSE = {
    "NodeAffinity": Because.AFFINITY,
    "NodeName": Because.AFFINITY,
    "TaintToleration": Because.TAINT,
    "NodeUnschedulable": Because.CORDONED,
    "InterPodAffinity": Because.POD_AFFINITY,
    "PodTopologySpread": Because.SPREAD,
    "NodePorts": Because.PORTS,
    "VolumeBinding": Because.VOLUME,
    "VolumeZone": Because.VOLUME,
    "VolumeRestrictions": Because.VOLUME,
    "NodeVolumeLimits": Because.VOLUME,
    "DynamicResources": Because.DEVICES,
}
DROPPED = {
    Because.AFFINITY: "node affinity",
    Because.POD_AFFINITY: "pod affinity",
    Because.SPREAD: "topology spread constraint",
    Because.PORTS: "host port",
    Because.VOLUME: "volume",
    Because.DEVICES: "device claim",
}
PASSING = frozenset([Because.VOLUME, Because.CORDONED, Because.UNHEALTHY])  #: reasons that go away without a change of the job


class BindingRule(Struct, frozen=True):
    """The binding rule, and the nodes that it alone keeps closed. If no rule alone closes a node: the node that lacks least."""

    closed: Closed
    opens: Mask


def choose(nodes: NodesFor) -> BindingRule | None:
    """The binding rule, and the nodes that it alone keeps closed. None if no node that could take the pod is closed."""
    alone = []
    for rule in dict.fromkeys(each.rule for each in nodes.closed):
        opens = nodes.alive & nodes.large & nodes.by(rule) & ~nodes.shut(but=rule)
        if opens.any():
            is_chosen = BECAUSE.get(rule) is Because.AFFINITY  # by the pod's author: nodes that the pod wants come before others
            alone.append((not is_chosen, bool((opens & nodes.roomy).any()), int(opens.sum()), rule, opens))
    if alone:
        *_, rule, opens = max(alone, key=lambda each: each[:3])
        return BindingRule(_of(nodes, rule, opens), opens)
    rows = [row for row in nodes.nearest(len(nodes.table)) if nodes.large[row] and not nodes.open[row]]
    if not rows:
        return None
    nearest = np.zeros(len(nodes.table), bool)
    nearest[rows[0]] = True
    return BindingRule(next(each for each in nodes.closed if each.where[rows[0]]), nearest)


def _of(nodes: NodesFor, rule: str, opens: Mask) -> Closed:
    """The rule with the reason that it gives for most of the nodes that it would open."""
    return max((each for each in nodes.closed if each.rule == rule), key=lambda each: int((each.where & opens).sum()))


def headline(cluster: Cluster, task: Task, whose: str, nodes: NodesFor, choice: BindingRule) -> Headline:
    because = BECAUSE.get(choice.closed.rule, Because.RULE)
    row = next(row for row in nodes.nearest(len(nodes.table)) if choice.opens[row])
    if because is Because.TAINT and any(map(is_of_condition, _untolerated(nodes.table, task, row))):
        because = Because.UNHEALTHY
    text = _reason_text(cluster, nodes, task, because, choice, row)
    return Headline(because, text, remedy=_remedy(cluster, task, whose, because, choice, row))


def rejected(cluster: Cluster, task: Task, whose: str, rule: str, text: str) -> Headline:
    """The headline for a pod that a rule keeps from all nodes at once."""
    because = BECAUSE.get(rule, Because.RULE)
    missing = [use.key for use in uses(task) if claim_of(cluster, use) is None] if because is Because.VOLUME else []
    if missing:
        named = ", ".join(missing)
        return Headline(because, f"PersistentVolumeClaim {named} does not exist", remedy=tuple(map(MakeClaim, missing)))
    field = DROPPED.get(because)
    return Headline(because, text, remedy=(Drop(whose, field),) if field else ())


def awaited_claims(cluster: Cluster, task: Task, evaluation: Evaluation) -> list[str]:
    """The keys of claims that keep a task from every node but may still come: they are missing, or not bound."""
    if BECAUSE.get(evaluation.rejected_by) is not Because.VOLUME:
        return []
    named = [(use.key, claim_of(cluster, use)) for use in uses(task)]
    return [key for key, claim in named if claim is None or not (is_bound(claim) or waits_for_pod(cluster, claim))]


def _reason_text(cluster: Cluster, nodes: NodesFor, task: Task, because: Because, choice: BindingRule, row: int) -> str:
    which, is_one = _which(nodes, choice.opens)
    match because:
        case Because.TAINT:
            taints = ", ".join(untolerated(nodes.table, task, row))
            return f"{which} {'has' if is_one else 'have'} a taint that it does not tolerate: {taints}"
        case Because.UNHEALTHY:
            reasons = ", ".join(taint.key for taint in _untolerated(nodes.table, task, row) if is_of_condition(taint))
            return f"{which} {'is' if is_one else 'are'} not healthy: {reasons}"
        case Because.AFFINITY if selector := task.template.spec.node_selector:
            pairs = ", ".join(f"{key}={value}" for key, value in selector.items())
            of = f", which is that of its RuntimeClass {task.template.spec.runtime_class_name}" if _is_of_class(cluster, task) else ""
            return f"no node that it may use matches its node selector {pairs}{of}"
        case Because.AFFINITY:
            return f"no node that it may use matches its node affinity: {choice.closed.text}"
        case Because.CORDONED:
            return f"{which} {'is' if is_one else 'are'} cordoned"
    return f"{which} {'is' if is_one else 'are'} closed to it: {choice.closed.text}"


def _which(nodes: NodesFor, opens: Mask) -> tuple[str, bool]:
    """The nodes that would be opened, in words, and whether it is a single node."""
    number, of = int(opens.sum()), int(nodes.alive.sum())
    quality = "with room for it" if (opens & nodes.roomy).any() else "large enough"
    if number == 1:
        name = nodes.table.names[int(np.flatnonzero(opens)[0])]
        return (f"node {name}" if of == 1 else f"node {name}, the only one {quality},"), True
    return (f"all {counted(of, 'node')}" if number == of else f"{number} of {of} nodes, the only ones {quality},"), False


def untolerated(table: Nodes, task: Task, row: int) -> tuple[str, ...]:
    """The taints of a node that the task does not tolerate, as kubectl writes them."""
    return tuple(map(written, _untolerated(table, task, row)))


def _untolerated(table: Nodes, task: Task, row: int) -> list[Taint]:
    given = task.template.spec.tolerations or ()
    return [taint for taint in table.taints(row) if taint.effect in HARD and not tolerated(taint, given, table)]


def _remedy(cluster: Cluster, task: Task, whose: str, because: Because, choice: BindingRule, row: int) -> tuple[ClusterChange, ...]:
    node, text = cluster.nodes.names[row], choice.closed.text
    match because:
        case Because.TAINT:
            return (Tolerate(whose, untolerated(cluster.nodes, task, row)),)
        case Because.CORDONED:
            return (Uncordon(node),)
        case Because.UNHEALTHY:
            return (Recover(node),)
        case Because.POD_AFFINITY if text == EXISTING.text:
            return (Gone(tuple(f"pod/{other.key}" for other in _unfriendly(cluster, task, row))),)
        case Because.AFFINITY if text == ENFORCED.text:
            return ()
        case Because.AFFINITY if _is_of_class(cluster, task):
            return (Drop(whose, "RuntimeClass"),)
    field = DROPPED.get(because)
    return (Drop(whose, field),) if field else ()


def _is_of_class(cluster: Cluster, task: Task) -> bool:
    """Whether the task's node selector comes from its RuntimeClass: it would have it again in a pod that is made anew."""
    named = task.template.spec.runtime_class_name
    given = (each.scheduling.node_selector for each in runtime_classes(cluster) if each.metadata.name == named) if named else ()
    return any(given)


def _unfriendly(cluster: Cluster, task: Task, row: int) -> list[Task]:
    """Pods with anti-affinity near a node, in the domains where such terms refuse the task."""
    near = np.zeros(len(cluster.nodes), bool)
    for held, _ in cluster.index(ExistingTerms).meeting(TermRole.REFUSES, task):
        codes, _ = cluster.nodes.codes(held.term.key)
        near |= codes == codes[row]
    others = (other for at in np.flatnonzero(near).tolist() for other in cluster.nodes.tasks[at].values())
    return [other for other in others if (affinity := other.template.spec.affinity) is not None and affinity.pod_anti_affinity is not None]
