"""ResourceQuotas that keep pods from being made: which one, with the amounts, and what would be enough.

The pods that are judged are those that controllers would make (`pods_to_come.py`). The other pods of their namespace count as used.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import Amounts, RaiseQuota
from pumice.answers.pods_to_come import is_promised, promise
from pumice.answers.request_changes import StateAmounts
from pumice.answers.subject import WaitingPart, as_they_came
from pumice.answers.trial_cluster import TrialCluster
from pumice.api import Object
from pumice.api.core import ResourceQuota
from pumice.api.plural import part_of, plural
from pumice.api.pod import ResourceRequirements
from pumice.api.quantity import quantity
from pumice.api.resource_quota import Usage, add, counted_resource, in_scope, pod_usage, unsaid, written
from pumice.api.structs import encode
from pumice.scheduler.model import COMPLETED, Cluster, Job, Task, Template, status

A_LITTLE = {"cpu": "100m", "memory": "128Mi"}  #: what pods may state that a quota demands to state anything


class QuotaRefusal(Struct, frozen=True):
    """A quota that refuses a pod."""

    quota: str  #: namespace/name
    task: Task
    hard: Usage  #: of the names in which it is exceeded
    used: Usage  #: the same, before the pod
    asked: Usage
    unsaid: dict[str, list[str]] = {}  #: amounts that the quota demands of each container, with those that do not state them


def refusals(cluster: Cluster, namespace: str, last: Job | None = None) -> list[QuotaRefusal]:
    """The refusals of promised pods of a namespace, which are made in their order, those of the job `last` after all others."""
    quotas = [quota for quota in cluster.of("ResourceQuota").values() if (quota.metadata.namespace or "default") == namespace]
    if not quotas:
        return []
    tasks = [task for task in cluster.tasks.values() if task.namespace == namespace and not task.status & status.FINISHED]
    books = [_Book(quota, [task for task in tasks if not is_promised(task)]) for quota in quotas]
    found = []
    for task in sorted(as_they_came(filter(is_promised, tasks)), key=lambda task: last is not None and task.job is last):
        refusal = next(filter(None, (book.refusal(task) for book in books)), None)
        if refusal is not None:
            found.append(refusal)
            continue
        for book in books:
            book.charge(task)
    return found


def refused_pods(cluster: Cluster, last: Job | None = None) -> list[Task]:
    """The promised pods that quotas refuse, if those of the job `last` come after all others: when controllers try again is not known."""
    return [refusal.task for namespace in namespaces_with_quotas(cluster) for refusal in refusals(cluster, namespace, last)]


def withdraw_refused(trial: TrialCluster) -> None:
    """Take back those promised pods that quotas refuse."""
    for task in refused_pods(trial.cluster):
        trial.remove("Pod", task.key)


def promise_rest(trial: TrialCluster) -> None:
    """In namespaces with quotas, promise the pods that other jobs still miss: they are made as soon as a quota allows it."""
    spaces = namespaces_with_quotas(trial.cluster)
    for job in sorted(trial.cluster.jobs.values(), key=lambda job: (job.created, job.uid)) if spaces else ():
        if job.namespace in spaces and job.group is not None and not job.is_pending and job.phase != COMPLETED:
            promise(trial, job)


def count_used(trial: TrialCluster) -> None:
    """Bring what quotas say is used up to date: pods that exist, and promised pods of jobs that are admitted."""
    cluster = trial.cluster
    for quota in list(cluster.of("ResourceQuota").values()):
        namespace = quota.metadata.namespace or "default"
        tasks = [task for task in cluster.tasks.values() if task.namespace == namespace and not task.status & status.FINISHED]
        book = _Book(quota, [task for task in tasks if not is_promised(task) or (task.job is not None and not task.job.is_pending)])
        used = (quota.status.used or {}) | {name: quantity(text) for name, text in written(book.used).items()}
        if used != quota.status.used:
            trial.put("ResourceQuota", replace(quota, status=replace(quota.status, used=used, hard=quota.spec.hard)))


def namespaces_with_quotas(cluster: Cluster) -> set[str]:
    return {quota.metadata.namespace or "default" for quota in cluster.of("ResourceQuota").values()}


class _Book:
    """What the pods of a quota's namespace use of it."""

    def __init__(self, quota: ResourceQuota, tasks: Iterable[Task]) -> None:
        self._quota: Object = msgspec.json.decode(encode(quota))
        self._name = f"{quota.metadata.namespace or 'default'}/{quota.metadata.name}"
        self._hard = {name: amount.milli for name, amount in (quota.spec.hard or {}).items() if counted_resource(name) == "pods"}
        self._charges: dict[Template, Usage] = {}
        self._unsaid: dict[Template, dict[str, list[str]]] = {}  #: as in `QuotaRefusal`; nothing if the quota does not count the pod
        self.used = add(self._of(task.template) for task in tasks)

    def _of(self, template: Template) -> Usage:
        """The charge of a pod; empty if the quota does not count it."""
        if template not in self._charges:
            spec = msgspec.json.decode(encode(template.spec))
            counts = in_scope(self._quota, {"spec": spec})
            self._unsaid[template] = unsaid(spec, self._hard) if counts else {}
            self._charges[template] = {name: n for name, n in pod_usage(spec).items() if name in self._hard} if counts else {}
        return self._charges[template]

    def charge(self, task: Task) -> None:
        self.used = add((self.used, self._of(task.template)))

    def refusal(self, task: Task) -> QuotaRefusal | None:
        asked = self._of(task.template)
        lacking = self._unsaid[task.template]
        over = [name for name, n in asked.items() if n > 0 and self.used.get(name, 0) + n > self._hard[name]]
        if not over and not lacking:
            return None
        hard, used, more = ({name: amounts.get(name, 0) for name in over} for amounts in (self._hard, self.used, asked))
        return QuotaRefusal(self._name, task, hard, used, more, lacking)


