"""Rules about the scheduler's configuration: tiers, plugins and actions that do not do what their names promise."""

from collections.abc import Iterator

from msgspec.structs import replace

from pumice.answers.lint.finding import Finding, Level
from pumice.answers.subject import owner_of
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import Cluster

WHERE = "configuration"
VICTIMS = {
    "preempt": "preemptable",
    "reclaim": "reclaimable",
    "gangpreempt": "unified_evictable",
    "gangreclaim": "unified_evictable",
    "shuffle": "victim_tasks",
}
SWITCHES = {"preempt": "enablePreemptable", "reclaim": "enableReclaimable"}
PLACERS = ("backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim")  #: beside those that give idle room to gangs
NEEDS = {"job_enqueueable": "enqueue", "victim_tasks": "shuffle", "unified_evictable": "gangpreempt"}


def unheard_voters(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find plugins whose votes do not count: the first tier that names victims decides alone, later tiers only vote where it names none."""
    for action, hook in (("preempt", "preemptable"), ("reclaim", "reclaimable")):
        if not policy.has_action(action):
            continue
        tiers = [[choice.plugin.name for choice in tier if _votes(choice, hook)] for tier in policy.tiers]
        voting = [tier for tier in tiers if tier]
        if len(voting) > 1:
            late = ", ".join(name for tier in voting[1:] for name in tier)
            yield Finding(
                "victims-short-circuited",
                Level.WARNING,
                WHERE,
                f"{action} does not ask {late} whom it may evict, as long as an earlier tier ({', '.join(voting[0])}) names anybody",
                f"Put {late} into the tier of {voting[0][0]}",
                _example(cluster, policy, now, world, action),
            )


def gangs_without_say(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find tiers without the plugin gang that decide about victims wherever an earlier tier, with gang in it, names nobody."""
    for action, hook in (("preempt", "preemptable"), ("reclaim", "reclaimable")):
        tiers = [[choice.plugin.name for choice in tier if _votes(choice, hook)] for tier in policy.tiers]
        voting = [tier for tier in tiers if tier]
        first = next((number for number, tier in enumerate(voting) if "gang" in tier), None)
        alone = next((tier for tier in voting[first + 1 :] if "gang" not in tier), None) if first is not None else None
        if first is None or alone is None or not policy.has_action(action):
            continue
        who, decides = ", ".join(alone), "decides" if len(alone) == 1 else "decide"
        yield Finding(
            "gang-without-say",
            Level.WARNING,
            WHERE,
            f"where {', '.join(voting[first])} let nobody go, {who} alone {decides} whom {action} evicts: "
            "gangs are broken, whatever their priority",
            f"Put {who} into the tier of gang, or set {SWITCHES[action]}: false there",
            _broken(cluster, policy, now, world, action, alone),
        )


def _broken(cluster: Cluster, policy: Policy, now: float, world: World, action: str, alone: list[str]) -> str:
    """A pod that these plugins alone would let the action evict now, and for whom, in words; empty if there is none."""
    for eviction in rehearse(cluster, policy, now, world).evictions:
        if eviction.action == action and eviction.permitted_by and set(eviction.permitted_by) <= set(alone):
            job = eviction.task.job
            whose = f"podgroup/{job.uid} (priority {job.priority})" if job is not None else f"pod/{eviction.task.key}"
            return f"The next cycle would evict {eviction.task.key} of {whose} for podgroup/{eviction.beneficiary}"
    return ""


def _votes(choice: PluginOption, hook: str) -> bool:
    return hasattr(choice.plugin, hook) and choice.enabled(hook)


def _example(cluster: Cluster, policy: Policy, now: float, world: World, action: str) -> str:
    """A pod that the action would evict now, but not if all plugins voted, in words; empty if there is none."""
    together = replace(policy, tiers=(tuple(choice for tier in policy.tiers for choice in tier),))
    spared = {eviction.task for eviction in rehearse(cluster, together, now, world).evictions}
    for eviction in rehearse(cluster, policy, now, world).evictions:
        if eviction.action == action and eviction.task not in spared:
            return f"The next cycle would let {action} evict {eviction.task.key} of {owner_of(eviction.task)}"
    return ""


def idle_actions(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find actions that have nothing to do, since no plugin names victims for them."""
    for action, hook in VICTIMS.items():
        if policy.has_action(action) and not policy.has_hook(hook):
            yield Finding(
                "action-cannot-act",
                Level.WARNING,
                WHERE,
                f"action {action} can never evict anybody, since no plugin that is on names victims for it",
                f"Add a plugin that does, such as {'rescheduling' if action == 'shuffle' else 'gang'}, or remove {action}",
            )


def idle_plugins(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find plugins that only take part in the action enqueue, if this action is not configured."""
    for tier in policy.tiers:
        for choice in tier:
            hooks = {hook for hook in NEEDS if hasattr(choice.plugin, hook)}
            needed = {NEEDS[hook] for hook in hooks}
            if choice.plugin.name in ("overcommit", "resourcequota", "sla") and not policy.has_action("enqueue") and "enqueue" in needed:
                yield Finding(
                    "plugin-cannot-act",
                    Level.WARNING,
                    WHERE,
                    f"plugin {choice.plugin.name} holds nobody back, since it is asked by action enqueue, which is not there",
                    "Put enqueue first among the actions, or remove the plugin",
                )


def order_of_actions(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    names = [action.name for action in policy.actions]
    placing = next((action.name for action in policy.actions if action.places_gangs), "")
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield _order(f"action {name} runs {names.count(name)} times in each cycle", f"Name {name} once")
    if "enqueue" in names and "allocate" in names and names.index("enqueue") > names.index("allocate"):
        yield _order("a job that is let in waits one more cycle for its nodes, since enqueue comes after allocate", "Put enqueue first")
    for evictor in ("preempt", "reclaim", "gangpreempt", "gangreclaim"):
        if evictor in names and placing and names.index(evictor) < names.index(placing):
            yield _order(
                f"{evictor} comes before {placing}: it decides on evictions before idle room has been given away",
                f"Put {evictor} after {placing}",
            )
    if policy.tiers and not placing and not any(name in PLACERS for name in names) and policy.profiles is None:
        yield Finding("nothing-places", Level.ERROR, WHERE, "no action places any pod", "Add allocate")
    elif placing and "backfill" not in names:
        best_effort = next((task for job in cluster.waiting.values() for task in job.pending.values() if task.best_effort), None)
        example = f"{best_effort.key} waits for it now" if best_effort is not None else ""
        yield Finding(
            "no-backfill",
            Level.NOTE,
            WHERE,
            "pods that ask for no resources are never placed, since there is no backfill",
            "Add backfill",
            example,
        )


def _order(consequence: str, fix: str) -> Finding:
    return Finding("harmful-order", Level.WARNING, WHERE, consequence, fix)


def rivals(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find two plugins that both limit queues, each in its own way."""
    if policy.has_plugin("proportion") and policy.has_plugin("capacity"):
        yield Finding(
            "two-quotas",
            Level.WARNING,
            WHERE,
            "a queue may hold only what both proportion, by weight, and capacity, by deserved, let it",
            "Keep one of them: capacity where queues name what they deserve, else proportion",
        )


def gangs_unkept(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    if policy.has_plugin("gang") or not policy.has_placer:
        return
    gang = next((job for job in cluster.jobs.values() if job.min_member > 1), None)
    if gang is not None:
        yield Finding(
            "no-gang",
            Level.ERROR,
            WHERE,
            "gangs start in part and hold room while they wait for the rest, since plugin gang is not there",
            "Add gang to the first tier",
            f"podgroup/{gang.uid} wants {gang.min_member} pods together",
        )
