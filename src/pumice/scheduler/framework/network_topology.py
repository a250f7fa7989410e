"""Network topologies in a session: how far a job may spread, and which HyperNode it already occupies.

Limits are tiers. A tier may be given by its name instead of its number. A soft topology is a hard one that allows everything up to the
whole cluster. The HyperNode of a job with pods on nodes is the recorded one, or else the lowest HyperNode that holds all these nodes; it
is looked up when it is first needed, and grows with what the session decides.
"""

from enum import Enum
from functools import reduce

from pumice.api.volcano import NetworkTopology
from pumice.scheduler.framework.journal import StateJournal
from pumice.scheduler.model import Cluster, HyperNode, Job, SubJob, status
from pumice.scheduler.model.hypernodes import hypernodes_of


class Purpose(Enum):
    """The purpose of a search for HyperNodes: the kind of room that they must have."""

    ALLOCATE = "room that is there"
    EVICT = "room that evictions could make"


class Topology:
    """The limits and places of jobs in the tree of HyperNodes."""

    def __init__(self, cluster: Cluster, before: StateJournal) -> None:
        self._before = before
        self.tree = hypernodes_of(cluster)
        self.trials_count = True  #: whether pods placed by the present dry run attract the rest of their job
        self._known: set[str] = set()  #: uids of jobs whose recorded HyperNodes have been checked

    # -- limits

    def limit(self, job: Job) -> int | None:
        """The highest tier of a HyperNode that the whole job must fit in; None if it may spread."""
        return self._limit(job.subjobs.topology, self.tree.root.tier)

    def sub_limit(self, job: Job, subjob: SubJob) -> int | None:
        """The highest tier of a HyperNode that the whole sub-job must fit in; None if it may spread."""
        outer = self.limit(job)
        return self._limit(subjob.topology, self.tree.root.tier if outer is None else outer)

    def _limit(self, topology: NetworkTopology | None, soft: int) -> int | None:
        if topology is None:
            return None
        if topology.mode == "soft":
            return soft
        if topology.highest_tier_name:
            return self.tree.tier_numbers.get(topology.highest_tier_name, topology.highest_tier_allowed)
        return topology.highest_tier_allowed

    def is_plain(self, job: Job) -> bool:
        """Whether the job's tasks may be placed one after the other, anywhere: it has no sub-group policies and no limit."""
        if job.has_one_part and not job.asks_for_topology:
            return True
        return not job.subjobs.has_policies and self.limit(job) is None

    # -- places

    def occupied(self, job: Job) -> HyperNode | None:
        """The HyperNode that holds the job's tasks; None while none of them has a node."""
        self._look_at(job)
        return self.tree.by_name.get(job.allocated_hypernode)

    def sub_occupied(self, job: Job, subjob: SubJob) -> HyperNode | None:
        self._look_at(job)
        return self.tree.by_name.get(subjob.allocated_hypernode)

    def enter(self, part: Job | SubJob, chosen: HyperNode) -> None:
        """Record that a job or sub-job also occupies a HyperNode from now on."""
        self._before.set(part, allocated_hypernode=self._joined(part.allocated_hypernode, chosen))

    def settle(self, job: Job, part: SubJob, chosen: HyperNode) -> None:
        """Record that a sub-job was placed for good in a HyperNode."""
        self._look_at(job)
        self.enter(part, chosen)
        self.enter(job, chosen)
        if part.uid in job.nominated_hypernodes:
            others = {uid: name for uid, name in job.nominated_hypernodes.items() if uid != part.uid}
            self._before.set(job, nominated_hypernodes=others)

    def _joined(self, name: str, chosen: HyperNode) -> str:
        before = self.tree.by_name.get(name)
        return chosen.name if before is None else self.tree.lowest_common(before, chosen).name

    def _look_at(self, job: Job) -> None:
        """Check the recorded HyperNodes of a job, once per session: drop records that no longer hold, and fill in missing ones."""
        if job.uid in self._known or not self.tree.ready:
            return
        self._known.add(job.uid)
        places = []
        for subjob in job.subjobs:
            rows = [task.node for task in subjob.tasks.values() if task.status & status.ALLOCATED_ALL and task.node >= 0]
            place = self._place(subjob.allocated_hypernode, self.sub_limit(job, subjob), rows) if rows else None
            self._before.set(subjob, allocated_hypernode=place.name if place is not None else "")
            if place is not None:
                places.append(place)
        if not places:
            self._before.set(job, allocated_hypernode="")
            return
        common = reduce(self.tree.lowest_common, places)
        recorded = self.tree.by_name.get(job.allocated_hypernode)
        if recorded is None or not recorded.contains(common) or _is_above(recorded, self.limit(job)):
            self._before.set(job, allocated_hypernode=common.name)

    def _place(self, recorded: str, limit: int | None, rows: list[int]) -> HyperNode:
        """The HyperNode of tasks on these nodes: the recorded one if it holds them and is within the limit, else the lowest that holds
        them. HyperNodes may change while tasks run, so the recorded one may no longer hold all nodes, or may be above the limit."""
        found = self.tree.by_name.get(recorded)
        if found is None or not found.rows[rows].all() or _is_above(found, limit):
            return self.tree.enclosing(rows)
        return found


def _is_above(node: HyperNode, limit: int | None) -> bool:
    return limit is not None and node.tier > limit
