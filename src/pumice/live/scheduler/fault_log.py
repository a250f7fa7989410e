"""Faults of ours in what is done beside the cycles: nothing else is stopped by one, and each is logged once."""

from __future__ import annotations

from logging import Logger


class FaultLog:
    """Whatever went wrong, the first time that it did."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._told: set[str] = set()

    def exception(self, error: Exception, message: str, *arguments: object) -> None:
        fault = f"{type(error).__name__}: {error}"
        if fault not in self._told:
            self._told.add(fault)
            self._log.error(message, *arguments, exc_info=error)
