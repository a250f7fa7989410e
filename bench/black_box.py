"""What the black box costs: gangs come, are placed and go, with and without a recording of it, in per cent of the cycles' CPU time.

The budget is for the scheduler's own thread, which waits for no other thread. The row also has the CPU time of the thread that writes, in
per cent of the cycles, the size of a cycle on disk, and how long taking a part of a snapshot of all pods delays the next cycle.
"""

from __future__ import annotations

import gc
import tempfile
import time
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import shapes
from bench.measure import Row
from bench.sessions import NOW, policy, running
from pumice.inputs.recording.file_format import files_of
from pumice.inputs.recording.snapshot import CopiedTasks, Snapshot
from pumice.live.scheduler.black_box import BlackBox, black_box
from pumice.live.scheduler.options import Options
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.observer import SILENT
from pumice.scheduler.model.cluster import Cluster

NODES, EXISTING, GANGS, MEMBERS, ROUNDS = 1000, 2000, 5, 20, 200
POLICY = policy(DEFAULT)
ASKED = {"cpu": "1", "memory": "1Gi"}


def build(made: Cluster) -> Cluster:
    """Put 1,000 nodes with 20,000 running pods into the cluster."""
    parts = shapes.nodes(NODES, cpu="64", memory="256Gi"), shapes.queues(), running(NODES, EXISTING, 10, requests=ASKED)
    for kind, item in chain(*parts):
        made.put(kind, item)
    return made


class Round(NamedTuple):
    """CPU seconds of one round, on the thread that applies changes and runs cycles."""

    all: float
    cycles: float


def play(made: Cluster, turn: int, box: BlackBox | None = None) -> Round:
    """Play one round: gangs are added, enqueued, placed and removed."""
    batch = list(chain(*(shapes.gang(f"g{turn}-{number}", MEMBERS, ASKED) for number in range(GANGS))))
    began = time.thread_time()
    for kind, item in batch:
        made.put(kind, item)
    started = time.thread_time()
    for _ in range(2):
        decide(made, NOW + turn, box)
    cycles_s = time.thread_time() - started
    for kind, item in batch:
        made.remove(kind, f"default/{item.metadata.name}")  # type: ignore[attr-defined]
    return Round(time.thread_time() - began, cycles_s)


def decide(made: Cluster, at: float, box: BlackBox | None) -> None:
    decisions = cycle(made, POLICY, at, observer=box or SILENT)
    if box is not None:
        box.cycled(decisions, at, 0.0)


def parts_of_a_snapshot(made: Cluster) -> list[float]:
    """CPU seconds of each part of a snapshot. Each part delays the next cycle by this time."""
    copied, parts, whole = CopiedTasks(made), [], False
    while not whole:
        began = time.thread_time()
        whole = copied.go_on()
        if whole:
            Snapshot(made, copied.all())
        parts.append(time.thread_time() - began)
    return parts


def run() -> list[Row]:
    """One row. Rounds with and without the black box take turns, and their medians are compared: other work on the machine slows both
    alike."""
    plain = build(Cluster())
    with tempfile.TemporaryDirectory() as folder, black_box(folder, Options(), lambda: NOW) as box:
        assert box is not None
        taped = build(box.cluster)
        snapshot_s = max(parts_of_a_snapshot(taped))
        decide(plain, NOW, None)
        decide(taped, NOW, box)
        while not any(path.stat().st_size for path in Path(folder).iterdir()):
            time.sleep(0.1)  # until the first snapshot is written
        (file,) = files_of(Path(folder), print)
        size = file.stat().st_size
        gc.collect()
        gc.freeze()
        others = time.process_time() - time.thread_time()
        rounds = []
        for turn in range(1, ROUNDS, 2):  # neither of the two clusters is always first
            rounds.append((play(plain, turn), play(taped, turn, box)))
            rounds.append((play(taped, turn + 1, box), play(plain, turn + 1))[::-1])
        time.sleep(1.0)  # until the last decisions are written, too
        others = time.process_time() - time.thread_time() - others
        size = file.stat().st_size - size
        gc.unfreeze()
    without, cycles_s = (median(getattr(one, what) for one, _ in rounds) for what in ("all", "cycles"))
    percent = 100 * (median(other.all for _, other in rounds) - without) / cycles_s
    counts = {
        "% on the thread that writes": round(100 * others / ROUNDS / cycles_s, 1),
        "bytes a cycle": size // (2 * ROUNDS),
        "ms for the largest part of a snapshot": round(1000 * snapshot_s, 1),
        "ms a cycle": round(500 * cycles_s, 1),
    }
    name = f"black box: 100 pods come, are placed and go, {NODES} nodes, {10 * EXISTING} pods; per cent of the cycles"
    return [Row(name, 3.0, None, percent, percent, "%", counts)]
