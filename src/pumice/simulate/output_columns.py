"""The names in a simulation's outputs: columns of its CSV files, and the measures in summary.json.

All times are seconds on the workload's own time axis. The key `began` of summary.json is the instant of its 0, if the workload knows it.
Amounts are whole CPUs, bytes, and whole GPUs (0.25 is a quarter of a card). Unknown values are empty cells.
"""

#: jobs.csv: one row per job, in the order of arrival
JOBS = (
    "job",  #: the job's name in the workload
    "queue",
    "user",
    "submit",
    "start",  #: first start; empty if it never started
    "end",  #: empty if it did not end
    "wait",  #: start less submit; of a job that never started, what it had waited when the simulation ended
    "turnaround",
    "slowdown",  #: bounded: max(1, turnaround / max(run, 10)); of a killed job, the estimate in place of the run
    "run",  #: seconds of work of each pod
    "estimate",  #: the run time in seconds that the scheduler expected
    "pods",
    "cpu",  #: of all its pods together
    "memory",
    "gpu",
    "priority",
    "evictions",  #: of its pods
    "lost",  #: pod-seconds of work that had to be done again
    "state",  #: done, killed, running, waiting
    "reason",  #: why it waited, by the last cycle that refused it
)

#: events.csv: one row per event, in order of time
EVENTS = (
    "time",
    "event",  #: submit, start, end, evict, kill, node-join, node-fail
    "job",
    "queue",
    "node",
    "pods",  #: how many pods of the job on this node
    "detail",  #: of an eviction: the action, and the job or pod for which it was made
)

#: series.csv: one row per value. It holds from `time` on, until the next row of the same series, resource and queue
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
    "asked",  #: by resource and queue: what the queue's waiting and running jobs request
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
#: distributions over time. fairness, for a queue: what it holds less the smaller of what it deserves and requests, below 0 if it gets too
#: little; for the cluster: Jain's index of this difference over all queues that request anything, 1 if it is equal. fragmentation: GPUs
OVER_TIME = ("fairness", "fragmentation")
#: {"cpu": ..., "memory": ..., "gpu": ...}; utilisation 0..1, work in resource-seconds
BY_RESOURCE = ("utilisation", "goodput", "lost_work")
NUMBERS = ("makespan", "jobs", "done", "killed", "running", "waiting", "evictions")
PERCENTILES = (50, 90, 95, 99)

#: `longest` of summary.json: the ten longest waits, the longest first
LONGEST = ("job", "queue", "submit", "start", "wait", "reason")
