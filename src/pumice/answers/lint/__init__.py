"""What is wrong, or will not do what is meant, in a configuration, in queues, in a cluster's objects: findings with consequence and fix.

A rule is a function that looks at a cluster and a policy and yields findings. `RULES` lists all rules, in the order of their findings.
"""

from collections.abc import Callable, Iterable, Iterator

from pumice.answers.lint import configuration, objects
from pumice.answers.lint.finding import Finding, Level
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster

__all__ = ["RULES", "Finding", "Level", "Rule", "lint", "worst_first"]

Rule = Callable[[Cluster, Policy, float, World], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    configuration.unheard_voters,
    configuration.gangs_without_say,
    configuration.idle_actions,
    configuration.idle_plugins,
    configuration.order_of_actions,
    configuration.rivals,
    configuration.gangs_unkept,
    objects.beyond_the_cluster,
    objects.contradictions,
    objects.trees,
    objects.shut_with_jobs,
    objects.unreclaimable,
    objects.powerless_priorities,
    objects.blocking_budgets,
    objects.never_fits,
    objects.unheeded_topologies,
)
RANK = {level: number for number, level in enumerate(Level)}


def lint(cluster: Cluster, policy: Policy, now: float, world: World = NOWHERE) -> list[Finding]:
    """The findings of all rules, errors first. The cluster is afterwards as it was."""
    return worst_first(finding for rule in RULES for finding in rule(cluster, policy, now, world))


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    return sorted(found, key=lambda finding: RANK[finding.level])
