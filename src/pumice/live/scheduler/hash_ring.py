"""The hash ring: which of several replicas is responsible for which jobs and nodes, when all of them work and none leads.

Replicas have numbers (`volcano-scheduler-0`, `-1`, ...), and each has many places on a hash ring, by checksums of its name. A name
belongs to the replica whose place comes next after the name's own checksum. So all replicas that know how many there are come to the same
answer, and one more replica takes something from each of the others and moves nothing between them.

Pods and PodGroups are assigned by the name of their first owner, so that a job's pods and its PodGroup belong to one replica; without an
owner, by the PodGroup. Nodes are assigned by their name. Pods on our nodes take room there, whichever replica they belong to.
"""

from bisect import bisect

from pumice.api.annotations import GROUP_NAME
from pumice.api.meta import Metadata

PLACES = 100  #: of each replica on the ring


class Ring:
    """A hash ring of replicas. `mine` is the name of this replica, `replicas` are the names of all."""

    def __init__(self, mine: str, replicas: list[str]) -> None:
        self.mine = mine
        self._owners = {_checksum(f"{name}/{place}"): name for name in replicas for place in range(PLACES)}
        self._places = sorted(self._owners)

    def owner(self, name: str) -> str:
        """The replica that is responsible for a name."""
        return self._owners[self._places[bisect(self._places, _checksum(name)) % len(self._places)]]

    def has(self, name: str) -> bool:
        """Whether a node or queue is ours."""
        return self.owner(name) == self.mine

    def has_job_of(self, metadata: Metadata) -> bool:
        """Whether a pod or PodGroup is ours to schedule."""
        return self.owner(_name_of_job(metadata)) == self.mine


def numbered(mine: str, count: int) -> Ring:
    """The ring of `count` replicas whose names differ from this one's only in the number. Raises ValueError."""
    stem, _, number = mine.rpartition("-")
    if not stem or not number.isdecimal():
        raise ValueError(f'"{mine}" does not end in "-" and a number, as the names of a StatefulSet\'s pods do')
    if int(number) >= count:
        raise ValueError(f'"{mine}" is none of {count} replicas, which are numbered from 0')
    return Ring(mine, [f"{stem}-{replica}" for replica in range(count)])


def _name_of_job(metadata: Metadata) -> str:
    if metadata.owner_references:
        return metadata.owner_references[0].name
    group = (metadata.annotations or {}).get(GROUP_NAME, "")
    made_for_it = group == f"podgroup-{metadata.uid}"  # a PodGroup that the pod owns
    return metadata.name if made_for_it or not group else group


def _checksum(name: str) -> bytes:
    import hashlib  # loads OpenSSL, which is not needed where nothing is shared

    return hashlib.sha256(name.encode()).digest()[:8]
