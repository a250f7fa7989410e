"""Whether a client is on this machine: in its network namespace, so in the same pod, or behind kubectl port-forward."""

from __future__ import annotations

import ipaddress
from typing import Any


def is_loopback(peer: Any) -> bool:
    """Whether the address of a client is loopback. `peer` is an address as sockets return it; a client without one is not on loopback."""
    try:
        address = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
