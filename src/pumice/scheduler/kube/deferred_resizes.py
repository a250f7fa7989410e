"""Room for running pods that are to grow: pods whose resize in place their kubelet has put off, since their node has no room for it.

Such a pod comes through the scheduling queue as a single pod, also if it is a member of a group. Its node counts what it asks for already.
If that is too much, less important pods of the node are evicted; the kubelet does the rest. Nothing is told, and nobody is nominated.
"""

import numpy as np

from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.preemption import Preemption, checked_columns
from pumice.scheduler.kube.preemption_dry_run import Trial
from pumice.scheduler.kube.preemption_units import PreemptionUnit, by_budget, by_importance
from pumice.scheduler.model import Rows, Task
from pumice.scheduler.plugins.kube.node_resources_fit import FitFilter

GATE, PLUGIN = "InPlacePodVerticalScalingSchedulerPreemption", "DeferredPodScheduling"


def make_room(session: Session, preemption: Preemption, fit: FitFilter, task: Task) -> None:
    """Evict pods of the node on which a pod is to grow, if that makes room for it. The node may forbid that."""
    policy = session.nodes.wire[task.node].spec.pod_preemption_policy
    columns = checked_columns(fit, task, session.cluster.dimensions.names)
    if (policy is not None and policy.disable_resize_preemption) or task.template.never_preempts or not _is_short(session, task, columns):
        return
    on_node = sorted(session.nodes.tasks[task.node].values(), key=lambda each: each.number)
    lower = by_importance(preemption.units.of(on_node, task.pod_priority), session.now)
    victims = _victims(session, preemption, task, columns, lower)
    preemption.evict(victims, task.key)


def _victims(session: Session, preemption: Preemption, task: Task, columns: Rows, lower: list[PreemptionUnit]) -> list[Task]:
    """The pods of the units that cannot stay; none if even all of them would not make room."""
    lost: list[PreemptionUnit] = []
    with Trial(session.cluster) as trial:
        for unit in lower:
            for each in unit.tasks:
                trial.remove(each)
        if _is_short(session, task, columns):
            return []
        for unit in by_budget(lower, preemption.budgets):
            mark = trial.mark()
            for each in unit.tasks:
                trial.put_back(each)
            if _is_short(session, task, columns):
                trial.rollback(mark)
                lost.append(unit)
    return [each for unit in lower if unit in lost for each in unit.tasks]


def _is_short(session: Session, task: Task, columns: Rows) -> bool:
    """Whether the node has given away more than it has, of what the pod asks for."""
    return bool(np.any(session.nodes.row_idle(task.node)[columns] < 0))
