"""One replica of a scheduler that runs beside another one and writes nothing, from its first request to its last."""

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path

from pumice import __version__
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.inputs.recording.state_file import dump
from pumice.live.clock import WallClock
from pumice.live.health_and_metrics import insights, listeners, probes
from pumice.live.lifecycle import end_signal, first
from pumice.live.scheduler.config_reloader import Reloader
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.scheduler_replica import HUNG_S, SchedulerSettings, sizes_in_words
from pumice.live.scheduler.shadow import Shadow
from pumice.live.scheduler.shadow_comparison import Comparison, since
from pumice.live.scheduler.single_writer import on_a_thread

log = logging.getLogger(__name__)


class ShadowReplica:
    """`pumice scheduler --shadow` as a process, from its first request to its last. All its requests only read."""

    def __init__(self, access: Access, settings: SchedulerSettings) -> None:
        self._access = access
        self._settings = settings
        self._clock = WallClock()
        self._shadow: Shadow | None = None

    async def serve(self) -> Comparison:
        """Run until SIGTERM or SIGINT, and return what was seen."""
        settings, policy = self._settings, self._settings.load()
        named = ", ".join(settings.options.schedulers), self._access.server, settings.conf_path or "the built-in configuration"
        log.info("pumice %s compares its decisions about the pods of %s at %s, by %s, and writes nothing", __version__, *named)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._access))
            readonly = client.fenced(lambda: False)  # any write would be held back; none is expected
            shadow = self._shadow = Shadow(
                readonly, policy, settings.options, self._clock, world=HttpWorld(), where=on_a_thread, when_synced=self._read
            )
            shown = {**insights(self), "/debug/shadow": shadow.served}
            for server in listeners(settings.metrics_address, shown, settings.healthz_address, probes(self), settings.tls):
                await stack.enter_async_context(server)
            ended = stack.enter_context(end_signal())
            await first(shadow.run(), self._reload(shadow), ended.wait())
        began = shadow.comparison.since
        log.info("%s", since(Comparison(began, began), shadow.comparison, self._clock.now() - began))
        return shadow.comparison

    def _read(self) -> None:
        assert self._shadow is not None
        log.info("the cluster was read: %s; the comparison begins", sizes_in_words(self._shadow.cluster))

    async def _reload(self, shadow: Shadow) -> None:
        """Follow the configuration file, so that the comparison is with what the other scheduler reads."""
        settings = self._settings
        if settings.conf_path:
            await Reloader(Path(settings.conf_path), settings.load, shadow.adopt, lambda error: None, self._clock).run()
        await asyncio.Event().wait()

    # ---- HTTP endpoints

    def alive(self) -> str:
        began = self._shadow.deciding_since if self._shadow is not None else None
        return f"a cycle has not ended for {HUNG_S:.0f} s" if began is not None and self._clock.now() - began > HUNG_S else ""

    def ready(self) -> str:
        reading = self._shadow is None or not self._shadow.synced.is_set()
        return self.alive() or ("the cluster is being read" if reading else "")

    async def metrics(self) -> str:
        assert self._shadow is not None
        await self._shadow.look(self._shadow.metrics.measure)
        return self._shadow.metrics.page() + self._shadow.compared()

    async def state(self) -> bytes:
        assert self._shadow is not None
        return await self._shadow.look(lambda cluster: dump(cluster, self._settings.configuration()))
