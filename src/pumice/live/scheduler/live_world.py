"""The world of a live scheduler: extenders over HTTP, and the measured usage of nodes, fetched in the background.

The section `metrics:` of the configuration says where usage is measured; it is read before each round, so a reload takes effect. If a
source fails the last measurements stay, and the engine ignores them once they are too old.
"""

import logging
from collections.abc import Callable, Mapping

from pumice.api import duration
from pumice.live.clock import Clock
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.usage_sources import UsageFailure, fetch
from pumice.scheduler.framework.world import NodeUsage

INTERVAL_S = 30.0
log = logging.getLogger(__name__)


class LiveWorld(HttpWorld):
    def __init__(self, clock: Clock, on_failure: Callable[[str, str], object] = lambda name, why: None) -> None:
        super().__init__(on_failure, acts=True)
        self._clock = clock
        self._usage: dict[str, NodeUsage] = {}

    def usage(self, node: str) -> NodeUsage | None:
        return self._usage.get(node)

    def measured(self, found: dict[str, NodeUsage]) -> None:
        """Take over a round of measurements. Older ones stay while they count."""
        now = self._clock.now()
        self._usage = {node: usage for node, usage in (self._usage | found).items() if usage.is_fresh(now)}

    async def run(self, section: Callable[[], Mapping[str, str]], change: Callable[..., None]) -> None:
        """Fetch usage again and again. `change` takes each round over between cycles, so that no cycle sees two rounds of measurements."""
        while True:
            metrics = section()
            if metrics.get("type") and metrics.get("address"):
                try:
                    change(self.measured, await fetch(metrics, self._clock.now()))
                except UsageFailure as error:
                    log.warning("usage of nodes was not measured: %s", error)
            await self._clock.sleep(_interval_s(metrics))


def _interval_s(metrics: Mapping[str, str]) -> float:
    try:
        return max(1.0, duration(metrics.get("interval", "")))
    except ValueError:
        return INTERVAL_S
