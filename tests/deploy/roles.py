"""What roles may hold: no more than the code uses, and for the scheduler no more than the role that Volcano installs for its own.

What the scheduler and the webhooks write stands in their calls, which are read from the sources. The controllers' writes are values; a
table says which of their modules make them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pumice
from pumice.api import kinds
from pumice.api.kinds import Kind

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
        group, resources, verbs = (part.strip() for part in line.split("|")[:3])
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


# ---- what the code uses

SOURCES = Path(pumice.__file__).parent
VERBS = ("get", "create", "update", "patch", "delete")
SCHEDULER = [
    *(SOURCES / "live/scheduler").glob("*.py"),
    *(SOURCES / "client" / name for name in ("bind_and_evict.py", "event_correlator.py", "event_recorder.py", "leader_election.py")),
]
WEBHOOKS = list((SOURCES / "live/webhooks").glob("*.py"))


def calls(paths: Iterable[Path]) -> set[Right]:
    """The rights that are needed for `transport.create(PODS, ..., subresource="binding")` and the like."""
    return {right for path in paths for node in ast.walk(ast.parse(path.read_text())) for right in _needed(node)}


def _needed(node: ast.AST) -> Iterator[Right]:
    match node:
        case ast.Call(func=ast.Attribute(attr=verb), args=[ast.Name(name), *_]) if verb.strip("_") in VERBS:
            found = getattr(kinds, name, None)
            below = [f"/{each.value.value}" for each in node.keywords if each.arg == "subresource" and isinstance(each.value, ast.Constant)]
            if isinstance(found, Kind):
                yield found.group, found.plural + "".join(below), verb.strip("_")
        case ast.Call(func=ast.Name("WriteStatus"), args=[_, ast.Name(name), *_]):
            found = getattr(kinds, name)
            yield found.group, found.plural + ("" if found == kinds.POD_GROUPS else "/status"), "update"  # PodGroups are written whole


#: The API server asks for the right to an object's finalizers when a dependent is made whose owner must wait for it.
_CONTROLLERS = """
batch.volcano.sh | jobs | get create patch delete | job/controller.py
batch.volcano.sh | jobs/status | patch | job/controller.py
batch.volcano.sh | cronjobs/status | patch | cronjob.py
batch.volcano.sh | jobs/finalizers | update | job/controller.py
batch.volcano.sh | cronjobs/finalizers | update | cronjob.py
bus.volcano.sh | commands | delete | command.py
flow.volcano.sh | jobflows/status jobtemplates/status | patch | jobflow.py
flow.volcano.sh | jobflows/finalizers | update | jobflow.py
scheduling.volcano.sh | podgroups | get create patch delete | podgroup.py
scheduling.k8s.io | podgroups/status | patch | podgroup.py
scheduling.volcano.sh | queues queues/status | patch | queue.py
topology.volcano.sh | hypernodes | get create patch delete | hypernode.py
topology.volcano.sh | hypernodes/status | patch | hypernode.py
shard.volcano.sh | nodeshards | get create patch delete | sharding.py
 | pods | get create patch delete | job/controller.py
 | pods/finalizers | update | podgroup.py
 | persistentvolumeclaims | get create | job/pods.py
 | services | get create delete | job/plugins/svc.py
 | secrets | get create delete | job/plugins/ssh.py
 | configmaps | get create patch delete | job/plugins/svc.py
 | events | create patch | job/controller.py
networking.k8s.io | networkpolicies | get create delete | job/plugins/svc.py
apps | replicasets/finalizers statefulsets/finalizers daemonsets/finalizers | update | podgroup.py
batch | jobs/finalizers | update | podgroup.py
coordination.k8s.io | leases | get create update | ../../client/leader_election.py
"""
CONTROLLERS = frozenset(_table(_CONTROLLERS))
CONTROLLERS_MODULES = {line.rpartition("|")[2].strip() for line in _CONTROLLERS.strip("\n").splitlines()}
