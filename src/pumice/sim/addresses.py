"""IP addresses out of one range, each given to one holder at a time."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network


class Addresses:
    """Given out in order, so that an address is used again as late as can be. What `taken` holds, which may be anything, is not."""

    def __init__(self, network: str, taken: Iterable[str] = ()) -> None:
        span = IPv4Network(network)
        self._first, self._size = int(span.network_address), span.num_addresses
        self._taken = set(taken)
        places = (place - self._first for place in map(_number, self._taken) if place is not None)
        self._last = max((place for place in places if 0 <= place < self._size), default=0)

    def take(self) -> str:
        for _ in range(self._size):
            self._last = (self._last + 1) % self._size
            address = str(IPv4Address(self._first + self._last))
            if self._last and address not in self._taken:
                self._taken.add(address)
                return address
        raise OSError(f"all of {self._size} addresses are in use")

    def give_back(self, address: str) -> None:
        self._taken.discard(address)


def _number(address: str) -> int | None:
    """Of an IPv4 address; None for what is none: a pod that waits has none, and anybody may have written it."""
    try:
        return int(IPv4Address(address))
    except AddressValueError:
        return None
