"""Whether a client sits on this machine: in its network namespace, so in the same pod, or behind kubectl port-forward."""

from __future__ import annotations

import ipaddress
from typing import Any

NAMES_OF_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(peer: Any) -> bool:
    """`peer` is an address as sockets give it; whoever has none is a stranger."""
    try:
        address = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
