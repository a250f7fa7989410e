"""A whole cluster in this process, until it is ended: the control plane of `cluster`, and the scheduler of `live` connected to it."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import msgspec

from pumice.api import InputError
from pumice.api.defaults import KUBE_BATCH_NAME
from pumice.api.files import file_bytes
from pumice.cli.create_in_order import create
from pumice.cli.embedded_warnings import warn_of_simulated_operators, warn_of_strange_schedulers, warn_of_what_never_fits
from pumice.cli.live_configuration import CONFIGURATION_PATH, ConfigurationInForce
from pumice.cli.tables import say
from pumice.cli.up_options import UpRequest
from pumice.cluster.apiserver import Server, import_cluster
from pumice.cluster.apiserver.discovery import version_of
from pumice.cluster.apiserver.storage.journal_files import JournalError
from pumice.cluster.clock import RunningClock
from pumice.cluster.clock_setting import ClockSetting
from pumice.cluster.control_plane import ControlPlane, last_instant
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.live.clock import WallClock
from pumice.live.scheduler.background_answers import FitQuestions
from pumice.live.scheduler.config_reloader import Reloader
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.loop import Keeper, Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.single_writer import on_a_thread
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.feature_gates import DEFAULT as DEFAULT_RELEASE
from pumice.scheduler.framework.policy import Policy

CYCLE_S = 0.25  #: real seconds between cycles, if nothing but time has passed


class Embedded:
    """A running cluster. `plane.store` is its API without HTTP."""

    def __init__(self, plane: ControlPlane, scheduler: Scheduler) -> None:
        self.plane = plane
        self.scheduler = scheduler

    @property
    def server(self) -> Server:
        return self.plane.server


@asynccontextmanager
async def running(wanted: UpRequest) -> AsyncIterator[Embedded]:
    """Within the block, all parts of the cluster run. An error of the scheduler ends the block. Raises OSError if the address is taken."""
    _refuse_taken(wanted.host, wanted.port)
    clock = RunningClock(time.time(), wanted.speed)
    where = {"host": wanted.host, "port": wanted.port, "plain": wanted.plain, "data": wanted.data, "recover": wanted.recover}
    try:
        server = Server(clock=clock.now, containers=SimulatedContainers(clock.now), gates=wanted.release.gates, **where)  # type: ignore[arg-type]
    except (JournalError, OSError) as error:
        raise InputError(str(error), where="--data") from None
    if wanted.release.minor != DEFAULT_RELEASE.minor:
        version = version_of(wanted.release.minor)
        server.documents["/version"], server.store.version = lambda: msgspec.json.encode(version), version["gitVersion"]
    if wanted.archive is not None:
        _begin_with(server, wanted.archive)
    clock.not_before(last_instant(server.store))
    plane = ControlPlane(clock, server, wanted.stages)
    ClockSetting(plane.store, clock)
    schedulers = (*schedulers_of(wanted.policy), KUBE_BATCH_NAME)
    plane.store.admission.add([warn_of_strange_schedulers(schedulers), warn_of_simulated_operators()])
    plane.add_nodes(wanted.nodes)
    create(plane, wanted.given, lambda text: say(text, err=True))
    await plane.start()
    options = Options(schedulers=schedulers, period_s=max(1.0, CYCLE_S * wanted.speed))
    try:
        with _recorded(wanted.record, options, clock) as box:
            policy, world, transport = wanted.policy, HttpWorld(acts=True), plane.transport("pumice")
            scheduler = Scheduler(transport, policy, options, clock, world=world, where=on_a_thread, keeper=box)
            plane.store.admission.add([warn_of_what_never_fits(FitQuestions(scheduler).glance)])
            async with asyncio.TaskGroup() as tasks:
                deciding = tasks.create_task(scheduler.run())
                keeping = tasks.create_task(server.until_broken())
                await scheduler.synced.wait()
                server.documents[CONFIGURATION_PATH] = lambda: msgspec.json.encode(
                    ConfigurationInForce(wanted.configured, list(scheduler.policy.texts), wanted.plugins_dir)
                )
                following = [tasks.create_task(reloader.run()) for reloader in _reloaders(wanted, scheduler)]
                yield Embedded(plane, scheduler)
                for task in (deciding, keeping, *following):
                    task.cancel()
    except ExceptionGroup as group:
        first = group.exceptions[0]
        raise InputError(str(first), where="--data") if isinstance(first, JournalError) else first from None
    finally:
        await plane.stop()


def _refuse_taken(host: str, port: int) -> None:
    """Raise OSError if the address is taken, before anything is written to --data."""
    if port:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()


def _recorded(folder: str, options: Options, clock: RunningClock) -> AbstractContextManager[Keeper | None]:
    """A context with the black box that writes into the folder; with None if no folder is given. Raises InputError."""
    if not folder:
        return nullcontext()
    from pumice.live.scheduler.black_box import black_box

    return black_box(folder, options, clock.now)


def _reloaders(wanted: UpRequest, scheduler: Scheduler) -> Iterator[Reloader]:
    """One reloader for each file of --conf."""
    if wanted.load is None:
        return
    for path in wanted.conf:

        def adopt(policy: Policy, path: Path = path) -> None:
            scheduler.adopt(policy)
            say(f"{path}: in force from now on", err=True)

        yield Reloader(path, wanted.load, adopt, lambda error: None, WallClock())


def _begin_with(server: Server, archive: Path) -> None:
    """Import the cluster of the archive into the empty store. Raises InputError."""
    if any(server.store.all("nodes")):
        raise InputError("holds a cluster already, which would be lost; --import wants a directory of its own", where="--data")
    import_cluster(server.store, file_bytes(archive), where=str(archive))
