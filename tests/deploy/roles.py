"""What roles may hold. The scheduler's: the rules of the role that Volcano installs for its own, of which ours must be a part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Right = tuple[str, str, str]  #: group, resource, verb

_VOLCANO = """
apiextensions.k8s.io | customresourcedefinitions | create get list watch delete
batch.volcano.sh | jobs | get list watch update delete
batch.volcano.sh | jobs/status | update patch
 | events | create list watch update patch
 | pods | get list watch patch delete
 | pods/status | update
 | pods/binding | create
 | persistentvolumeclaims persistentvolumes | list watch update
 | namespaces services replicationcontrollers | list watch get
 | resourcequotas | list watch
 | nodes | get list watch update patch
storage.k8s.io | storageclasses csinodes csidrivers csistoragecapacities volumeattachments | list watch
policy | poddisruptionbudgets | list watch
scheduling.k8s.io | priorityclasses | get list watch
scheduling.volcano.sh | queues | get list watch create delete update
scheduling.volcano.sh | queues/status | update
scheduling.volcano.sh | podgroups | list watch update
nodeinfo.volcano.sh | numatopologies | get list watch delete
topology.volcano.sh | hypernodes hypernodes/status | get list watch
 | configmaps | get list watch create delete update
apps | daemonsets replicasets statefulsets | list watch get
coordination.k8s.io | leases | get create update watch
resource.k8s.io | resourceclaims | get list watch create update patch
resource.k8s.io | resourceclaims/status | update
resource.k8s.io | resourceclaims/binding | update patch
resource.k8s.io | deviceclasses resourceslices | get list watch create
resource.k8s.io | devicetaintrules | get list watch
shard.volcano.sh | nodeshards | list watch get
shard.volcano.sh | nodeshards/status | update
"""


def _table(text: str) -> Iterator[Right]:
    for line in text.strip("\n").splitlines():
        group, resources, verbs = (part.strip() for part in line.split("|"))
        yield from ((group, resource, verb) for resource in resources.split() for verb in verbs.split())


VOLCANOS_SCHEDULER = frozenset(_table(_VOLCANO))


def rights(role: dict[str, Any]) -> set[Right]:
    """What a Role or ClusterRole allows."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
