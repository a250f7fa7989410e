"""At the start a program waits until the cluster has been read, and logs what it waits for."""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Any

from pumice.client.reflector import Reflector

WARN_AFTER_S = 1.0
PAUSE_S = 0.01
log = logging.getLogger(__name__)


async def synced(
    needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]], timeout_s: float, seldom: Collection[Reflector[Any]] = ()
) -> None:
    """Wait until all kinds have been read; for `others` at most the time-out, and not at all for kinds that our role may not read. That
    kinds in `seldom` cannot be read is not told."""
    loop = asyncio.get_running_loop()
    began, warned = loop.time(), False
    while waits := _unread(needed, (*others, *seldom) if loop.time() - began < timeout_s else ()):
        if not warned and loop.time() - began >= WARN_AFTER_S:
            warned = True
            level = logging.WARNING if any(reflector.forbidden for reflector in waits) else logging.INFO
            log.log(level, "waiting until these have been read: %s", ", ".join(map(_with_trouble, waits)))
        await asyncio.sleep(PAUSE_S)
    if forbidden := _plurals(reflector for reflector in others if reflector.forbidden):
        log.info("our role does not let these be read, and we do without: %s", forbidden)
    if absent := _plurals(reflector for reflector in (*needed, *others) if reflector.absent):
        log.info("this server does not have these, and we do without: %s", absent)
    for reflector in others:
        if not reflector.synced.is_set() and not reflector.forbidden:
            log.error("%s cannot be read and are left out for now: %s", reflector.scope.resource.plural, reflector.trouble)


def _plurals(reflectors: Iterable[Reflector[Any]]) -> str:
    return ", ".join(sorted(reflector.scope.resource.plural for reflector in reflectors))


def _unread(needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]]) -> list[Reflector[Any]]:
    missing = [reflector for reflector in needed if not reflector.synced.is_set()]
    return missing + [reflector for reflector in others if not reflector.synced.is_set() and not reflector.forbidden]


def _with_trouble(reflector: Reflector[Any]) -> str:
    plural = reflector.scope.resource.plural
    return f"{plural} ({reflector.trouble})" if reflector.trouble is not None else plural
