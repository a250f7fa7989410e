"""What to say of an object that is not there when the input is a dump of only some kinds."""

from __future__ import annotations

from pumice.scheduler.model.cluster import Cluster


def absent(cluster: Cluster, kind: str, otherwise: str) -> str:
    """`otherwise`, unless the input may simply have been taken without this kind."""
    if kind not in cluster.lacking:
        return otherwise
    plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
    return f"the input has no {plural}; say `pumice cycle --from-cluster` or add {plural.lower()} to the dump"
