"""The Standard Workload Format: comment lines `;` with a header, then 18 numbers per job, where -1 means unknown.

A job requests processors. On a cluster of one node it is one pod with as many CPUs: the node stands for processors without machines. On
several nodes it is a gang of pods with one CPU each, which may run on any node. A `.machines` file has rows of id, name, machines,
processors each, speed, memory in KiB. Jobs that were cancelled before they ran, or that request nothing, are left out. So are the lines
about parts of a job that was swapped or checkpointed: a line before them is about the whole job.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from math import isfinite
from pathlib import Path

from pumice.api import InputError
from pumice.api.core import Node
from pumice.simulate.formats import lines
from pumice.simulate.workload import Work, Workload, node, role

FIELDS = 18
ONE_POD = "A job of this log is one pod on one node, which has all processors. --nodes NxMcpu makes it a gang of pods with one CPU each."
GANGS = "A job of this log is a gang of pods with one CPU each, on any nodes."
CALENDAR = 1e8  #: a greater time of submission is a calendar time: no log is that long
PARTS = (2, 3, 4)  #: the status of lines about a part of a job
RUN, USED, ASKED, TIME_ASKED, STATUS, USER, QUEUE = 3, 4, 7, 8, 10, 11, 14


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    """The workload of a file. Without a cluster, it runs on one node with the processors that the header or the `.machines` file states."""
    header, left_out = _header(path), Counter[str]()
    nodes = cluster if cluster is not None else _own(path, header)
    processors = sum(_processors(each) for each in nodes)
    jobs = _jobs(path, processors, len(nodes) == 1, left_out)
    start = header.get("UnixStartTime", "")
    began, jobs = (float(start), jobs) if start.isdigit() else _from_the_first(jobs)
    return Workload(Path(path).name, jobs, nodes, began=began, left_out=left_out, note=ONE_POD if len(nodes) == 1 else GANGS)


def _from_the_first(jobs: Iterator[Work]) -> tuple[float | None, Iterator[Work]]:
    """The first submission and the jobs counted from it, if the times are calendar times that the header does not state; else None."""
    first = next(jobs, None)
    if first is None:
        return None, jobs
    if first.submit < CALENDAR:
        return None, chain([first], jobs)
    return first.submit, _since(first.submit, chain([first], jobs))


def _since(began: float, jobs: Iterator[Work]) -> Iterator[Work]:
    for work in jobs:
        work.submit -= began
        yield work


def nodes(path: str) -> list[Node]:
    """The machines of a `.machines` file."""
    found = []
    for number, line in lines(path):
        cells = line.split()
        if not cells:
            continue
        try:
            _, name, count, processors, _, memory = cells
            offered: dict[str, str | int] = {"cpu": int(processors), "memory": f"{int(memory)}Ki"}
            found += [node(f"{name}-{index:04d}", offered) for index in range(int(count))]
        except ValueError:
            raise InputError("must be id, name, machines, processors each, speed, memory in KiB", where=path, line=number) from None
    return found


def _own(path: str, header: dict[str, str]) -> list[Node]:
    machines = path.removesuffix(".gz") + ".machines"
    if header.get("MaxProcs", "").isdigit():
        count = int(header["MaxProcs"])
    elif Path(machines).is_file():
        count = sum(_processors(each) for each in nodes(machines))
    else:
        raise InputError(
            "tells no MaxProcs, and there is no .machines file beside it; say how many processors there are, such as --nodes 1x128cpu",
            where=path,
        )
    return [node("processors", {"cpu": count})]


def _processors(each: Node) -> int:
    offered = (each.status.allocatable or {}).get("cpu")
    return offered.whole if offered is not None else 0


def _header(path: str) -> dict[str, str]:
    """The comment lines before the first job."""
    found: dict[str, str] = {}
    for _, line in lines(path):
        if not line.startswith(";"):
            if line.strip():
                break
            continue
        key, colon, value = line.lstrip("; \t").partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _jobs(path: str, processors: int, one_node: bool, left_out: Counter[str]) -> Iterator[Work]:
    for number, line in lines(path):
        if line.startswith(";") or not line.strip():
            continue
        cells = line.split(None, FIELDS)[:FIELDS]
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = []
        if len(values) < FIELDS or not all(map(isfinite, values)):
            raise InputError(f"is no record of {FIELDS} numbers", where=path, line=number)
        asked = int(values[ASKED] if values[ASKED] > 0 else values[USED])
        if why := _cannot_run(values, asked, processors):
            left_out[why] += 1
            continue
        pods = role(1, {"cpu": asked}) if one_node else role(asked, {"cpu": 1})
        estimate = values[TIME_ASKED] if values[TIME_ASKED] > 0 else None
        queue = f"queue-{int(values[QUEUE])}" if values[QUEUE] >= 0 else "default"
        user = cells[USER] if values[USER] >= 0 else ""
        yield Work(cells[0], values[1], values[RUN], (pods,), queue, user, estimate=estimate)


def _cannot_run(values: list[float], asked: int, processors: int) -> str:
    if values[1] < 0:
        return "no time of submission"
    if values[STATUS] in PARTS:
        return "a part of a job"
    if values[RUN] < 0:
        return "cancelled before it ran" if values[STATUS] == 5 else "no run time"
    if asked <= 0:
        return "no processors"
    return "more processors than there are" if asked > processors else ""
