"""A trace under EASY in AccaSim 1.1.3 (PyPI), beside which `simulate` is held: jobs, mean wait, CPU seconds.

    python -m venv /tmp/accasim && /tmp/accasim/bin/pip install accasim==1.1.3
    /tmp/accasim/bin/python bench/in_accasim.py TRACE.swf PROCESSORS

As in Pumice, the cluster is one node with all processors. Jobs that were cancelled before they ran, or that request nothing, are left out.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import resource
import sys
import tempfile
from pathlib import Path

FIELDS = 18
SUBMIT, RUN, USED, MEMORY, ASKED, MEMORY_ASKED = 1, 3, 4, 6, 7, 9


def plain(trace: str, to: Path) -> int:
    """Write the trace's jobs to `to` and return their number. Each line has the 18 fields only; times count from the first job, and no
    memory is requested."""
    began, count = -1, 0
    with Path(trace).open() as lines, to.open("w") as out:
        for line in lines:
            cells = line.split(None, FIELDS)[:FIELDS]
            if line.startswith(";") or len(cells) < FIELDS:
                continue
            asked = cells[ASKED] if int(cells[ASKED]) > 0 else cells[USED]
            if int(cells[RUN]) < 0 or int(asked) <= 0:
                continue
            began = int(cells[SUBMIT]) if began < 0 else began
            cells[SUBMIT], cells[USED], cells[ASKED] = str(int(cells[SUBMIT]) - began + 1), asked, asked
            cells[MEMORY] = cells[MEMORY_ASKED] = "-1"
            print(*cells, file=out)
            count += 1
    return count


def main() -> None:
    collections.Mapping = collections.abc.Mapping  # AccaSim still looks for the class in this module
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    trace, processors = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        jobs, cluster = Path(folder, "jobs.swf"), Path(folder, "cluster.json")
        count = plain(trace, jobs)
        cluster.write_text(json.dumps({"groups": {"node": {"core": processors}}, "resources": {"node": 1}}))
        Simulator(str(jobs), str(cluster), EASYBackfilling(FirstFit()), RESULTS_FOLDER_NAME=folder).start_simulation()
    own, of_children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{count} jobs, {seconds(own):.2f} s CPU, and {seconds(of_children):.2f} s in the process that writes")


def seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
