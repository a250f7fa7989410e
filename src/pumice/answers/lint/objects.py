"""Rules about what a cluster holds: priorities without effect, budgets that nothing passes, jobs that can never run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pumice.answers.fits import claims, fits
from pumice.answers.lint.finding import Finding, Level
from pumice.api.selectors import matches
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.topology import why_unheeded
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster

MOST_JOBS = 200  #: that wait, of which each is asked whether it can ever run


def powerless_priorities(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Classes in use that can never make room, however important."""
    used = Counter(
        job.group.spec.priority_class_name for job in cluster.jobs.values() if job.group is not None and job.group.spec.priority_class_name
    )
    classes = [each for each in cluster.of("PriorityClass").values() if not each.metadata.name.startswith("system-")]
    preempts = policy.has_action("preempt") or policy.has_action("gangpreempt") or policy.profiles is not None
    if not preempts and used and len({each.value for each in classes}) > 1:
        yield Finding(
            "nobody-preempts",
            Level.NOTE,
            "configuration",
            "priority classes decide who is served first, and never make room, since no action preempts",
            "Add preempt to the actions, if important jobs shall evict others",
        )
    lowest = min((each.value for each in classes), default=0)
    for each in classes:
        if each.preemption_policy == "Never" and each.value > lowest and preempts:
            yield Finding(
                "class-never-preempts",
                Level.NOTE,
                f"priorityclass/{each.metadata.name}",
                f"pods of it wait for room however important they are ({each.value}), since its preemptionPolicy is Never",
                "Leave preemptionPolicy out, if they shall make room",
            )


def blocking_budgets(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Budgets that let none of their pods go."""
    for key, budget in sorted(cluster.of("PodDisruptionBudget").items()):
        selector = budget.spec.selector.requirements if budget.spec.selector else ()
        namespace = budget.metadata.namespace or "default"
        covered = [
            task
            for task in cluster.tasks.values()
            if task.namespace == namespace and task.status == status.RUNNING and matches(selector, task.labels)
        ]
        if not selector or not covered:
            continue
        never = budget.spec.max_unavailable in (0, "0", "0%") or budget.spec.min_available in (len(covered), "100%")
        if never:
            yield Finding(
                "budget-blocks-all",
                Level.WARNING,
                f"poddisruptionbudget/{key}",
                f"its pods ({len(covered)}) can never be evicted: drains of their nodes hang, and nobody else gets their room",
                "Let at least one be unavailable",
                f"{covered[0].key} on {covered[0].node_name} is one of them",
            )


def never_fits(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    if not cluster.nodes.count:
        return
    waits = sorted((job for job in cluster.waiting.values() if job.group is not None), key=lambda job: (job.created, job.uid))
    for job in waits[:MOST_JOBS]:
        fit = fits(cluster, policy, now, f"podgroup/{job.uid}", world)
        if fit.bound is not None:
            text = f"it can never run here: {fit.bound.text}" + (f"; {fit.largest}" if fit.largest else "")
            yield Finding("never-fits", Level.ERROR, f"podgroup/{job.uid}", text, "Ask for less, or add what is short")
        elif fit.waits_for:
            text = f"it waits for {claims(fit.waits_for)}, without which none of its pods starts"
            fix = "Create what is missing, or look why it is not bound"
            yield Finding("waits-for-claim", Level.WARNING, f"podgroup/{job.uid}", text, fix)


def unheeded_topologies(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Jobs that wait, whose hard network topology no plugin knows."""
    for uid, job in sorted({**cluster.waiting, **cluster.not_enqueued}.items()):
        if job.group is not None and why_unheeded(job.group, policy):
            text = "its hard network topology has no effect: no plugin heeds it"
            yield Finding("topology-unheeded", Level.WARNING, f"podgroup/{uid}", text, "Add network-topology-aware to the plugins")
