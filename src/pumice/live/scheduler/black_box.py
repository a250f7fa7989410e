"""The black box: while the scheduler works, everything that it sees and decides goes to a recording.

The kept state notes on a tape all changes between cycles, and each cycle in its place among them. The tape is then passed to the thread
that writes the recording. The scheduler itself only keeps references to objects that it holds anyway.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pumice.api import InputError
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import encode
from pumice.inputs.recording.entry_format import VERSION, Begin, Cycle, Decided, Entry, PhaseSet, Put, Removed, Restored, Whole, cycle_of
from pumice.inputs.recording.file_format import Hide, Retention, Writer, as_it_is
from pumice.inputs.recording.snapshot import CopiedTasks, Snapshot
from pumice.live.scheduler.loop import Keeper
from pumice.live.scheduler.options import Options
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.gathering import MEMORY, Kept
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Job, Task, Vector

Seen: TypeAlias = tuple[float, str, Wire | str]  #: time, kind, and an object or the key of a removed one; a plain tuple is made fastest


class ReadAgain(Struct, frozen=True):
    at: float
    pod: Pod


Observed: TypeAlias = Seen | ReadAgain | PhaseSet | Decided
DEFAULT_RETENTION = Retention()


class TapedCluster(Cluster):
    """A kept state that notes on `tape` the changes that are made to it from outside."""

    def __init__(self, options: Options, now: Callable[[], float]) -> None:
        super().__init__(options.schedulers, options.default_queue)
        self.tape: list[Observed] = []
        self._now = now

    def put(self, kind: str, item: Wire, key: str = "") -> None:
        super().put(kind, item, key)
        self.tape.append((self._now(), kind, item))

    def remove(self, kind: str, key: str) -> None:
        super().remove(kind, key)
        self.tape.append((self._now(), kind, key))

    def restore(self, pod: Pod) -> None:
        super().restore(pod)
        self.tape.append(ReadAgain(self._now(), pod))

    def set_phase(self, job: Job, phase: str) -> None:
        super().set_phase(job, phase)
        self.tape.append(PhaseSet(self._now(), job.uid, phase))


class Translation:
    """Turns the items of the tape into entries of the recording, on the thread that writes them."""

    def __init__(self) -> None:
        self._deserved: dict[str, dict[str, float]] = {}  #: as last recorded

    def beginning(self, begin: Begin, snapshot: Snapshot) -> list[Entry]:
        self._deserved = {}
        there = [self._entry((begin.at, kind, item)) for kind, item in snapshot.objects()]
        return [begin, *there, Whole(begin.at)]

    def entries(self, tape: list[Observed]) -> list[Entry]:
        return [self._entry(observed) for observed in tape]

    def _entry(self, observed: Observed) -> Entry:
        match observed:
            case (at, kind, str() as key):
                return Removed(at, kind, key)
            case (at, kind, item):
                return Put(at, kind, msgspec.Raw(encode(item)))
            case ReadAgain(at, pod):
                return Restored(at, msgspec.Raw(encode(pod)))
            case Decided():
                return self._once(cycle_of(observed))
        return observed

    def _once(self, cycle: Cycle) -> Cycle:
        """The cycle, without what queues deserve if that is the same as last recorded."""
        if cycle.deserved == self._deserved:
            return replace(cycle, deserved={})
        self._deserved = cycle.deserved
        return cycle


class BlackBox(Keeper):
    """An observer that writes a recording. It follows one scheduler, whose kept state is `cluster`."""

    cluster: TapedCluster
    needs_full_cycles = False

    def __init__(self, writer: Writer, options: Options, now: Callable[[], float]) -> None:
        self.cluster = TapedCluster(options, now)
        self._options = options
        self._writer = writer
        self._translation = Translation()
        self._now = now
        self._policy: Policy | None = None  #: the policy of the file that is being written
        self._copied: CopiedTasks | None = None  #: the tasks that are being copied for the next file
        self._number = 0
        self._in_session = False
        self._gathering: Kept | None = None
        self._tried: list[str] = []
        self._deserved: dict[str, Vector] = {}

    @contextmanager
    def away(self) -> Iterator[None]:
        """A context in which changes of the state are only tried out, and so not recorded."""
        before = len(self.cluster.tape)
        try:
            yield
        finally:
            del self.cluster.tape[before:]

    # -- in the cycle

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is not Stage.SESSION:
            return
        self._tried = []
        if not self._in_session:
            self._in_session = True
            self.hand_over(subject.policy)
            self._gathering = copy(self.cluster.memory.get(MEMORY))

    def ends(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.OPEN and hasattr(subject, "entitlements"):
            self._deserved = {name: deserved for name, (deserved, _) in subject.entitlements().items()}

    def attempt(self, task: Task) -> None:
        self._tried.append(task.key)

    # -- after it

    def cycled(self, decisions: Decisions, at: float, took_s: float) -> None:
        """Record a cycle. A cycle that repeated the last decisions, because nothing had happened, is only counted."""
        self._number += 1
        if not self._in_session:
            return
        self._in_session = False
        observed = self._number, took_s, decisions, self._tried, self._gathering, self._deserved, self.cluster.dimensions
        self.cluster.tape = [Decided(at, *observed)]  # in place of the phases that it set
        self._hand_on()

    def hand_over(self, policy: Policy) -> None:
        """Pass the tape to the thread that writes. If a new file is due, begin it with the present state, once this has been copied: each
        call copies a part of it."""
        self._hand_on()
        tasks = None
        if self._policy is policy:
            if not self._writer.wants_another():
                return
            self._copied = self._copied or CopiedTasks(self.cluster)
            if not self._copied.go_on():
                return
            tasks = self._copied.all()
        self._policy, self._copied = policy, None
        begin = Begin(
            at=self._now(),
            version=VERSION,
            number=self._number,
            schedulers=list(self._options.schedulers),
            default_queue=self._options.default_queue,
            shadow_groups=self.cluster.shadow_groups,
            gathering_s=policy.gathering_s,
            configurations=list(policy.texts),
            release=policy.profiles.release.text if policy.profiles is not None else "",
        )
        self._writer.begin(partial(self._translation.beginning, begin, Snapshot(self.cluster, tasks)))

    def _hand_on(self) -> None:
        if self.cluster.tape:
            if self._copied is not None:
                self._copied.change(chain.from_iterable(map(_pods_of, self.cluster.tape)))
            self._writer.add(partial(self._translation.entries, self.cluster.tape))
            self.cluster.tape = []


def _pods_of(observed: Observed) -> Iterable[str]:
    """The keys of the pods that an item of the tape has changed."""
    match observed:
        case Decided(decisions=made):
            placed, gone = (each.task.key for each in made.binds), (each.task.key for each in made.evictions)
            return [*placed, *gone, *(task.key for task in made.nominations)]
        case ReadAgain(pod=pod) | (_, _, Pod() as pod):
            return [f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}"]
        case (_, "Pod", str() as key):
            return [key]
    return ()


@contextmanager
def black_box(
    folder: str, options: Options, now: Callable[[], float], retention: Retention = DEFAULT_RETENTION, hide: Hide = as_it_is
) -> Iterator[BlackBox | None]:
    """A context with a black box that writes into a folder, or with None if no folder is given. Raises InputError."""
    if not folder:
        yield None
        return
    try:
        writer = Writer(Path(folder), retention, hide)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=folder) from None
    try:
        yield BlackBox(writer, options, now)
    finally:
        writer.close()
