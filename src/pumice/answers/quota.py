"""What a queue and its ancestors may still give: the numbers of a refusal, and what would lift the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from msgspec.structs import replace

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import Change, MoreQuota, MoreRoom
from pumice.scheduler.framework.decisions import Shortage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import PODS, Vector, in_bytes, is_scalar

DEVICE = 1000.0  #: one device, in thousandths; there are no parts of devices to give


def headline(session: Session, job: Job, shortages: Sequence[Shortage], *, promised: bool = False) -> Headline:
    """The headline about these shortages. `promised`: the job was not admitted, as what is promised to other jobs counts as well."""
    if not promised:
        shortages = [replace(each, asked=max(each.asked, _asked_at_once(job, each.column))) for each in shortages]
    worst = max(shortages, key=lambda each: each.short / max(each.asked, 1.0))
    dimensions = session.cluster.dimensions
    name = dimensions.names[worst.column]
    asked, held, allowed, short = (
        dimensions.in_words(worst.column, max(amount, 0.0)) for amount in (worst.asked, worst.held, worst.allowed, worst.short)
    )
    holds = "holds or has promised" if promised else "holds"
    if not worst.queue:
        text = f"the cluster {holds} {held} of the {allowed} {name} that jobs may be let in for; {asked} more is asked for ({short} short)"
        return Headline(Because.OVERCOMMITTED, text, asked, _left(session, worst), short, _more_room(session, shortages))
    word = "it deserves" if not promised and session.plugin("proportion") is not None else "it may hold"
    text = f"queue {worst.queue} {holds} {held} of the {allowed} {name} {word}; {asked} more is asked for ({short} short)"
    return Headline(Because.QUOTA, text, asked, _left(session, worst), short, _more_quota(session, shortages))


def _left(session: Session, shortage: Shortage) -> str:
    return session.cluster.dimensions.in_words(shortage.column, max(shortage.allowed - shortage.held, 0.0))


def _more_room(session: Session, shortages: Sequence[Shortage]) -> tuple[Change, ...]:
    """More room on the first node: enough for the cluster, times the factor of plugin overcommit, to suffice."""
    dimensions, plugin = session.cluster.dimensions, session.plugin("overcommit")
    row = next(iter(session.nodes), None)
    if row is None:
        return ()
    factor = plugin.factor if plugin is not None else 1.0
    amounts = {}
    for each in shortages:
        name, least = dimensions.names[each.column], -(-each.short // factor) + 1
        amounts[name] = dimensions.format(each.column, -(-least // DEVICE) * DEVICE if is_scalar(name) and not in_bytes(name) else least)
    return (MoreRoom(session.nodes.names[row], amounts),)


def _more_quota(session: Session, shortages: Sequence[Shortage]) -> tuple[Change, ...]:
    """Higher limits: the capabilities of the queue and its ancestors that are too low; if none is, the guarantee of the queue."""
    dimensions, queues = session.cluster.dimensions, session.cluster.queues
    queue = queues[shortages[0].queue]
    needed = {each.column: each.held + each.asked for each in shortages}
    changes: list[Change] = []
    for level in (queue, *_above(session, queue)):
        amounts = {dimensions.names[c]: dimensions.format(c, most) for c, most in needed.items() if level.capability[c] < most}
        if amounts:
            changes.append(MoreQuota(level.name, "capability", amounts))
    if not changes:
        amounts = {dimensions.names[c]: dimensions.format(c, most) for c, most in needed.items()}
        changes.append(MoreQuota(shortages[0].queue, "guarantee", amounts))
    return tuple(changes)


def _asked_at_once(job: Job, column: int) -> float:
    """What the pods that must start together request of one resource."""
    count = max(job.min_member - job.ready_count, 1)
    asked = sorted((float(task.template.request[column]) for task in job.pending.values()), reverse=True)
    return sum(asked[:count])


def in_words(session: Session, queue: Queue, columns: Sequence[int]) -> str:
    """What the queue and its ancestors hold of their limits, in the requested resources, in words."""
    dimensions = session.cluster.dimensions
    parts = []
    for name, held, limit in _levels(session, queue):
        numbers = [
            f"{dimensions.in_words(c, held[c])} of {dimensions.in_words(c, limit[c])} {dimensions.names[c]}"
            for c in columns
            if limit[c] < inf and c != PODS
        ]
        if numbers:
            parts.append(f"queue {name} holds {', '.join(numbers)}")
    return "; ".join(parts) or "no limit"


def _levels(session: Session, queue: Queue) -> Iterator[tuple[str, Vector, Vector]]:
    """Name, held and limit of the queue and its ancestors, as far as a plugin bounds them."""
    for plugin_name in ("capacity", "proportion"):
        plugin = session.plugin(plugin_name)
        if plugin is None:
            continue
        entitled = plugin.entitlements()
        is_tree = plugin_name == "capacity" and plugin.hierarchy
        for level in (queue, *(_above(session, queue) if is_tree else ())):
            if level.name in entitled:
                deserved, limit = entitled[level.name]
                held = _held(session, level) if is_tree else level.held
                yield level.name, held, deserved if plugin_name == "proportion" else limit


def _held(session: Session, queue: Queue) -> Vector:
    """What the queue and all queues below it hold."""
    held = queue.held
    for each in session.cluster.queues.values():
        if queue in _above(session, each):
            held = held + each.held
    return held


def _above(session: Session, queue: Queue) -> list[Queue]:
    """The ancestors of a queue, its parent first. In a circle, each is listed once."""
    found: list[Queue] = []
    level = session.cluster.queues.get(queue.parent)
    while level is not None and level is not queue and level not in found:
        found.append(level)
        level = session.cluster.queues.get(level.parent)
    return found
