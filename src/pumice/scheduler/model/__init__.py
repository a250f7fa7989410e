"""The model of the scheduler: resources, tasks, jobs, queues, nodes, and the cluster that keeps them.

State is kept, never rebuilt: `Cluster.put` and `Cluster.remove` take in events, `Cluster.move` changes a task's status and place,
and all of them keep every sum up to date.
"""

from pumice.scheduler.model.argument_ranges import OneOf, Range
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.hypernodes import HyperNode, HyperNodes
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.job import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN, Job
from pumice.scheduler.model.nodes import ABSENT, Codes, Nodes, Table, copies
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import CPU, EPSILON, MEMORY, PODS, Dimensions, Mask, NDArray, Rows, Vector, dominant_share
from pumice.scheduler.model.subjob import SubJob
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template

__all__ = ["ABSENT", "COMPLETED", "CPU", "EPSILON", "INQUEUE", "MEMORY", "PENDING", "PODS", "RUNNING", "UNKNOWN", "Cluster", "Codes"]
__all__ += ["Dimensions", "HyperNode", "HyperNodes", "Index", "Job", "Mask", "NDArray", "Nodes", "OneOf", "Queue", "Range", "Rows"]
__all__ += ["SubJob", "Table", "Task", "Template", "Vector", "copies", "dominant_share"]
