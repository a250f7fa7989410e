"""Faults and warnings that occur again and again are logged once, or a few times."""

import logging
from collections.abc import Hashable


class FaultLog:
    """Logs faults of ours in work beside the cycles, each of them once. Such a fault stops nothing else."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: set[str] = set()

    def exception(self, error: Exception, message: str, *arguments: object) -> None:
        fault = f"{type(error).__name__}: {error}"
        if fault not in self._logged:
            self._logged.add(fault)
            self._log.error(message, *arguments, exc_info=error)


ALIKE_LOGGED, ALIKE_WINDOW_S = 5, 600.0


class FirstOfMany:
    """Logs warnings of which many may be alike: the first of them in a while as warnings, the others for debugging only."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: dict[Hashable, tuple[float, int]] = {}  #: for each kind of warning, since when it was told how often

    def warning(self, alike: Hashable, now: float, message: str, *arguments: object) -> None:
        since, count = self._logged.get(alike, (now, 0))
        if now - since > ALIKE_WINDOW_S:
            since, count = now, 0
        self._logged[alike] = since, count + 1
        more = f" (others like it are told with -v=4 only, for {ALIKE_WINDOW_S / 60:.0f} minutes)" if count + 1 == ALIKE_LOGGED else ""
        self._log.log(logging.WARNING if count < ALIKE_LOGGED else logging.DEBUG, message + more, *arguments)
