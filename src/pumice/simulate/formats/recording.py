"""A recording as a workload: the jobs that came while it was made, with their real run times, on the real nodes.

A pod ran from its start until it ended or was deleted. Its time before an eviction does not count, as it began again. Left out are pods
that were evicted for good, and jobs of which no pod had ended when the recording did. A job runs as long as its longest pod.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from pumice.api.annotations import RUN_TIME
from pumice.api.core import Node
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import STRUCTS, decoder
from pumice.api.times import instant_or
from pumice.inputs.recording.entry_format import Cycle, Entry, Put, Removed
from pumice.inputs.recording.file_format import entries, files_of
from pumice.scheduler.model import status
from pumice.simulate.formats.kubernetes import JobName, job_of_pod, workload_of
from pumice.simulate.workload import Workload

_STRUCTS = {kind.kept_as: decoder(struct) for kind, struct in STRUCTS.items()}
log = logging.getLogger(__name__)


@dataclass
class PodRun:
    """A pod, from its start on a node to its end."""

    pod: Pod
    started: float | None = None
    ended: float | None = None
    evicted: bool = False

    @property
    def job(self) -> JobName:
        return job_of_pod(self.pod)


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    objects, runs = _history(path)
    longest: dict[JobName, float] = {}
    for run in runs:
        if run.ended is not None and run.started is not None:
            longest[run.job] = max(longest.get(run.job, 0.0), run.ended - run.started)
    left_out = Counter({"had not ended when the recording did": len({run.job for run in runs} - longest.keys())})
    pods = [("Pod", _with_run_time(run.pod, longest[run.job])) for run in runs if run.job in longest]
    return workload_of(Path(path).name, [*objects, *pods], cluster, +left_out)


def nodes(path: str) -> list[Node]:
    return [item for _, item in _history(path)[0] if isinstance(item, Node)]


def _with_run_time(pod: Pod, seconds: float) -> Pod:
    annotations = {**(pod.metadata.annotations or {}), RUN_TIME: f"{seconds:.3f}s"}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _history(path: str) -> tuple[list[tuple[str, Wire]], list[PodRun]]:
    """The last version of all objects except pods, and the runs of pods. A pod that was created again under its name has begun again."""
    objects, runs = dict[tuple[str, str], Wire](), dict[str, PodRun]()
    for entry in _entries(path):
        match entry:
            case Put(kind="Pod"):
                _seen(runs, _STRUCTS["Pod"].decode(entry.object), entry.at)
            case Put():
                item = _STRUCTS[entry.kind].decode(entry.object)
                meta = item.metadata
                objects[entry.kind, f"{meta.namespace or ''}/{meta.name}"] = item
            case Removed(kind="Pod") if entry.key in runs:
                _ended(runs[entry.key], entry.at)
            case Cycle():
                for eviction in entry.evictions:
                    runs[eviction.pod].evicted = True
    return [(kind, item) for (kind, _), item in objects.items()], [run for run in runs.values() if not run.evicted]


def _entries(path: str) -> Iterator[Entry]:
    return (entry for file in files_of(Path(path), log.warning) for entry in entries(file, log.warning))


def _seen(runs: dict[str, PodRun], pod: Pod, at: float) -> None:
    key = f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}"
    run = runs.get(key)
    if run is None or run.pod.metadata.identity != pod.metadata.identity:
        run = runs[key] = PodRun(pod)
    state = status.of_pod(pod)
    if run.started is None and state & (status.RUNNING | status.FINISHED):
        run.started = instant_or(pod.status.start_time, at)
    run.evicted |= any(each.type == "DisruptionTarget" and each.status == "True" for each in pod.status.conditions or ())
    if state & status.FINISHED:
        _ended(run, at)


def _ended(run: PodRun, at: float) -> None:
    if run.ended is None:
        run.ended = at
