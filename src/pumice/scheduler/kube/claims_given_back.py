"""Device claims that lose their devices because a group finds no place with them.

First each member that was tried frees a claim of its own, then the group one of those that it shares; a group that only holds claims lets
go of them. A claim is freed if nobody else uses it. kube-scheduler frees it even if its devices were decided in this attempt alone and
nothing of them is written: an API server takes that for no change. A second change is refused, for it was made of the claim's old state.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pumice.api.devices import ResourceClaim, ResourceClaimStatus
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.group_results import Code, Status
from pumice.scheduler.kube.pod_groups import NativeGroup
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube.devices.claims import group_claims

FREED = "deallocation and deletion of ResourceClaims completed"
AGAIN = "; please apply your changes to the latest version and try again"


class Conflict(Exception):
    """A claim was changed before."""


class ClaimsGivenBack:
    def __init__(self, session: Session, group: NativeGroup) -> None:
        self._session = session
        self._claims: dict[str, ResourceClaim] = dict(session.cluster.of("ResourceClaim"))
        self._group = group.wire.metadata.identity
        self._written: set[str] = set()

    def of_member(self, task: Task, out_of_reach: Sequence[str]) -> bool:
        """Free the first of a member's claims that nobody else uses. Return whether there is one. Raises Conflict."""
        key = next((key for key in out_of_reach if self._users(key) <= {task.uid}), None)
        if key is not None:
            self._free(key)
        return key is not None

    def of_group(self, task: Task, out_of_reach: Sequence[str]) -> Status:
        """Free one claim that no other group uses; else let go of one that is kept for the group. Raises Conflict."""
        key = next((key for key in out_of_reach if self._users(key) <= {self._group}), None)
        if key is not None:
            self._free(key)
            return Status(Code.UNSCHEDULABLE, ["deallocation of PodGroup ResourceClaim completed"])
        key = self._kept_for_group(task)
        if key is None:
            return Status(Code.UNSCHEDULABLE, [FREED])
        claim = self._claims[key]
        users = [user for user in claim.status.reserved_for or () if user.uid != self._group]
        self._session.before.put("ResourceClaim", replace(claim, status=replace(claim.status, reserved_for=users or None)))
        self._session.decisions.released_claims[key] = self._group
        return Status(Code.UNRESOLVABLE, ["ResourceClaim unreserved for PodGroup"])

    def _users(self, key: str) -> set[str]:
        return {user.uid for user in self._claims[key].status.reserved_for or ()}

    def _kept_for_group(self, task: Task) -> str | None:
        """The first claim of the group that has devices and is kept for it."""
        cluster = self._session.cluster
        keys = (f"{task.namespace}/{name}" for name in group_claims(cluster, task).values())
        return next((key for key in keys if self._claims[key].status.allocation is not None and self._group in self._users(key)), None)

    def _free(self, key: str) -> None:
        claim = self._claims[key]
        # a claim of a file without uid is one of the recorded cases, whose stand-in for an API server counts every write as a change
        changes = claim.status.allocation is not None or not claim.metadata.uid
        if key in self._written and changes:
            name = f'resourceclaims.resource.k8s.io "{claim.metadata.name}"'
            raise Conflict(f"Operation cannot be fulfilled on {name}: the object has been modified{AGAIN if claim.metadata.uid else ''}")
        self._written.add(key)
        if claim.status.allocation is not None:
            self._session.before.put("ResourceClaim", replace(claim, status=ResourceClaimStatus()))
            self._session.decisions.released_claims[key] = ""
