"""Who plays: this process, other processes on this machine, or a Dask cluster, where the package distributed is installed.

An interrupt (SIGINT) ends the other processes at once, and without a word, as only this one has something to say. So that this holds
while they start as well, they start with interrupts held up.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar

from pumice.api import InputError
from pumice.garbage_collection import collect_seldom

PATIENCE_S = 10  #: for Dask's scheduler to answer
INTERRUPT = frozenset([signal.SIGINT])


class Playable(Protocol):
    """A simulation, or something else to find out, that is described by plain values."""

    def play(self) -> Any: ...


P = TypeVar("P", bound=Playable)


class Crew:
    """Those who play simulations, for as long as a `with` block lasts. They are called when there is more than one to play."""

    def __init__(self, processes: int | None = None, dask: str | None = None) -> None:
        """`dask`: the address of a Dask cluster. Else `processes`, by default one for each core."""
        self._processes, self._dask = processes, dask
        self._stack = ExitStack()
        self._submit: Callable[..., Any] | None = None
        self._completed: Callable[..., Any] = iter

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def play(self, works: Sequence[P]) -> Iterator[tuple[P, Any]]:
        """Run the simulations, and yield each with its result as soon as it has finished. Raises InputError."""
        if not self._dask and self._submit is None and (self._processes == 1 or len(works) < 2):
            yield from ((work, work.play()) for work in works)
            return
        if self._submit is None:
            self._submit, self._completed = self._on_dask(self._dask) if self._dask else self._here()
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
        try:
            futures = {self._submit(work.play): work for work in works}
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
        for future in self._completed(futures):
            yield futures[future], future.result()

    def _here(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        import multiprocessing  # not needed for a single simulation
        from concurrent.futures import ProcessPoolExecutor, as_completed

        pool = ProcessPoolExecutor(self._processes, multiprocessing.get_context("spawn"), _begin)
        self._stack.callback(pool.shutdown, cancel_futures=True)
        return pool.submit, as_completed

    def _on_dask(self, address: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        try:
            distributed = import_module("distributed")
        except ImportError:
            message = "needs the package distributed; install it, or leave this out for the cores of this machine"
            raise InputError(message, where="--dask") from None
        try:
            client = distributed.Client(address, timeout=PATIENCE_S)
        except (OSError, ValueError) as error:
            raise InputError(f"nobody answers at {address}: {error}", where="--dask") from None
        return partial(self._stack.enter_context(client).submit, pure=False), distributed.as_completed


def _begin() -> None:
    """What a new process does first. Where the first one ignores interrupts, as in the background of a script, so do all."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    collect_seldom()
