"""What a queue and its ancestors may still give: the numbers of a refusal, and what would lift the limit."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from math import inf

import numpy as np
from msgspec.structs import replace

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import Amounts, ClusterChange, Gone, MoreNodes, MoreQuota, MoreRoom
from pumice.answers.missing_pods import may_start_with
from pumice.answers.queue_admission import is_allowed
from pumice.answers.subject import called
from pumice.api.plural import plural
from pumice.scheduler.framework.fit_errors import Shortage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import PODS, Cluster, Job, Queue, Vector, dominant_share, status
from pumice.scheduler.model.inqueue_promises import promises_to
from pumice.scheduler.model.resources import as_vector, in_bytes
from pumice.scheduler.placement.pending_tasks import PendingTasks

PLACED = status.BINDING | status.BOUND | status.RUNNING
SHOWN = 3  #: how many of the jobs are named to which something is promised
STEP_MILLI, STEP_BYTES, DEVICE = 100.0, 64.0 * 2**20, 1000.0  #: 100m of cpu, 64Mi; one device, in thousandths, as devices have no parts


def step_of(resource: str) -> float:
    """The amount of a resource by which more or less is advised."""
    return STEP_BYTES if in_bytes(resource) else STEP_MILLI if resource == "cpu" else DEVICE


def headline(session: Session, job: Job, shortages: Sequence[Shortage], *, promised: bool = False) -> Headline:
    """The headline about these shortages. `promised`: the job was not admitted, as what is promised to other jobs counts as well."""
    if not promised:
        shortages = [replace(each, asked=max(each.asked, _asked_at_once(session, job, each))) for each in shortages]
    worst = max(shortages, key=lambda each: each.short / max(each.asked, 1.0))
    dimensions = session.cluster.dimensions
    name = dimensions.names[worst.column]
    asked, held, allowed, short = (
        dimensions.format_amount(worst.column, max(amount, 0.0)) for amount in (worst.asked, worst.held, worst.allowed, worst.short)
    )
    limit, asks = f"{allowed} {name}", f"it asks for {asked} ({short} short)"
    if not worst.queue:
        held = f"{held} are held or promised{_to_others(session, worst, job)}"
        text = f"jobs are admitted for {limit} in all{_overcommitted(session, worst)}, of which {held}; {asks}"
        return Headline(Because.OVERCOMMITTED, text, asked, _left(session, worst), short, _more_room(session, shortages))
    if not promised and session.plugin("proportion") is not None:
        text = f"queue {worst.queue} deserves {limit} by its weight{_of_cluster(session, worst)}, and holds {held}; {asks}"
    else:
        held = f", of which {held} are held or promised{_to_others(session, worst, job)}" if promised else f", and holds {held}"
        text = f"queue {worst.queue} may hold {limit}{_of_cluster(session, worst)}{held}; {asks}"
    return Headline(Because.QUOTA, text, asked, _left(session, worst), short, _more_quota(session, shortages))


def promised_to(job: Job) -> Vector:
    """What an admitted job may still request: as much is kept from jobs that are not admitted."""
    reserve = promises_to(job).reserve
    return as_vector(reserve) if reserve is not None else np.zeros_like(job.held)


def largest_promises(cluster: Cluster, own: Job | None, count: int) -> list[Gone]:
    """The ends of so many admitted jobs that wait, those first to which most is promised."""
    total = cluster.nodes.total()
    waiting = (job for job in cluster.waiting.values() if promises_to(job).reserve is not None and not job.count(PLACED) and job is not own)
    found = nlargest(count, ((dominant_share(promised_to(job), total), f"podgroup/{job.uid}") for job in waiting))
    return [Gone((name,)) for _, name in found]


def _to_others(session: Session, shortage: Shortage, own: Job) -> str:
    """To whom the resource is promised, in words: the jobs that were admitted before, in the same queue or below it. Empty if to none."""
    cluster, column = session.cluster, shortage.column
    promising = [queue for queue in cluster.queues.values() if queue.inqueue[column] > 0]  # mostly none: a queue may have a million jobs
    within = [queue for queue in promising if shortage.queue in ("", queue.name, *(up.name for up in _above(session, queue)))]
    jobs = [job for queue in within for job in queue.jobs.values() if promises_to(job).reserve is not None and job is not own]
    waiting = (job for job in jobs if job.pending or not job.tasks)
    promised = sorted(((float(promised_to(job)[column]), job.uid) for job in waiting), reverse=True)
    found = [(amount, uid) for amount, uid in promised if amount > 0]
    if not found:
        return ""
    names = [called(cluster, f"podgroup/{uid}") for _, uid in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more, which are" if len(found) > SHOWN else ", which is" if len(found) == 1 else ", which are"
    amount = cluster.dimensions.format_amount(column, sum(each for each, _ in found))
    return f" ({amount} to {', '.join(names)}{more} admitted and {plural(len(found), 'waits', 'wait')})"


def _overcommitted(session: Session, shortage: Shortage) -> str:
    """What the cluster has, and by which factor jobs are admitted beyond it, in words."""
    plugin = session.plugin("overcommit")
    has = session.cluster.dimensions.format_amount(shortage.column, float(session.total[shortage.column]))
    return f" ({plugin.factor:g} times the cluster's {has})" if plugin is not None and plugin.factor != 1 else ""


def _of_cluster(session: Session, shortage: Shortage) -> str:
    """What the cluster has of the resource, in words, if the queue's own capability does not bound it."""
    total = float(session.total[shortage.column])
    if session.cluster.queues[shortage.queue].capability[shortage.column] < inf:
        return ""
    return (
        " (all of the cluster)"
        if shortage.allowed >= total
        else f" (the cluster has {session.cluster.dimensions.format_amount(shortage.column, total)})"
    )


