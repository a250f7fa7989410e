"""How long a pod would run if its containers only sleep: most examples of jobs do, so that they end here as they would elsewhere.

`sleep 30`, `sleep 1h`, `sh -c "sleep 30"`, as command, arguments or both. A pod with a container that does anything else says nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pumice.controllers.objects import Object, spec_of

SHELLS = ("sh", "bash", "ash", "dash")
UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def sleeps_s(pod: Object) -> float | None:
    """Until the last container wakes up; None if one does not only sleep."""
    each = [
        _slept_s([*(container.get("command") or ()), *(container.get("args") or ())]) for container in spec_of(pod).get("containers") or ()
    ]
    known = [seconds for seconds in each if seconds is not None]
    return max(known) if known and len(known) == len(each) else None


def _slept_s(words: Sequence[str]) -> float | None:
    program = words[0].rpartition("/")[2] if words else ""
    if program in SHELLS and len(words) == 3 and words[1] == "-c":
        return _slept_s(_split(words[2]))
    times = [re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", word) for word in words[1:]]
    found = [float(time[1]) * UNITS_S[time[2]] for time in times if time is not None]
    return sum(found) if program == "sleep" and found and len(found) == len(times) else None


def _split(script: str) -> list[str]:
    try:
        return shlex.split(script.strip().rstrip(";"))
    except ValueError:
        return []
