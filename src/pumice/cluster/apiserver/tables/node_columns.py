"""A row of `kubectl get nodes`."""

from pumice.api import Object
from pumice.cluster.apiserver.scheme.kinds import Column
from pumice.cluster.apiserver.tables.table import AGE

_ROLE = "node-role.kubernetes.io/"


def _node_state(node: Object, now: float) -> str:
    ready = [one for one in (node.get("status") or {}).get("conditions") or () if one.get("type") == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[0].get("status") == "True" else "NotReady"
    return word + (",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else "")


def _roles(node: Object, now: float) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | (
        {labels["kubernetes.io/role"]} if "kubernetes.io/role" in labels else set()
    )
    return ",".join(sorted(roles)) or "<none>"


def _info(field: str, default: str = "<unknown>") -> Column:
    names = {
        "kubeletVersion": "Version",
        "osImage": "OS-Image",
        "kernelVersion": "Kernel-Version",
        "containerRuntimeVersion": "Container-Runtime",
    }
    priority = 0 if field == "kubeletVersion" else 1
    return Column(
        names[field], lambda node, now: ((node.get("status") or {}).get("nodeInfo") or {}).get(field) or default, priority=priority
    )


def _node_address(type: str) -> Column:
    def cell(node: Object, now: float) -> str:
        found = [one.get("address") for one in (node.get("status") or {}).get("addresses") or () if one.get("type") == type]
        return found[0] if found else "<none>"

    return Column("Internal-IP" if type == "InternalIP" else "External-IP", cell, priority=1)


NODE_COLUMNS = (
    Column("Status", _node_state),
    Column("Roles", _roles),
    AGE,
    _info("kubeletVersion", ""),
    _node_address("InternalIP"),
    _node_address("ExternalIP"),
    _info("osImage"),
    _info("kernelVersion"),
    _info("containerRuntimeVersion"),
)
