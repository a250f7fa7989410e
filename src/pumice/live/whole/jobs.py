"""The users of a whole simulation: they submit jobs, create evicted pods anew, delete what has ended, and record all of it.

Writes to the store are noted as they come; `digest` looks at their results when all other parts are done with this instant. An evicted pod
takes the other pods of its job with it if the job cannot go on without it; they come back when all of them are gone.

A `document` is an object as a user would send it to an API server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.api import InputError, Object, spec_of, status_of, uid_of
from pumice.api.annotations import GROUP_NAME
from pumice.api.json_objects import terminating
from pumice.api.structs import document, encode
from pumice.api.volcano import PodGroup
from pumice.cluster.apiserver import DeleteOptions, Store
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.nodes.stage import PodStage, Stages
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.decisions import Decisions, Evict
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Task
from pumice.simulate.job_runs import Life, Run
from pumice.simulate.record import Record
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.workload import Role, Work, class_name, group_of, object_name, priority_class, queue

RUN_SECONDS, EXIT_CODE = "pumice.io/run-seconds", "pumice.io/exit-code"
KILLED = "137"
SHARED = ("cpu", "memory", "ephemeral-storage", "pods")  #: resources of which a limit may be above the request


def stages(grace_s: float) -> Stages:
    """The stages of pods. A pod runs from its bind on, for as long as its annotation says; after its deletion it is there for `grace_s`."""
    return Stages(
        [
            PodStage("start", "Pending", "Running"),
            PodStage("finish", "Running", "Ended", {"annotation": RUN_SECONDS}, {"annotation": EXIT_CODE, "default": 0}),
            PodStage("stop", "Terminating", "Gone", grace_s),
        ]
    )


def group_document(work: Work) -> Object:
    group: PodGroup = group_of(work, "")
    return document("PodGroup", replace(group, metadata=replace(group.metadata, creation_timestamp=None, uid=None)))


def pod_document(work: Work, number: int, role: Role, scheduler: str, run: float, *, grouped: bool, killed: bool) -> Object:
    """One pod of a job, which will run for `run` seconds."""
    name = object_name(work)
    notes = {**(role.annotations or {}), RUN_SECONDS: np.format_float_positional(run, trim="0")}
    if grouped:
        notes[GROUP_NAME] = name
    if killed:
        notes[EXIT_CODE] = KILLED
    metadata = {"name": f"{name}-{number}", "namespace": work.namespace, "labels": role.labels or {}, "annotations": notes}
    spec = _spec(role) | {"schedulerName": scheduler}
    if work.priority:
        spec["priorityClassName"] = class_name(work.priority)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@lru_cache(maxsize=4096)
def _spec(role: Role) -> Object:
    """The pod spec of the workload, with the fields that a server requires."""
    spec: Object = msgspec.json.decode(encode(role.spec))
    for unwanted in ("nodeName", "priority", "preemptionPolicy"):
        spec.pop(unwanted, None)
    containers = [_container(container, number) for number, container in enumerate(spec.get("containers") or [{}])]
    return spec | {"restartPolicy": "Never", "containers": containers}


def _container(container: Object, number: int) -> Object:
    resources = container.get("resources") or {}
    asked = resources.get("requests") or {}
    limits = {name: amount for name, amount in asked.items() if name not in SHARED} | (resources.get("limits") or {})
    named = {"name": f"main-{number}", "image": "simulated"} | container
    return named | {"resources": resources | ({"limits": limits} if limits else {})}


PodKey = tuple[str, str]
AT_ONCE = DeleteOptions(grace_s=0)


@dataclass(eq=False, slots=True)
class JobPod:
    """A pod of a job. It stays the same one when it is created anew with another uid."""

    life: Life
    number: int
    role: Role
    name: str
    node_name: str = ""
    run: Run[JobPod] | None = None  #: while it runs
    killed: bool = False  #: its run is cut off when the job's estimate is over
    over: bool = False  #: it has done its work
    leaving: Leaving | None = None  #: the pods with which it comes back

    @property
    def key(self) -> PodKey:
        return self.life.work.namespace, self.name

    @property
    def identity(self) -> str:
        return f"{self.life.work.namespace}/{self.name}"


@dataclass(eq=False, slots=True)
class Leaving:
    """Pods of a job that come back together."""

    pods: list[JobPod]
    left: set[JobPod] = field(default_factory=set)  #: the pods that are not gone yet


class EvictionCause(NamedTuple):
    """Why a pod is evicted."""

    action: str
    beneficiary: str = ""


LOST = EvictionCause("node-fail")


class WholeJobs:
    """The users of a simulated cluster. `now` returns the time on the workload's own axis."""

    def __init__(self, store: Store, policy: Policy, record: Record, habits: Habits, now: Callable[[], float]) -> None:
        self.lives: dict[str, Life] = {}  #: by namespace and name, of jobs that have not ended
        self._store, self._record, self._habits, self._now = store, record, habits, now
        self._scheduler = schedulers_of(policy)[0]
        self._grouped = policy.places_gangs
        self._number = 0
        self._pods: dict[PodKey, JobPod] = {}
        self._changed: dict[PodKey, None] = {}
        self._causes: dict[str, Evict] = {}  #: of evictions under way, by pod uid
        store.storage.listen(self._on_write, "pods")

    @property
    def active(self) -> bool:
        """Whether any pod runs, or was evicted and has not come back."""
        return any(life.runs for life in self.lives.values()) or any(pod.leaving for pod in self._pods.values())

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        self._changed[event.key] = None

    def decided(self, decisions: Decisions) -> None:
        """Note what the scheduler says about its evictions, and why jobs wait."""
        for eviction in decisions.evictions:
            self._causes[eviction.task.uid] = eviction
        starting = {pod.life.number for bind in decisions.binds if (pod := self._of(bind.task)) is not None}
        for word in decisions.conclusion.last_words() if decisions.conclusion is not None else ():
            pod = self._of(word.task)
            if pod is not None and pod.life.start is None and pod.life.number not in starting:
                pod.life.reason = word.message

    def _of(self, task: Task) -> JobPod | None:
        return self._pods.get((task.namespace, task.name))

    # -- jobs come

    def submit(self, work: Work) -> None:
        life = Life(self._number, work)
        self._number += 1
        if life.uid in self.lives:
            raise InputError(f"two jobs are called {work.name}; names must differ while both are there")
        self.lives[life.uid] = life
        self._prepare(work)
        if work.is_grouped(self._grouped):
            self._store.create("podgroups.scheduling.volcano.sh", group_document(work), work.namespace)
        roles = (role for role in work.roles for _ in range(role.count))
        for number, role in enumerate(roles):
            self._make(JobPod(life, number, role, f"{object_name(work)}-{number}"))
        self._record.submitted(life)

    def _prepare(self, work: Work) -> None:
        """Create the namespace, queue and priority class that the job names, if they do not exist."""
        find, create = self._store.find, self._store.create
        if find("namespaces", "", work.namespace) is None:
            create("namespaces", {"metadata": {"name": work.namespace}})
        if find("queues.scheduling.volcano.sh", "", work.queue) is None:
            create("queues.scheduling.volcano.sh", document("Queue", queue(work.queue)))
        if work.priority and find("priorityclasses.scheduling.k8s.io", "", class_name(work.priority)) is None:
            create("priorityclasses.scheduling.k8s.io", document("PriorityClass", priority_class(work.priority)))

    def _make(self, pod: JobPod) -> Object:
        life, work = pod.life, pod.life.work
        length = life.length(pod.identity, pod.name)
        most = work.estimate if self._habits.kill_at_estimate and work.estimate is not None else inf
        pod.killed = most < length
        self._pods[pod.key] = pod
        scheduler, grouped = work.scheduler or self._scheduler, work.is_grouped(self._grouped)
        body = pod_document(work, pod.number, pod.role, scheduler, min(length, most), grouped=grouped, killed=pod.killed)
        return self._store.create("pods", body, work.namespace)

    # -- what becomes of them

    def digest(self) -> bool:
        """Look at the pods that have changed, and return whether any has."""
        if not self._changed:
            return False
        changed, self._changed = self._changed, {}
        self._record.move_on(self._now())
        found = [(pod, self._store.storage.get("pods", key)) for key in changed if (pod := self._pods.get(key)) is not None]
        self._end([pod for pod, there in found if pod.run is not None and there is not None and _is_over(there)])
        for pod, there in found:
            if pod.run is not None and (there is None or terminating(there)):
                self._evict(pod, self._cause(there))
            if there is None:
                if self._store.storage.get("pods", pod.key) is None:  # else it came back together with a pod that was looked at before
                    self._gone(pod)
            elif _is_over(there) and not pod.over and not pod.leaving:
                self._reject(pod)
        self._start([(pod, there) for pod, there in found if there is not None and pod.run is None and _runs(there)])
        return True

    def _cause(self, there: Object | None) -> EvictionCause:
        decided = self._causes.pop(uid_of(there), None) if there is not None else None
        return EvictionCause(decided.action, decided.beneficiary) if decided is not None else LOST

    def _start(self, starting: list[tuple[JobPod, Object]]) -> None:
        now, together = self._now(), dict[tuple[int, float], Run[JobPod]]()
        for pod, there in starting:
            life = pod.life
            length = life.length(pod.identity, pod.name)
            run = together.setdefault((life.number, length), Run(life, {}, now, length))
            pod.run, pod.node_name = run, spec_of(there)["nodeName"]
            run.tasks[pod.identity] = pod
        for run in together.values():
            life, first = run.life, run.life.start is None
            life.start = now if first else life.start
            life.runs.append(run)
            self._record.started(life, run.tasks.values(), first=first)

    def _end(self, pods: list[JobPod]) -> None:
        """End the runs of pods that have done their work."""
        by_run: dict[Run[JobPod], list[JobPod]] = {}
        for pod in pods:
            assert pod.run is not None
            by_run.setdefault(pod.run, []).append(pod)
        for run, over in by_run.items():
            life, done = run.life, self._now() - run.began
            for pod in over:
                run.take_out(pod.identity)
                pod.run, pod.over = None, True
            life.unfinished -= len(over)
            ends = "" if life.unfinished else "killed" if over[-1].killed else "done"
            self._record.stopped(life, over, done, kept=done, ends=ends)
            if ends:
                self._finish(life)

    def _finish(self, life: Life) -> None:
        """End a job, and delete its pods and its PodGroup."""
        work = life.work
        life.end = self._now()
        del self.lives[life.uid]
        for number in range(work.pods):
            pod = self._pods.pop((work.namespace, f"{object_name(work)}-{number}"))
            if self._store.storage.get("pods", pod.key) is not None:  # else it went with its node
                self._store.delete("pods", pod.name, work.namespace, AT_ONCE)
        if work.is_grouped(self._grouped):
            self._store.delete("podgroups.scheduling.volcano.sh", object_name(work), work.namespace)
        self._record.ended(life)

    def _evict(self, pod: JobPod, cause: EvictionCause) -> None:
        life = pod.life
        victims = [each for run in life.runs for each in run.tasks.values()] if life.work.restarts_whole else [pod]
        leaving = Leaving(victims, set(victims))
        for victim in victims:
            self._interrupt(victim, leaving)
        self._record.evicted(life, victims, cause.action, cause.beneficiary)

    def _interrupt(self, pod: JobPod, leaving: Leaving) -> None:
        assert pod.run is not None
        life = pod.life
        done, kept = life.interrupt(pod.run, pod.identity, self._now())
        pod.run, pod.leaving = None, leaving
        self._record.stopped(life, [pod], done, kept=kept)
        there = self._store.storage.get("pods", pod.key)
        if there is None:
            leaving.left.discard(pod)
        elif not terminating(there):
            self._store.delete("pods", pod.name, pod.life.work.namespace)

    def _gone(self, pod: JobPod) -> None:
        """Create a pod anew that is gone, as soon as all pods that left with it are gone too. If it was done, it went with its node, and
        still counts for its gang."""
        if pod.over:
            self._store.update("pods", self._make(pod) | {"status": {"phase": "Succeeded"}}, "status")
            return
        leaving = pod.leaving
        if leaving is None:
            self._make(pod)
            return
        leaving.left.discard(pod)
        if not leaving.left:
            for each in leaving.pods:
                each.leaving = None
            self._record.returned(pod.life)
            for each in sorted(leaving.pods, key=lambda each: each.number):
                self._make(each)

    def _reject(self, pod: JobPod) -> None:
        """Delete a pod that its node has rejected, so that it never ran."""
        self._store.delete("pods", pod.name, pod.life.work.namespace, AT_ONCE)


def _is_over(pod: Object) -> bool:
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def _runs(pod: Object) -> bool:
    return status_of(pod).get("phase") == "Running" and not terminating(pod)
