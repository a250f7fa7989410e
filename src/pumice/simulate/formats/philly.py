"""Microsoft's Philly trace, as `timestamp,duration,num_gpus,gpu_time,cluster`: a virtual cluster is a queue.

A job with more GPUs than a node has is a gang of pods that take all GPUs of a node, and one pod for the rest. Jobs request only GPUs.
"""

from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from pumice.api import InputError
from pumice.api.core import Node
from pumice.simulate.formats import csv_rows
from pumice.simulate.workload import GPU, Role, Work, Workload, in_order, role


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    if cluster is None:
        raise InputError("tells no cluster; say which, such as --nodes 300x8gpu", where=path)
    largest = max(
        ((each.status.allocatable or {}).get(GPU) for each in cluster), key=lambda amount: amount.whole if amount else 0, default=None
    )
    most, left_out, jobs = largest.whole if largest else 0, Counter[str](), list[Work]()
    every = sum(amount.whole for each in cluster if (amount := (each.status.allocatable or {}).get(GPU)))
    for number, row in enumerate(csv_rows(path, ("timestamp", "duration", "num_gpus", "cluster")), 1):
        try:
            when = datetime.fromisoformat(row.text("timestamp"))
            submit = (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            row.wrong(f'timestamp: "{row.text("timestamp")[:40]}" is not a time; write one such as 2017-10-09 07:01:55')
        gpus = row.whole("num_gpus", 1)
        if gpus > every:
            left_out["more GPUs than there are"] += 1
            continue
        jobs.append(Work(str(number), submit, row.number("duration"), _roles(gpus, most), row.text("cluster") or "default"))
    began = min((work.submit for work in jobs), default=0.0)
    for work in jobs:
        work.submit -= began
    return Workload(Path(path).name, in_order(jobs), cluster, began=began, left_out=left_out)


@lru_cache(maxsize=4096)
def _roles(gpus: int, most: int) -> tuple[Role, ...]:
    whole, rest = divmod(gpus, most)
    parts = [(whole, most)] * bool(whole) + [(1, rest)] * bool(rest)
    return tuple(role(count, {GPU: size}) for count, size in parts)
