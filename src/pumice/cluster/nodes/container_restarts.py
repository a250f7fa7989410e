"""Restarts of containers that have ended: whether the restartPolicy wants one, how many there were, and the pause before the next."""

from pumice.api import Object, spec_of, status_of

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 300.0


def restarts(pod: Object) -> int:
    return max((each.get("restartCount", 0) for each in status_of(pod).get("containerStatuses") or ()), default=0)


def restarts_now(pod: Object, exit_code: int) -> bool:
    policy = spec_of(pod).get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def pause_s(pod: Object) -> float:
    """The pause before containers run again, longer each time (CrashLoopBackOff)."""
    count = restarts(pod)
    return min(FIRST_PAUSE_S * 2 ** min(count - 1, 10), LONGEST_PAUSE_S) if count else 0.0