def _left(session: Session, shortage: Shortage) -> str:
    return session.cluster.dimensions.format_amount(shortage.column, max(shortage.allowed - shortage.held, 0.0))


def _more_room(session: Session, shortages: Sequence[Shortage]) -> tuple[ClusterChange, ...]:
    """More room in the cluster: enough for the cluster, times the factor of plugin overcommit, to suffice; of what it lacks wholly, all."""
    plugin = session.plugin("overcommit")
    factor = plugin.factor if plugin is not None else 1.0
    return _room(session, {each.column: -(-each.short // factor) + 1 if session.total[each.column] else each.short for each in shortages})


def _room(session: Session, needed: dict[int, float]) -> tuple[ClusterChange, ...]:
    """This much more of each resource: more nodes like the one that has most of what is short, or more on it if it has none of another."""
    nodes, dimensions = session.nodes, session.cluster.dimensions
    if not nodes.count:
        return ()
    column = max(needed, key=lambda each: needed[each] / max(float(nodes.allocatable[each].sum()), 1.0))
    row = int(np.where(nodes.alive, nodes.allocatable[column], -inf).argmax())
    has = {each: float(nodes.allocatable[each, row]) for each in needed}
    if all(has.values()):
        return (MoreNodes(nodes.names[row], max(int(-(-least // has[each])) for each, least in needed.items())),)
    amounts = {}
    for each, least in needed.items():
        name = dimensions.names[each]
        amounts[name] = dimensions.format(each, -(-least // step_of(name)) * step_of(name))
    return (MoreRoom(nodes.names[row], amounts),)


def _more_quota(session: Session, shortages: Sequence[Shortage]) -> tuple[ClusterChange, ...]:
    """Higher limits: the capabilities of the queue and its ancestors that are too low. If none is: a guarantee, if it leaves room for those
    of the other queues and admission allows it; else more room in the cluster."""
    queue, total = session.cluster.queues[shortages[0].queue], session.total
    needed = {each.column: each.held + each.asked for each in shortages}
    heeded = (
        (queue, *_above(session, queue)) if _is_tree(session) or any(queue.capability[c] < most for c, most in needed.items()) else (queue,)
    )
    levels = ((level, {c: most for c, most in needed.items() if level.capability[c] < most}) for level in heeded)
    if higher := [MoreQuota(level.name, "capability", _amounts(session, lacking)) for level, lacking in levels if lacking]:
        return tuple(reversed(higher))  # no queue may have a higher capability than its parent
    guaranteed = sum((other.guarantee for other in session.queues if other is not queue), session.cluster.dimensions.zeros())
    beyond = {c: most + guaranteed[c] - total[c] for c, most in needed.items() if most + guaranteed[c] > total[c]}
    guarantee = MoreQuota(queue.name, "guarantee", _amounts(session, needed))
    if not beyond and queue.wire is not None and is_allowed(session.cluster, queue.wire, guarantee.of(queue.wire)):
        return (guarantee,)
    return _room(session, beyond) if beyond else ()


def _is_tree(session: Session) -> bool:
    """Whether queues are bounded by their ancestors; else only admission compares their capabilities."""
    plugin = session.plugin("capacity")
    return plugin is not None and plugin.hierarchy


def _amounts(session: Session, vector: dict[int, float]) -> Amounts:
    dimensions = session.cluster.dimensions
    return {dimensions.names[column]: dimensions.format(column, amount) for column, amount in vector.items()}


def _asked_at_once(session: Session, job: Job, shortage: Shortage) -> float:
    """What the pods that must start together request of one resource: with so much left, and not with less, the job starts if its pods are
    tried in their order, and those that ask for more than is left are passed over."""
    tasks = PendingTasks.of(session, job, job.pending.values()).tasks[::-1]
    asked = [float(task.template.request[shortage.column]) for task in tasks]

    def starts(left: float) -> bool:
        placed = []
        for task, amount in zip(tasks, asked, strict=True):
            if amount <= left:
                left -= amount
                placed.append(task)
        return may_start_with(job, placed)

    too_little, enough = max(shortage.allowed - shortage.held, 0.0), sum(asked)
    if starts(too_little) or not starts(enough):
        return 0.0
    while enough - too_little > 1.0:
        middle = (too_little + enough) // 2
        too_little, enough = (too_little, middle) if starts(middle) else (middle, enough)
    return enough


def format_amount(session: Session, queue: Queue, columns: Sequence[int]) -> str:
    """What the queue and its ancestors hold, deserve and may hold of the requested resources, in words."""
    parts = []
    for level, held, deserved, limit in _levels(session, queue):
        phrases = [
            f"{session.cluster.dimensions.names[column]} {_amounts_of(session, column, held, deserved, limit)}"
            for column in columns
            if column != PODS and (limit[column] < inf or deserved[column] > 0)
        ]
        if phrases:
            parts.append(f"queue {level}: {'; '.join(phrases)}")
    return ". ".join(parts) or "no limit"


def _amounts_of(session: Session, column: int, held: Vector, deserved: Vector, limit: Vector) -> str:
    def says(vector: Vector, word: str) -> str:
        return f"{session.cluster.dimensions.format_amount(column, float(vector[column]))} {word}"

    parts = [says(held, "held")]
    parts += [says(deserved, "deserved")] if deserved[column] > 0 else []
    parts += [says(limit, "allowed")] if limit[column] < inf else []
    return ", ".join(parts)


def _levels(session: Session, queue: Queue) -> Iterator[tuple[str, Vector, Vector, Vector]]:
    """Name, held, deserved and limit of the queue and its ancestors, as far as a plugin bounds them."""
    for plugin_name in ("capacity", "proportion"):
        plugin = session.plugin(plugin_name)
        if plugin is None:
            continue
        entitled = plugin.entitlements()
        is_tree = plugin_name == "capacity" and plugin.hierarchy
        for level in (queue, *(_above(session, queue) if is_tree else ())):
            if level.name in entitled:
                deserved, limit = entitled[level.name]
                yield level.name, _held(session, level) if is_tree else level.held, deserved, limit


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
