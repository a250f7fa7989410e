"""The names of what a simulation writes: columns of its CSV files, and the measures in summary.json.

All times are seconds on the workload's own axis; `summary.json` tells under `began` which instant its 0 is, if the workload knows it.
Amounts are whole CPUs, bytes, and whole GPUs (0.25 is a quarter of a card). What is unknown is an empty cell.
"""

from __future__ import annotations

#: jobs.csv: one row a job, in the order of arrival
JOBS = (
    "job",  #: its name in the workload
    "queue",
    "user",
    "submit",
    "start",  #: first start; empty if it never started
    "end",  #: empty if it did not end
    "wait",  #: start less submit; of a job that never started, what it had waited when the simulation ended
    "turnaround",
    "slowdown",  #: bounded: max(1, turnaround / max(run, 10))
    "run",  #: seconds of work asked for
    "estimate",  #: seconds that the scheduler was told
    "pods",
    "cpu",  #: of all its pods together
    "memory",
    "gpu",
    "priority",
    "evictions",  #: of its pods
    "lost",  #: pod-seconds of work that had to be done again
    "state",  #: done, killed, running, waiting
    "reason",  #: why it waited, as the last cycle that refused it said
)

#: events.csv: one row an event, in order of time
EVENTS = (
    "time",
    "event",  #: submit, start, end, evict, kill, node-join, node-leave, node-fail
    "job",
    "queue",
    "node",
    "pods",  #: how many pods of the job on this node
    "detail",  #: of an eviction: in whose favour, and by which action
)

#: series.csv: one row a value that holds from `time` on, until the next row of the same series, resource and queue
SERIES = (
    "time",
    "series",  #: one of SERIES_NAMES
    "resource",  #: cpu, memory, gpu; empty where it does not matter
    "queue",  #: empty for the whole cluster
    "value",
)
SERIES_NAMES = (
    "capacity",  #: by resource
    "held",  #: by resource, for the cluster and by queue
    "asked",  #: by resource and queue: what its waiting and running jobs ask for
    "deserved",  #: by resource and queue
    "waiting",  #: jobs, for the cluster and by queue
    "running",  #: jobs, for the cluster and by queue
    "fairness",  #: Jain's index, 0..1; by resource and queue: held less the smaller of deserved and asked
    "fragmentation",  #: GPUs that the jobs seen so far could not use
)

#: summary.json: these keys, and "queues": {name: {measures}}, "longest": [...], "left_out": {why: jobs}
SUMMARY = ("measures", "queues", "longest", "left_out", "began", "workload", "cluster", "policy", "seed")

#: `measures` has the names below; a distribution is {"mean", "p50", "p90", "p95", "p99", "max"}
DISTRIBUTIONS = ("wait", "turnaround", "bounded_slowdown")
#: the same over time. fairness: Jain's index of what the queues that ask for anything hold above the smaller of what they deserve and
#: ask for, 1 if all are equally far from it; for a queue that difference itself, below 0 where it gets too little. fragmentation: GPUs
OVER_TIME = ("fairness", "fragmentation")
#: {"cpu": ..., "memory": ..., "gpu": ...}; utilisation 0..1, work in resource-seconds
BY_RESOURCE = ("utilisation", "goodput", "lost_work")
NUMBERS = ("makespan", "jobs", "done", "killed", "evictions")
PERCENTILES = (50, 90, 95, 99)

#: `longest` of summary.json: the ten longest waits, the longest first
LONGEST = ("job", "queue", "submit", "start", "wait", "reason")
