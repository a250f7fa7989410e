"""resourcequota: a job is let in only if its minimum fits into every ResourceQuota of its namespace.

Names are compared as written: a quota on `requests.cpu` counts what a job's minResources say of `requests.cpu`. Jobs let in
earlier in the same cycle count as used, since their pods are yet to come.
"""

from collections.abc import Mapping

from pumice.api.core import ResourceQuota
from pumice.api.pod import ResourceList
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job


class Quotas(Plugin):
    name = "resourcequota"
    reads_only_state = True

    def open(self, session: Session) -> None:
        super().open(session)
        self._promised: dict[str, dict[str, int]] = {}  #: by namespace: amounts in thousandths by name
        self._quotas: dict[str, list[ResourceQuota]] = {}
        for quota in session.cluster.of("ResourceQuota").values():
            self._quotas.setdefault(quota.metadata.namespace or "default", []).append(quota)

    def job_enqueueable(self, job: Job) -> Vote:
        wanted = _minimum(job)
        promised = self._promised.get(job.namespace, {})
        if any(self._exceeded(job, quota, wanted, promised) for quota in self._quotas.get(job.namespace, ())):
            return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        promised = self._promised.setdefault(job.namespace, {})
        for name, quantity in _minimum(job).items():
            promised[name] = promised.get(name, 0) + quantity.milli

    def _exceeded(self, job: Job, quota: ResourceQuota, wanted: ResourceList, promised: Mapping[str, int]) -> bool:
        """Whether the job would exceed the quota. If so its PodGroup gets the reason, with the amounts."""
        hard, used = quota.status.hard or {}, quota.status.used or {}
        relevant = [name for name in wanted if name in hard]
        taken = {name: promised.get(name, 0) + (used[name].milli if name in used else 0) for name in relevant}
        if all(taken[name] + wanted[name].milli <= hard[name].milli for name in relevant):
            return False
        parts = (("requested", wanted), ("used", used), ("limited", hard))
        lists = (f"{word}: {','.join(f'{n}={part[n].text}' for n in relevant if n in part)}" for word, part in parts)
        name = f"{job.namespace}/{quota.metadata.name}"
        self.session.refuse_admission(job, f"resource quota insufficient, {', '.join(lists)} (ResourceQuota {name})")
        return True


def _minimum(job: Job) -> ResourceList:
    return (job.group.spec.min_resources if job.group else None) or {}
