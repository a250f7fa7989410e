"""Which stage of a pod's life comes next, and when, in pure functions: by the stages that are declared, its deadline, its grace period and
the pauses before restarts. The kubelet (`kubelet.py`) carries it out; `pod_status.py` has what it then writes.
"""

from typing import NamedTuple

from pumice.api import Object, instant, spec_of, status_of
from pumice.api.json_objects import terminating
from pumice.cluster.nodes.container_restarts import pause_s
from pumice.cluster.nodes.pod_status import KILLED
from pumice.cluster.nodes.stage import PodStage, Stages

PENDING, RUNNING, TERMINATING, ENDED = "Pending", "Running", "Terminating", "Ended"

_TOO_LONG = "Pod was active on the node longer than the specified deadline"
_DEADLINE = PodStage(name="deadline", phase="Running", becomes="Failed", reason="DeadlineExceeded", message=_TOO_LONG, exit_code=KILLED)
_KILL = PodStage(name="kill", phase="Terminating", becomes="Gone")


class Next(NamedTuple):
    """The next stage of a pod, and when it comes if the pod is not changed before."""

    when: float
    stage: PodStage


def phase_of(pod: Object) -> str:
    phase = status_of(pod).get("phase")
    if phase in ("Succeeded", "Failed"):
        return ENDED
    if terminating(pod):
        return TERMINATING
    return RUNNING if phase == "Running" else PENDING


def next_of(pod: Object, phase: str, since: float, stages: Stages) -> Next | None:
    """What comes next for a pod that has been in this phase since `since`. None: nothing comes until the pod is written."""
    if phase == ENDED:
        return None
    stage = stages.next_stage(pod, phase)
    found = Next(since + _delay_s(stage, pod), stage) if stage else None
    if phase == TERMINATING:
        return _termination(pod, since, found)
    deadline_s = spec_of(pod).get("activeDeadlineSeconds")
    if phase != RUNNING:
        return found
    if found is not None:
        found = Next(found.when + pause_s(pod), found.stage)
    if deadline_s is None:
        return found
    started = status_of(pod).get("startTime")
    over = (instant(started) if started else since) + deadline_s
    return found if found is not None and found.when <= over else Next(over, _DEADLINE)


def _termination(pod: Object, since: float, found: Next | None) -> Next:
    """The end of a terminating pod: after the grace period at the latest, and at once if it never ran."""
    if status_of(pod).get("phase") != "Running":
        return Next(since, _KILL)
    last = since + (pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return found if found is not None and found.when <= last else Next(last, _KILL)


def _delay_s(stage: PodStage, pod: Object) -> float:
    try:
        return stage.delay_s(pod)
    except ValueError:  # the pod's annotation is not a delay: the stage never comes
        return float("inf")
