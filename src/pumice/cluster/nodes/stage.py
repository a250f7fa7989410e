"""What happens to a pod on a simulated node, as declared in stages/default.yaml or in a file of the user's.

A file is read once into `Stages`; `next_stage` picks the stage for a pod in a phase, and `PodStage.delay_s` returns how long it takes.
Nothing here has a state: random numbers are derived from the pod's uid and the stage's name, so the same pod always has the same life.

How long a pod runs whose containers only sleep. Most example jobs do, and so they end here as in a real cluster.
`sleep 30`, `sleep 1h` and `sh -c "sleep 30"` are read, as command, arguments or both. For a pod with a container that does anything else,
the time is unknown.
"""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from pumice.api import InputError, Object, duration, spec_of, uid_of
from pumice.api.json_objects import annotations_of, labels_of

BUILT_IN = Path(__file__).parents[1] / "stages" / "default.yaml"
SHELLS = ("sh", "bash", "ash", "dash")
UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def sleeps_s(pod: Object) -> float | None:
    """The seconds until the last container of the pod wakes up; None if a container does anything but sleep."""
    each = [_slept_s(words) for words in _commands(pod)]
    known = [seconds for seconds in each if seconds is not None]
    return max(known) if known and len(known) == len(each) else None


def _commands(pod: Object) -> list[list[str]]:
    """The words of what each container runs, as far as its image is not needed to know them."""
    return [[*(container.get("command") or ()), *(container.get("args") or ())] for container in spec_of(pod).get("containers") or ()]


def _program(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _slept_s(words: Sequence[str]) -> float | None:
    program = _program(words)
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


Phase = Literal["Pending", "Running", "Terminating"]
Outcome = Literal["Running", "Succeeded", "Failed", "Ended", "Gone"]
LAWS = {"uniform": 2, "exponential": 1, "normal": 2, "lognormal": 2, "annotation": 0}  #: distributions, and how many numbers each takes
AS_IT_SLEEPS = {"command": "sleep"}


class PodStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One step of a pod's life."""

    name: str
    phase: Phase
    becomes: Outcome
    after: Any = 0
    exit_code: Any = None
    reason: str = ""
    message: str = ""
    labels: dict[str, str] = {}
    command: str = ""
    chance: float = 1.0

    def applies(self, pod: Object) -> bool:
        if not self.labels.items() <= labels_of(pod).items():
            return False
        if self.command and any(_program(words) != self.command for words in _commands(pod)):
            return False
        if self.chance < 1.0 and _drawn(pod, f"{self.name}?") >= self.chance:
            return False
        if self.after == AS_IT_SLEEPS:
            return sleeps_s(pod) is not None
        return not _is_noted(self.after) or self.after["annotation"] in annotations_of(pod)

    def delay_s(self, pod: Object) -> float:
        """How many seconds pass before this stage comes. Raises ValueError if the pod's annotation cannot be read."""
        if self.after == AS_IT_SLEEPS:
            return sleeps_s(pod) or 0.0
        law = _noted_law(annotations_of(pod)[self.after["annotation"]]) if _is_noted(self.after) else self.after
        return max(0.0, _delay_s(law, _drawn(pod, self.name) if isinstance(law, Mapping) else 0.0))

    def code_of(self, pod: Object) -> int:
        """The exit code of the pod's containers."""
        if isinstance(self.exit_code, dict):
            text = annotations_of(pod).get(self.exit_code["annotation"], self.exit_code.get("default", 0))
            return int(text) if str(text).lstrip("-").isdecimal() else 1
        return int(self.exit_code) if self.exit_code is not None else int(self.becomes == "Failed")


class Stages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All stages of a file."""

    pods: list[PodStage]

    def next_stage(self, pod: Object, phase: str) -> PodStage | None:
        return next((stage for stage in self.pods if stage.phase == phase and stage.applies(pod)), None)


def read_stages(path: Path | None = None) -> Stages:
    """The stages of a file, or the built-in stages without one. Raises InputError."""
    where = str(path) if path else "stages/default.yaml"
    try:
        text = (path or BUILT_IN).read_text(encoding="utf-8")
        stages = msgspec.convert(yaml.safe_load(text), Stages)
        for stage in stages.pods:
            _check(stage)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except (yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        raise InputError(str(error), where=where) from None
    return stages


def _check(stage: PodStage) -> None:
    if not 0.0 <= stage.chance <= 1.0:
        raise ValueError(f'stage "{stage.name}": chance {stage.chance} is not between 0 and 1')
    if isinstance(stage.exit_code, dict) and "annotation" not in stage.exit_code:
        raise ValueError(f'stage "{stage.name}": exitCode has no annotation; write a number or {{annotation: KEY, default: 0}}')
    if not _is_noted(stage.after) and stage.after != AS_IT_SLEEPS:
        try:
            _delay_s(stage.after, 0.5)
        except ValueError as error:
            raise ValueError(f'stage "{stage.name}": after: {error}') from None


@lru_cache(maxsize=1024)
def _noted_law(text: str) -> Any:
    """The delay that an annotation states. It is cached, as all pods of a job have the same annotation."""
    return yaml.load(text, yaml.CSafeLoader)


def _is_noted(law: Any) -> bool:
    return isinstance(law, dict) and law.keys() == {"annotation"}


def _delay_s(law: Any, chance: float) -> float:
    """The delay in seconds that a law gives for a number between 0 and 1. Raises ValueError."""
    if isinstance(law, bool) or law is None:
        raise ValueError(f"{law} is not a delay; write seconds, such as 30")
    if isinstance(law, int | float):
        return float(law)
    if isinstance(law, str):
        return duration(law)
    name, numbers = _law(law)
    match name:
        case "uniform":
            return numbers[0] + (numbers[1] - numbers[0]) * chance
        case "exponential":
            return -numbers[0] * log(1.0 - chance)
        case "normal":
            return numbers[0] + numbers[1] * _normal(chance)
        case _:
            return numbers[0] * exp(log(numbers[1]) * _normal(chance))


def _normal(chance: float) -> float:
    from statistics import NormalDist  # few stages have such a delay

    return NormalDist().inv_cdf(chance)


def _law(law: Any) -> tuple[str, list[float]]:
    if not isinstance(law, Mapping) or len(law) != 1 or next(iter(law)) not in LAWS:
        raise ValueError(f"{law} is not a delay; write seconds, or one of {', '.join(LAWS)} with numbers")
    name, given = next(iter(law.items()))
    numbers = [_delay_s(each, 0.0) for each in (given if isinstance(given, list) else [given])]
    if len(numbers) != LAWS[name]:
        raise ValueError(f"{name} takes {LAWS[name]} numbers, not {len(numbers)}")
    if name == "lognormal" and min(numbers) <= 0:
        raise ValueError("lognormal takes numbers above 0")
    return name, numbers


def _drawn(pod: Object, name: str) -> float:
    """A random number above 0 and below 1, always the same for the same pod and name."""
    digest = hashlib.blake2b(f"{uid_of(pod)}/{name}".encode(), digest_size=6).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**48
