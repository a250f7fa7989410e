"""Pods that have a node: why this node, how the alternatives score, what evicts the pods. Also pods that were evicted recently."""

from collections import Counter
from collections.abc import Iterable

from pumice.answers.answer import Because, Headline, Scored, Why
from pumice.answers.score import ScoreTable, Watcher
from pumice.answers.subject import SHORT, Subject, waiter
from pumice.answers.trial_cluster import TrialCluster, rehearse_alone
from pumice.api import rfc3339
from pumice.api.plural import counted, plural
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.framework.past_evictions import PastEviction, past_evictions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import Cluster, Task, status

BEST = 5  #: how many nodes are shown
LATEST = 10  #: how many evictions are shown


def running(cluster: Cluster, policy: Policy, now: float, world: World, name: str, tasks: list[Task]) -> Why:
    """The answer for a subject none of whose pods waits."""
    placed = [task for task in tasks if task.node >= 0 and not task.status & (status.RELEASING | status.FINISHED)]
    if not placed:
        return _nowhere(cluster, name, tasks) or _ended(cluster, name, tasks)
    decisions = rehearse(cluster, policy, now, world)
    evictions = [eviction for eviction in decisions.evictions if eviction.task in placed]
    if evictions:
        text = "; ".join(_evicted(each, alone=len(placed) == 1) for each in evictions)
        return Why(name, "is evicted", text=f"the next cycle evicts {text}")
    return _why_here(cluster, policy, now, world, name, placed)


def _nowhere(cluster: Cluster, name: str, tasks: list[Task]) -> Why | None:
    """The answer for pods whose node is not there; None if they have none."""
    lost = [task for task in tasks if task.node_name and task.node_name not in cluster.nodes.rows and not task.status & status.FINISHED]
    if not lost:
        return None
    asked = f"node {lost[0].node_name}, which its spec.nodeName asks for, does not exist, and no scheduler looks for another one"
    return Why(name, "waits", Headline(Because.NO_NODES, f"{asked}: add the node, or submit it without nodeName"))


def _ended(cluster: Cluster, name: str, tasks: list[Task]) -> Why:
    if not tasks:
        return Why(name, "has no pods", text="it has no pods")
    states = Counter(status.NAMES[task.status] for task in tasks)
    cause = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    if any(task.status == status.RELEASING for task in tasks):
        evictions = of_pods(cluster, tasks)
        because = f" because of {evictions[-1].cause}" if evictions else " for a more important pod"
        by = f", evicted{because}" if evictions or any(task.disrupted for task in tasks) else ""
        return Why(name, "leaves", text=f"its pods are leaving{by}: {cause}")
    return Why(name, "has ended", text=f"its pods have ended: {cause}")


def _evicted(eviction: Evict, *, alone: bool) -> str:
    """An eviction in words: by which action, for which job or pod, and which plugins permit it."""
    names = eviction.permitted_by
    who = "it" if alone else eviction.task.key
    rule = f", as {', '.join(names)} {plural(len(names), 'permits', 'permit')}" if names else ""
    return f"{who} ({eviction.action}) for {eviction.beneficiary or 'nobody'}{rule}"


def _why_here(cluster: Cluster, policy: Policy, now: float, world: World, name: str, placed: list[Task]) -> Why:
    task = placed[0]
    node, watcher = task.node_name, Watcher(task)
    with TrialCluster(cluster) as trial:
        trial.move(task, status.PENDING, -1)
        rehearse_alone(cluster, policy, now, waiter(task.job, [task]), world, watcher)
        watcher.forget()
    best = _best(watcher.table)
    where = f"on {node}" if len(placed) == 1 else f"{task.name}, one of its {len(placed)} pods, on {node}"
    return Why(name, "runs", text=f"{where}, {_compared(watcher.table, node, best)}", alternatives=tuple(best))


def _best(table: ScoreTable) -> list[Scored]:
    totals = table.scores.get("total", {})
    names = sorted(table.feasible, key=lambda each: -totals[each])[:BEST]
    return [Scored(each, totals[each], {rule: scores[each] for rule, scores in table.scores.items() if rule != "total"}) for each in names]


def _compared(table: ScoreTable, node: str, best: list[Scored]) -> str:
    """How the pod's node compares with other nodes if the pod were placed now, in words."""
    if not best:
        return "where no node would take it now"
    if table.feasible == [node]:
        return "the only node that would take it now"
    total = table.scores["total"].get(node)
    if total is None:
        return f"which would not take it now; the best is {best[0].node}"
    if total >= best[0].total:
        return f"still the best of {counted(len(table.feasible), 'node')} for it (score {total:g})"
    return f"which was chosen when it was placed; now {best[0].node} would be better (score {best[0].total:g} against {total:g})"


def of_pods(cluster: Cluster, tasks: Iterable[Task], job: str = "") -> tuple[PastEviction, ...]:
    """The last evictions of these pods, of earlier pods with the same names, and of other pods of the job."""
    keys = {task.key for task in tasks}
    return tuple(each for each in past_evictions(cluster) if each.pod in keys or (job and each.job == job))[-LATEST:]


def gone_pod(cluster: Cluster, subject: str) -> Why | None:
    """The answer for a pod that no longer exists because it was evicted; None for other subjects."""
    kind, _, name = subject.partition("/")
    key = name if "/" in name else f"default/{name}"
    evictions = tuple(each for each in past_evictions(cluster) if each.pod == key)[-LATEST:]
    if SHORT.get(kind, kind) != "pod" or key in cluster.tasks or not evictions:
        return None
    last = evictions[-1]
    return Why(str(Subject("pod", key)), "was evicted", text=f"at {rfc3339(last.at)}, because of {last.cause}", evictions=evictions)
