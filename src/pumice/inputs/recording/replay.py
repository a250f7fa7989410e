"""A replay of a recording: the kept state as it was before each cycle, and what the scheduler decides on it now.

Between cycles the recorded changes are made. At a cycle, the recorded decisions are carried out, whatever would be decided now. So each
cycle is decided on the state that it saw, and one difference does not lead to another. What plugins remember from cycle to cycle,
measurements and the answers of extenders are not recorded.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from pumice.api import InputError, rfc3339
from pumice.api.pod import Pod
from pumice.api.structs import STRUCTS, decoder
from pumice.inputs.recording.entry_format import Begin, Cycle, Decided, Entry, PhaseSet, Put, Removed, Restored, Whole, cycle_of
from pumice.inputs.recording.file_format import Tell, entries, files_of
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.framework.gathering import MEMORY, Kept
from pumice.scheduler.framework.past_evictions import note, past_eviction
from pumice.scheduler.framework.pods_to_try import EVERYBODY, Only
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, status

_STRUCTS = {kind.kept_as: decoder(struct) for kind, struct in STRUCTS.items()}


class Replay:
    """The replay of one recording. `cluster` is the state at the time `at`, just before the next entry."""

    cluster: Cluster
    begin: Begin

    def __init__(self, paths: Sequence[Path], tell: Tell) -> None:
        self._entries = (entry for path in paths for entry in entries(path, tell))
        self.at = 0.0
        self.last: Cycle | None = None  #: the cycle carried out last
        self._whole = False

    def cycles(self, until: float = float("inf")) -> Iterator[Cycle]:
        """Yield each cycle while the state is as that cycle saw it. At the end, the state is that of `until`."""
        for entry in self._entries:
            if self._whole and entry.at > until:
                break
            self.at = entry.at
            if isinstance(entry, Cycle) and self._whole:
                self._remember(entry)
                yield entry
            self._take(entry)

    def check(self, path: Path) -> None:
        """Raise InputError if the recording ends before all objects of the state were read."""
        if not self._whole:
            raise InputError("ends before all objects were told: nothing can be decided on it", where=str(path))

    def _remember(self, cycle: Cycle) -> None:
        self.cluster.memory[MEMORY] = Kept(*cycle.gathering) if cycle.gathering is not None else Kept()

    def _take(self, entry: Entry) -> None:
        if not isinstance(entry, Begin):
            self.cluster.clock = entry.at
        match entry:
            case Begin():
                self.begin, self._whole = entry, False
                self.cluster = Cluster(tuple(entry.schedulers), entry.default_queue)
                self.cluster.shadow_groups = entry.shadow_groups
            case Whole():
                self._whole = True
                self.cluster.forget_changes()
            case Put():
                self.cluster.put(entry.kind, _STRUCTS[entry.kind].decode(entry.object))
            case Removed():
                self.cluster.remove(entry.kind, entry.key)
            case Restored():
                self.cluster.restore(decoder(Pod).decode(entry.object))
            case PhaseSet():
                if (job := self.cluster.jobs.get(entry.job)) is not None:
                    self.cluster.set_phase(job, entry.phase)
            case Cycle():
                self._carry_out(entry)

    def _carry_out(self, cycle: Cycle) -> None:
        """Change the state as the scheduler did after it had made the decisions of this cycle."""
        cluster, tasks = self.cluster, self.cluster.tasks
        for key, node in cycle.binds.items():
            if key in cycle.written:
                cluster.annotate(tasks[key], cycle.written[key])
            cluster.move(tasks[key], status.BINDING, cluster.nodes.rows[node])
        for eviction in cycle.evictions:
            task = tasks[eviction.pod]
            evict = Evict(task, eviction.node, eviction.beneficiary, eviction.action, eviction.permitted_by)
            note(cluster, [past_eviction(evict, cluster, cycle.at)])
            cluster.move(task, status.RELEASING, task.node, evicted=True)
            cluster.forget_eviction(task)
            task.deleting = eviction.action == "schedule"
        for key, node in cycle.nominations.items():
            cluster.nominate(tasks[key], node)
        for group in cycle.groups:
            job = cluster.jobs[group.job]
            job.allocated_hypernode = group.hypernode
            cluster.set_phase(job, group.phase)
        cluster.forget_changes()
        self.last = cycle


def opened(path: Path, tell: Tell, *, at: float | None = None, number: int | None = None) -> Replay:
    """The replay of a recording, starting with the file that holds an instant or a cycle; without either, with the first file. Raises
    InputError."""
    paths = files_of(path, tell)
    if at is None and number is None:
        return Replay(paths, tell)
    begins = [begin for each in paths if isinstance(begin := next(entries(each, tell)), Begin)]
    early = [begin for begin in begins if (begin.at <= at if at is not None else begin.number < (number or 0))]
    if not early:
        raise InputError(f"begins at {rfc3339(begins[0].at)}, with cycle {begins[0].number + 1}", where=str(path))
    return Replay(paths[len(early) - 1 :], tell)


def state_at(path: Path, tell: Tell, at: float | None) -> Replay:
    """A replay that has been run up to an instant, or to the end of the recording. Raises InputError."""
    replay = opened(path, tell, at=at)
    for _ in replay.cycles(until=at if at is not None else float("inf")):
        pass
    replay.check(path)
    return replay


def cycle_numbered(path: Path, tell: Tell, number: int) -> tuple[Replay, Cycle]:
    """A replay that has been run up to the cycle of this number, and that cycle. Raises InputError."""
    replay, before = opened(path, tell, number=number), 0
    for cycle in replay.cycles():
        if cycle.number == number:
            return replay, cycle
        if cycle.number > number:
            raise InputError(f"cycle {number} decided the same as cycle {before}, as nothing had happened; ask for that", where=str(path))
        before = cycle.number
    raise InputError(f"ends with cycle {before}", where=str(path))


def decide(replay: Replay, cycle: Cycle, policy: Policy, world: World = NOWHERE) -> Cycle:
    """The cycle at which `replay` has arrived, decided anew. The state is not changed."""
    cluster = replay.cluster
    queue = Only([cluster.tasks[key] for key in cycle.tried]) if policy.profiles is not None else EVERYBODY
    decisions = rehearse(cluster, replace(policy, gathering_s=replay.begin.gathering_s), cycle.at, world, queue)
    return cycle_of(Decided(cycle.at, cycle.number, 0.0, decisions, cycle.tried, None, {}, cluster.dimensions))


class PodDifference(NamedTuple):
    """A pod for which another decision is made now: the decision then, and the decision now."""

    pod: str
    then: str
    now: str


def differences(recorded: Cycle, now: Cycle) -> list[PodDifference]:
    """The pods for which the two cycles decided differently, sorted by key."""
    if recorded.digest == now.digest:
        return []
    before, after = outcomes(recorded), outcomes(now)
    pods = sorted({*before, *after})
    return [PodDifference(pod, before.get(pod, WAITS), after.get(pod, WAITS)) for pod in pods if before.get(pod) != after.get(pod)]


WAITS = "is left as it is"


def outcomes(cycle: Cycle) -> dict[str, str]:
    """What the cycle decided for each pod, in words."""
    return {
        **{pod: f"is nominated to {node}" if node else "loses its nomination" for pod, node in cycle.nominations.items()},
        **{pod: f"waits for {node}" for pod, node in cycle.pipelined.items()},
        **{each.pod: f"is evicted from {each.node} for {each.beneficiary or 'nobody'} by {each.action}" for each in cycle.evictions},
        **{pod: f"is bound to {node}" for pod, node in cycle.binds.items()},
    }