def headline(cluster: Cluster, waits: WaitingPart) -> Headline | None:
    """The headline if quotas refuse the pods that a controller would make for the subject, so that it cannot start; else None."""
    if not any(map(is_promised, waits.tasks)):
        return None
    job, least = waits.job, 0
    found = [each for each in refusals(cluster, waits.tasks[0].namespace) if each.task in waits.members]
    there = len(waits.tasks) - len(found)
    if job is not None and job.group is not None:
        there, least = job.valid_count - len(found), job.min_member
    if not found or (there and there >= least):
        return None
    first, of = found[0], len(job.tasks if job is not None else waits.tasks)
    refused = f"ResourceQuota {first.quota} refuses {part_of(len(found), of, 'pod')}"
    if first.unsaid:
        return Headline(Because.POD_QUOTA, f"{refused}: {_lacking(first.unsaid)}", remedy=(_stating(waits.name, first),))
    needed = found[: max(least, 1) - there]
    asked = add(each.asked for each in needed if each.quota == first.quota)
    return _short(refused, first.quota, first.hard, first.used, asked)


def _lacking(unsaid: dict[str, list[str]]) -> str:
    """What a quota demands and containers do not state, in words."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, containers in unsaid.items():
        names.setdefault(tuple(containers), []).append(name)
    of_each = (
        f"{plural(len(containers), 'container')} {', '.join(containers)} {plural(len(containers), 'lacks', 'lack')} {' and '.join(lacking)}"
        for containers, lacking in names.items()
    )
    return f"{'; '.join(of_each)}, which it demands of each container"


def _stating(whose: str, refusal: QuotaRefusal) -> StateAmounts:
    """The change with which containers state what the quota demands: as limits what they request, else a little."""
    spec = refusal.task.template.spec
    containers = {each.name: each.resources or ResourceRequirements() for each in (*(spec.containers or ()), *(spec.init_containers or ()))}
    stated: dict[str, dict[str, Amounts]] = {}
    for each, lacking in refusal.unsaid.items():
        side, _, name = each.rpartition(".")
        for container in lacking:
            known = (containers[container].requests or {}).get(name)
            amounts = stated.setdefault(container, {}).setdefault(side or "requests", {})
            amounts[name] = known.text if known is not None else A_LITTLE[name]
    return StateAmounts(whose, stated)


def of_minimum(cluster: Cluster, job: Job) -> Headline | None:
    """The headline if a quota has no room for the minResources of a job, which the plugin resourcequota therefore does not admit."""
    asked = (job.group.spec.min_resources if job.group is not None else None) or {}
    for key, quota in cluster.of("ResourceQuota").items():
        hard, used = quota.status.hard or {}, quota.status.used or {}
        over = [n for n in asked if n in hard and (used[n].milli if n in used else 0) + asked[n].milli > hard[n].milli]
        if over and (quota.metadata.namespace or "default") == job.namespace:
            wants = {name: asked[name].milli for name in over}
            held = {name: used[name].milli if name in used else 0 for name in over}
            return _short(f"ResourceQuota {key} has no room for it", key, {name: hard[name].milli for name in over}, held, wants)
    return None


def _short(what: str, quota: str, hard: Usage, used: Usage, asked: Usage) -> Headline:
    """The headline about the amounts that a quota lacks."""
    name = max(hard, key=lambda each: (asked[each] / max(hard[each], 1), each.startswith("requests.")))
    short = used[name] + asked[name] - hard[name]
    has, most, wants, less = (written({name: amount})[name] for amount in (used[name], hard[name], asked[name], short))
    text = f"{what}: {has} of {most} {name} are used, and it asks for {wants} ({less} short)"
    needed = written({each: used[each] + asked[each] for each in hard})
    return Headline(Because.POD_QUOTA, text, wants, has, less, (RaiseQuota(quota, needed),))
