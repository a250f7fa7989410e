"""Waiting at the start until the cluster has been read, and saying what for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any

from pumice.kube.reflector import Reflector

TOLD_AFTER_S = 1.0
PAUSE_S = 0.01
log = logging.getLogger(__name__)


async def synced(needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]], timeout_s: float) -> None:
    """Wait until all have been read; for `others` no longer than the time-out, and not at all for what the role does not let us read."""
    loop = asyncio.get_running_loop()
    began, told = loop.time(), False
    while waits := _unread(needed, others if loop.time() - began < timeout_s else ()):
        if not told and loop.time() - began >= TOLD_AFTER_S:
            told = True
            log.info("waiting until these have been read: %s", ", ".join(map(_with_trouble, waits)))
        await asyncio.sleep(PAUSE_S)
    for reflector in others:
        if reflector.forbidden:
            log.info("our role does not let %s be read; we do without", reflector.scope.resource.plural)
        elif not reflector.synced.is_set():
            log.error("%s cannot be read and are left out for now: %s", reflector.scope.resource.plural, reflector.trouble)


def _unread(needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]]) -> list[Reflector[Any]]:
    missing = [reflector for reflector in needed if not reflector.synced.is_set()]
    return missing + [reflector for reflector in others if not reflector.synced.is_set() and not reflector.forbidden]


def _with_trouble(reflector: Reflector[Any]) -> str:
    plural = reflector.scope.resource.plural
    return f"{plural} ({reflector.trouble})" if reflector.trouble is not None else plural
