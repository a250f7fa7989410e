"""Simulations on a Dask cluster, where the package distributed is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

from pumice.api.errors import InputError

PATIENCE_S = 10  #: for the scheduler to answer


class Playable(Protocol):
    """A simulation in words."""

    def play(self) -> dict[str, Any]: ...


P = TypeVar("P", bound=Playable)


def played_on_dask(works: Sequence[P], address: str) -> Iterator[tuple[P, dict[str, Any]]]:
    """As they are done. Raises InputError."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        told = "needs the package distributed; install it, or leave this out for the cores of this machine"
        raise InputError(told, where="--dask") from None
    try:
        client = distributed.Client(address, timeout=PATIENCE_S)
    except (OSError, ValueError) as error:
        raise InputError(f"nobody answers at {address}: {error}", where="--dask") from None
    with client:
        futures = {client.submit(work.play, pure=False): work for work in works}
        for future in distributed.as_completed(futures):
            yield futures[future], future.result()
