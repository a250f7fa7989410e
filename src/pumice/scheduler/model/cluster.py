"""The kept state: what is known of the cluster, changed by events (`put`, `remove`) and by decisions (`move`).

Invariants, asserted by `check()`: every task is in at most one node row and one job; the sums of nodes, jobs and queues are
those of their tasks; `waiting` holds the jobs with Pending tasks; `log` has every change of the tasks on nodes, in order.
"""

from typing import Any, TypeVar

from pumice.api.annotations import GROUP_NAME
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.volcano import PodGroup, Queue as QueueObject
from pumice.scheduler.model import status
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.inqueue_promises import promises_agree, promises_to, withdraw_promises
from pumice.scheduler.model.job import PENDING, Job
from pumice.scheduler.model.kept_sums import KeptSums
from pumice.scheduler.model.past_usage import HolderOf, PastUsage
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import DEVICE_SHARES
from pumice.scheduler.model.shadow_group import shadow_group
from pumice.scheduler.model.shared_templates import NO_PAIRS
from pumice.scheduler.model.task import Task, key_of, owner_of
from pumice.scheduler.model.template import Template

Kept = TypeVar("Kept", bound=Index)


class Cluster(KeptSums):
    """The kept state of a cluster. `schedulers` are the schedulerNames whose pods we place."""

    def __init__(
        self, schedulers: tuple[str, ...] = ("volcano",), default_queue: str = DEFAULT_QUEUE, ignored: frozenset[str] = DEVICE_SHARES
    ) -> None:
        super().__init__(schedulers, ignored)
        self.shadow_groups = False  #: make PodGroups for pods that have none, as kube-batch does
        self.needs_drivers = False  #: CSI drivers may ask that their volumes go to no node without them (gate VolumeLimitScaling)
        self.shares_claims = False  #: device claims of native PodGroups serve all their pods (gate DRAWorkloadResourceClaims)
        self.device_gates: frozenset[str] = frozenset()  #: the gates of device allocation that are on
        self.newer = False  #: what differs between the releases of kube-scheduler follows the rules of 1.37
        self.lacking: frozenset[str] = frozenset()  #: kinds of which the input has no object, though the cluster may have some
        self.default_queue = default_queue
        self.tasks: dict[str, Task] = {}  #: by "namespace/name"
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.objects: dict[str, dict[str, Any]] = {}  #: objects of other kinds: kind to "namespace/name" or name to object
        self.versions: dict[str, int] = {}  #: kind to a number that changes with its objects
        self.tier_names: dict[str, int] = {}  #: the names of tiers that PodGroups have, and how often
        self.not_enqueued: dict[str, Job] = {}  #: jobs whose phase is Pending
        self.stopped: dict[str, Task] = {}  #: tasks that would be Pending if their namespace were not being deleted
        self.members: dict[str, dict[str, Task]] = {}  #: by native PodGroup: its tasks, whether or not it exists
        self.expecting: dict[str, Job] = {}  #: jobs for whose pods places are held
        self.with_pod_affinity: dict[Template, None] = {}  #: templates with inter-pod affinity that were ever seen
        self._indexes: dict[type[Index], Index] = {}  #: updated with each move that filters see
        self.memory: dict[str, Any] = {}  #: what plugins keep from cycle to cycle, by plugin name
        self.sequence = 0
        self.cycles = 0  #: how many have decided, and so have seen what had changed
        self._on_unknown_nodes: dict[str, dict[str, Task]] = {}  #: tasks whose node is not known (yet), by its name
        self.dimensions.widened.append(self._widen)

    # -- events

    def put(self, kind: str, item: Wire, key: str = "") -> None:
        """Add an object or take over its new form. `key`: a pod's "namespace/name", if the caller has it already."""
        self.revision += 1
        match item:
            case Pod():
                self._put_pod(item, key or key_of(item))
            case PodGroup():
                self._put_group(item)
            case QueueObject():
                self._put_queue(item)
            case _ if kind == "Node":
                self._put_node(item)
            case _:
                name = item.metadata.key  # type: ignore[attr-defined]
                self.objects.setdefault(kind, {})[name] = item
                self.versions[kind] = self.versions.get(kind, 0) + 1
                if kind == "PriorityClass":
                    self._rank_all()
                elif kind == "Namespace":
                    self._stop_or_release(name)

    def remove(self, kind: str, key: str) -> None:
        """Remove an object, given by its name or "namespace/name"."""
        self.revision += 1
        match kind:
            case "Pod":
                task = self.tasks.pop(key, None)
                if task is not None:
                    self._detach(task)
            case "PodGroup":
                job = self.jobs.get(key)
                if job is not None:
                    self._unlink(job)
                    job.group = None
                    self._drop_if_empty(job)
            case "Queue":
                queue = self.queues.get(key)
                if queue is not None:
                    queue.wire = None
                    queue.read(self.dimensions)
                    self._drop_if_unused(queue)
            case "Node":
                row = self.nodes.remove(key)
                if row is not None:
                    for task in list(self.nodes.tasks[row].values()):
                        self._remove_from_node(task)
                        self._on_unknown_nodes.setdefault(key, {})[task.uid] = task
            case _:
                self.objects.get(kind, {}).pop(key, None)
                self.versions[kind] = self.versions.get(kind, 0) + 1
                if kind == "PriorityClass":
                    self._rank_all()

    def remove_job(self, job: Job) -> None:
        """Remove a PodGroup and all of its pods. The sums over the job and its queue change once, not with each pod."""
        self.revision += 1
        self._unlink(job)
        for task in job.tasks.values():
            del self.tasks[task.key]
            self._leave(task)
            if self.past_usage and task.status & status.HELD:
                for usage in self.past_usage.values():
                    usage.ends(task, self.clock)
            task.job = None
        job.clear(self.dimensions.width)
        self.waiting.pop(job.uid, None)
        del self.jobs[job.uid]

    def of(self, kind: str) -> dict[str, Any]:
        return self.objects.get(kind, {})

    def absent(self, kind: str, otherwise: str) -> str:
        """The message about a missing object: `otherwise`, unless the input is a dump that may have been taken without its kind."""
        if kind not in self.lacking:
            return otherwise
        plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        return f"the input has no {plural}; say `pumice cycle --from-cluster` or add {plural.lower()} to the dump"

    @property
    def knows_all_nodes(self) -> bool:
        """Whether every pod that has a node has one that is known."""
        return not self._on_unknown_nodes

    def _put_node(self, node: Any) -> None:
        row = self.nodes.put(node)
        for task in self._on_unknown_nodes.pop(node.metadata.name, {}).values():
            self._enter_node(task, row)

    # -- pods

    def restore(self, pod: Pod) -> None:
        """Take over a pod as it was just read, whatever was assumed about it. Called when our bind or eviction of it has failed."""
        self.revision += 1
        self._put_pod(pod, key_of(pod), certain=True)

    def _put_pod(self, pod: Pod, key: str, *, certain: bool = False) -> None:
        task = self.tasks.get(key)
        fresh = status.of_pod(pod)
        if task is not None:
            if pod.metadata.uid not in (None, task.uid):
                self._detach(task)
                task = None
            elif not certain and status.is_echo(task.status, fresh):
                return
        shared = self._shared
        template, meta = shared.template(pod), pod.metadata
        labels = shared.pairs(meta.labels, task.labels if task is not None else NO_PAIRS) if meta.labels else NO_PAIRS
        annotations = shared.pairs(meta.annotations, task.annotations if task is not None else NO_PAIRS)
        if template.has_pod_terms:
            self.with_pod_affinity[template] = None
        if task is None:
            self.sequence += 1
            task = self.tasks[key] = Task(key, pod, template, labels, annotations, self.sequence)
        elif self._stays(task, pod, fresh) and template is task.template and labels is task.labels and annotations is task.annotations:
            self._restate(task, fresh, pod)
            return
        else:
            self._detach(task)
            self.tasks[key] = task
            Task.__init__(task, task.key, pod, template, labels, annotations, task.number)
        self._attach(task, fresh, task.node_name, self._group_of(pod))

    def _stays(self, task: Task, pod: Pod, fresh: int) -> bool:
        """Whether a pod still holds its room, on the same node, for the same job and owner."""
        if not (task.status & status.ALLOCATED_ALL and fresh & status.ALLOCATED_ALL) or task.node < 0:
            return False
        job = self.jobs.get(f"{task.namespace}/{self._group_of(pod)}")
        return task.node_name == pod.spec.node_name and task.job is job and task.owner == owner_of(pod)

    def _group_of(self, pod: Pod) -> str:
        """The name of the pod's PodGroup; with shadow groups, one is made for a pod that has none."""
        named = (pod.metadata.annotations or {}).get(GROUP_NAME, "")
        if named or not self.shadow_groups or pod.spec.scheduler_name not in self.schedulers:
            return named
        shadow = shadow_group(pod)
        job = self.jobs.get(f"{shadow.metadata.namespace}/{shadow.metadata.name}")
        if job is None or not job.has_group:
            self._put_group(shadow)
        return shadow.metadata.name

    def is_ending(self, namespace: str) -> bool:
        known = self.objects.get("Namespace")
        found = known.get(namespace) if known else None
        return found is not None and found.metadata.deletion_timestamp is not None

    def _stop_or_release(self, namespace: str) -> None:
        """Nothing can be bound in a namespace that is being deleted: what waits there counts as being deleted itself. (The namespace's
        removal releases nothing, as its pods may be known for a while longer; another namespace of its name does.)"""
        if self.is_ending(namespace):
            waiting = [self.without_job, *(job.pending for job in self.waiting.values())]
            for task in [task for tasks in waiting for task in tasks.values() if task.namespace == namespace]:
                self.move(task, status.RELEASING, -1)
                self.stopped[task.uid] = task
        else:
            for task in [task for task in self.stopped.values() if task.namespace == namespace]:
                del self.stopped[task.uid]
                self.move(task, status.PENDING, -1)

    def _attach(self, task: Task, fresh: int, node_name: str, group: str) -> None:
        waits = fresh == status.PENDING or (fresh == status.RELEASING and not node_name and not task.deleting)
        if waits and self.is_ending(task.namespace):
            self.stopped[task.uid] = task
            fresh = status.RELEASING
        if group and (task.template.scheduler_name in self.schedulers or node_name):
            uid = f"{task.template.namespace}/{group}"
            task.job = job = self.jobs.get(uid) or self.job(uid)
            job.add(task)
        if task.seldom and task.group:
            self.members.setdefault(task.group, {})[task.uid] = task
        task.status = fresh
        task.node_name = node_name
        self._enter_job(task)
        if node_name and not fresh & status.FINISHED:
            row = self.nodes.rows.get(node_name)
            if row is None:
                self._on_unknown_nodes.setdefault(node_name, {})[task.uid] = task
            else:
                self._enter_node(task, row)

    def _leave(self, task: Task) -> None:
        """Take a task off its node and out of its native PodGroup."""
        if self.stopped:
            self.stopped.pop(task.uid, None)
        if task.node >= 0:
            self._remove_from_node(task)
        elif task.node_name:
            self._on_unknown_nodes.get(task.node_name, {}).pop(task.uid, None)
        if task.seldom and task.group:
            self._remove_from_group(task)

    def _detach(self, task: Task) -> None:
        self._leave(task)
        self._remove_from_job(task)
        if task.job is not None:
            task.job.remove(task)
            self._drop_if_empty(task.job)
            task.job = None

    def _remove_from_group(self, task: Task) -> None:
        members = self.members[task.group]
        del members[task.uid]
        if not members:
            del self.members[task.group]

    def put_back(self, task: Task, to: int, node_name: str, group: str) -> None:
        """Add a task again that was removed, with the status, node and PodGroup that it had."""
        self.tasks[task.key] = task
        self._attach(task, to, node_name, group)

    # -- jobs and queues

    def job(self, uid: str) -> Job:
        job = self.jobs.get(uid)
        if job is None:
            job = self.jobs[uid] = Job(uid, self.dimensions)
        return job

    def queue(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, self.dimensions)
        return queue

    def _put_group(self, group: PodGroup) -> None:
        uid = f"{group.metadata.namespace or 'default'}/{group.metadata.name}"
        job = self.jobs.get(uid)
        if job is None:
            job = self.jobs[uid] = Job(uid, self.dimensions, group)
        else:
            if job.has_group:
                self._unlink(job)
            job.read(group, self.dimensions)
        self._expect(job)
        if job.tasks:
            for index in self._indexes.values():
                index.reread(job)
        self._rank(job, group)
        if job.seldom:
            self._count_tiers(job, 1)
        name = group.spec.queue or self.default_queue
        job.queue = queue = self.queues.get(name) or self.queue(name)
        queue.jobs[job.uid] = job
        if job.tasks:
            queue.add(job)
        self.changed[job.uid] = self._stale[job.uid] = job
        if job.phase == PENDING:
            self.not_enqueued[job.uid] = job

    def hold_places(self, job: Job, places: str) -> None:
        """Take over which places are held for pods of a job, as the text that its PodGroup gets; empty for none."""
        self.revision += 1
        job.held_places = places
        self._expect(job)
        self.report_again(job)

    def _expect(self, job: Job) -> None:
        if job.seldom and job.held_places:
            self.expecting[job.uid] = job
        elif self.expecting:
            self.expecting.pop(job.uid, None)

    def _unlink(self, job: Job) -> None:
        queue = job.queue
        if self.expecting:
            self.expecting.pop(job.uid, None)
        if job.seldom:
            self._count_tiers(job, -1)
        self.not_enqueued.pop(job.uid, None)
        self.changed[job.uid] = job
        self._stale.pop(job.uid, None)
        self._elastic.pop(job.uid, None)
        if queue is not None:
            withdraw_promises(job)
            if job.tasks:
                queue.take(job)
            del queue.jobs[job.uid]
            job.queue = None
            self._drop_if_unused(queue)

    def _count_tiers(self, job: Job, sign: int) -> None:
        """Count the names of tiers that a job has. Where there are no HyperNodes, other names are other domains."""
        for name in job.tier_names:
            count = self.tier_names.get(name, 0) + sign
            self.tier_names[name] = count
            if count == max(sign, 0):
                self.versions["HyperNode"] = self.versions.get("HyperNode", 0) + 1
            if not count:
                del self.tier_names[name]

    def _drop_if_empty(self, job: Job) -> None:
        if not job.tasks and (not job.has_group or job.is_shadow):
            if job.has_group:
                self._unlink(job)
                job.group = None
            self.jobs.pop(job.uid, None)

    def _drop_if_unused(self, queue: Queue) -> None:
        if queue.wire is None and not queue.jobs:
            self.queues.pop(queue.name, None)

    def _put_queue(self, wire: QueueObject) -> None:
        queue = self.queue(wire.metadata.name)
        if not queue.exists:
            self.changed |= queue.jobs  # no cycle has reported their status
        queue.wire = wire
        queue.read(self.dimensions)

    def set_phase(self, job: Job, phase: str) -> None:
        if phase == job.phase:
            return
        self.revision += 1
        job.phase = phase
        self.changed[job.uid] = self._stale[job.uid] = job
        if phase == PENDING:
            self.not_enqueued[job.uid] = job
        else:
            self.not_enqueued.pop(job.uid, None)

    def _rank(self, job: Job, group: PodGroup | None) -> None:
        name = group.spec.priority_class_name if group else None
        known = self.objects.get("PriorityClass")
        named = known.get(name) if known and name else None
        job.priority = named.value if named else self.default_priority if known else 0

    @property
    def default_priority(self) -> int:
        return next((c.value for c in self.of("PriorityClass").values() if c.global_default), 0)

    def _rank_all(self) -> None:
        for job in self.jobs.values():
            self._rank(job, job.group)

    # -- what is counted only where somebody asks for it

    def index(self, kind: type[Kept]) -> Kept:
        """The index of this class, up to date. It is made at the first call."""
        found = self._indexes.get(kind)
        if found is None:
            found = self._indexes[kind] = self._counted(kind)
            self._followers.append(found.change)
        found.refresh()
        return found  # type: ignore[return-value]

    def _counted(self, kind: type[Kept]) -> Kept:
        index = kind(self)
        index.recount()
        return index

    def used_before(self, half_life_s: float, holder_of: HolderOf) -> PastUsage:
        """The past usage of all holders, with this half-life. It is kept from the first call on."""
        found = self.past_usage.get((half_life_s, holder_of))
        if found is None:
            found = self.past_usage[half_life_s, holder_of] = PastUsage(self.dimensions, half_life_s, holder_of)
            found.count(self.tasks.values(), self.clock)
        return found

    # -- between cycles

    def report_again(self, job: Job) -> None:
        """Let the next cycle report the status of a job although nothing about it has changed."""
        self.changed[job.uid] = job

    def forget_changes(self) -> None:
        """Begin a new log and a new set of changed jobs. Called when a session has closed. The next session refreshes the sums."""
        self.cycles += 1
        self.changed.clear()
        self.log.clear()

    def _widen(self) -> None:
        """Lengthen all kept vectors, since a new resource name has made `width` greater."""
        self._promises.clear()
        self.nodes.widen()
        self._shared.widen()
        for job in self.jobs.values():
            job.widen(self.dimensions)
        for queue in self.queues.values():
            queue.widen(self.dimensions)

    def check(self) -> None:
        """Assert the invariants, by a recount of everything."""
        self.nodes.check()
        nothing = self.dimensions.nothing()
        for job in self.jobs.values():
            tasks = job.tasks.values()
            assert set(job.pending) == {t.uid for t in tasks if t.status == status.PENDING}, f"pending of {job}"
            for bit in status.NAMES:
                assert job.by_status.get(bit, 0) == sum(t.status == bit for t in tasks), f"{status.NAMES[bit]} of {job}"
            assert job.ready_count == job.count(status.READY), f"ready of {job}"
            assert (job.holding == sum((t.template.exactly for t in tasks if t.status & status.HELD), nothing)).all(), f"held of {job}"
            assert (job.uid in self.waiting) == bool(job.pending), f"{job} in waiting"
            assert job.queue is None or job.uid in self._stale or promises_agree(job), f"promises to {job}"
        for queue in self.queues.values():
            assert (queue.holding == sum((j.holding for j in queue.jobs.values()), nothing)).all(), f"held of {queue}"
            assert (queue.asking == sum((j.asking for j in queue.jobs.values()), nothing)).all(), f"pending of {queue}"
            assert queue.promisees == sum(promises_to(j).admitted is not None for j in queue.jobs.values()), f"promises of {queue}"
        elastic = {job.uid for job in self.jobs.values() if job.queue is not None and job.ready_count > job.min_member}
        assert {job.uid for job in self.elastic_jobs()} == elastic, "jobs beyond their minimum"
        grouped = {uid: key for key, members in self.members.items() for uid in members}
        assert grouped == {task.uid: task.group for task in self.tasks.values() if task.group}, "members of native PodGroups"
        for task in self.stopped.values():
            assert self.tasks.get(task.key) is task and task.status == status.RELEASING and not task.node_name, f"{task} is stopped"
        named = [name for job in self.jobs.values() for name in job.tier_names]
        assert self.tier_names == {name: named.count(name) for name in named}, "names of tiers"
        for task in self.tasks.values():
            assert task.node < 0 or self.nodes.tasks[task.node].get(task.uid) is task, f"place of {task}"
        for usage in self.past_usage.values():
            usage.check(self.tasks.values())
        for kind in self._indexes:
            assert self.index(kind).agrees(self._counted(kind)), f"{kind.__name__} as a recount"
