"""`pumice up`: a whole batch cluster in one process, for kubectl and all other clients of the Kubernetes API."""

from __future__ import annotations

import asyncio
import errno
import logging
import shlex
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice import garbage_collection
from pumice.api import InputError
from pumice.api.plural import counted
from pumice.cli.data_dir import DataDir, own_name
from pumice.cli.detached import Detached, detach
from pumice.cli.number_ranges import Finite
from pumice.cli.tables import say
from pumice.escaped_text import shown
from pumice.http.watchdog import Watchdog

if TYPE_CHECKING:
    from pumice.cli.embedded import Embedded
    from pumice.page.server import PageServer

PORT = 7443
PAGE_PORT = 7480
NODES = "4x8gpu"
#: a terminal that is closed sends SIGHUP; nohup has it ignored
ENDINGS = (signal.SIGINT, signal.SIGTERM, *({signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL else ()))
TO_TRY = ("kubectl get nodes", "kubectl create deployment web --image=web --replicas=3", "kubectl get pods -o wide")
TO_TRY_WITHOUT_KUBECTL = ("get nodes", "job run --name train --replicas 4 --min 4", "get pods")
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option(
    "--nodes", help=f"Pools of nodes: 100x8gpu, 3x4cpu, 2x8gpu:64cpu:512Gi, separated by commas. Default: {NODES}, if no file has any."
)
@click.option(
    "-f", "files", type=click.Path(), multiple=True, help="A file of objects to begin with: nodes, queues, anything. May be repeated."
)
@click.option("--speed", type=Finite(0, 1_000_000), default=1.0, show_default=True, help="How much faster than the wall clock.")
@click.option("--pause", is_flag=True, help="The clock stands still at first.")
@click.option("--stages", type=click.Path(path_type=Path), help="What simulated kubelets do with pods. Default: built in.")
@click.option(
    "--conf", type=click.Path(), multiple=True, help="A scheduler configuration, of Volcano or kube-scheduler; one of each may be given."
)
@click.option("--plugins-dir", type=click.Path(), help="A folder of Python files with plugins.")
@click.option("--kubernetes-version", help="The release of Kubernetes, such as 1.37. Default: 1.36, or 1.37 with --feature-gates.")
@click.option("--feature-gates", default="", help="Its feature gates, such as GenericWorkload=true: docs/kube-scheduler.md.")
@click.option("--data", type=FOLDER, help="Keep the cluster in this directory. Default: it is forgotten at the end.")
@click.option("--recover", is_flag=True, help="Go on without what is damaged in --data, where the damaged files are kept.")
@click.option("--import", "archive", type=click.Path(path_type=Path), help="Begin with the cluster that `pumice export` wrote.")
@click.option("--record", default="", metavar="DIR", help="Keep what the scheduler sees and decides in this folder: docs/recordings.md.")
@click.option("--prometheus", default="", metavar="URL", help="A Prometheus that reads its metrics: the page's past without --record.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), help=f"0 takes a free one. Default: {PORT}; 0 for a cluster with a name.")
@click.option(
    "--page-port",
    type=click.IntRange(0, 65535),
    help=f"Of the page that shows the cluster. Default: {PAGE_PORT}, or a free one if it is taken.",
)
@click.option("--no-page", is_flag=True, help="Serve no page.")
@click.option("--name", help="What the cluster is called: in kubeconfigs, by `pumice clusters` and `pumice down --name`. Default: pumice.")
@click.option("-d", "--detach", "detached", is_flag=True, help="Go on in the background; `pumice down` ends it.")
@click.option(
    "--submit",
    "submitted",
    type=click.Path(),
    help="A file of objects to create once all is up; what became of them is shown when their pods run.",
)
@click.option("--once", is_flag=True, help="End after what was submitted has been shown.")
def up(detached: bool, data: Path | None, name: str | None, once: bool, page_port: int | None, no_page: bool, **options: Any) -> None:
    """Start a batch cluster on this machine: API server, controllers, simulated nodes, scheduler."""
    place = DataDir(data, name)
    if options["port"] is None:
        options["port"] = 0 if name else PORT
    if place.holder() is not None:
        place.claim()
    with _endings_wait():
        child = detach(place) if detached else None
        if child is not None and child.is_parent:
            sys.exit(child.report())
        place.claim()
        try:
            if logging.lastResort is not None:
                logging.lastResort.setFormatter(ShownLog())
            with Watchdog():
                code = asyncio.run(_serve(place, data, options, once, child, () if once or no_page else _page_ports(page_port, name)))
        except OSError as error:
            raise _explained(error, options["host"], options["port"]) from None
        except Exception as error:
            if child is None or isinstance(error, InputError):
                raise
            traceback.print_exc()  # into the log, before `release` removes an empty log
            code = 1
        finally:
            place.release()
    sys.exit(code)


@contextmanager
def _endings_wait() -> Iterator[None]:
    """Signals that end us wait until handlers are set, so that none prevents the cleanup. Afterwards they are as they were before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ShownLog(logging.Formatter):
    """A line of the log as a terminal may get it: there are paths and names of others in it."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record))


async def _serve(
    place: DataDir, data: Path | None, options: dict[str, Any], once: bool, child: Detached | None, page_ports: Sequence[int]
) -> int:
    """Run the cluster from its start to its end, and return the exit code. The page is served at the first of its ports that is free."""
    began = time.perf_counter()
    ended = asyncio.Event()
    for name in ENDINGS:
        asyncio.get_running_loop().add_signal_handler(name, ended.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    garbage_collection.reads()
    from pumice.cli.clusters import merged
    from pumice.cli.embedded import running  # the engine takes half a second to import: not for --help
    from pumice.cli.up_options import wanted
    from pumice.cli.up_submit import submit

    asked = wanted(data, NODES, **options)
    async with running(asked) as cluster, _page(cluster, page_ports, asked.record, asked.prometheus) as page:
        if ended.is_set():
            return 0
        garbage_collection.collect_seldom()
        cluster.server.kubeconfig(place.kubeconfig, place.context)
        tell = child.say if child else say
        if page is not None:
            tell(f"The page: {page.acting_url}")
        nodes = sum(1 for _ in cluster.plane.store.all("nodes"))
        tell(_started(cluster.server.url, nodes, time.perf_counter() - began))
        if once:
            return await submit(cluster.plane, asked.submitted, tell, ended) if asked.submitted else 0
        with merged(place.kubeconfig, place.context, tell) as file:
            # the first who submits does not wait
            loading = asyncio.create_task(asyncio.to_thread(import_module, "pumice.answers.can_ever_run"))
            tell(_welcome(place, file, child is not None))
            code = await submit(cluster.plane, asked.submitted, tell, ended) if asked.submitted else 0
            if asked.submitted and not child and not ended.is_set():
                tell(f"\nThe cluster goes on. {_end(place, False)}")
            if child:
                child.let_go()
            await loading
            await ended.wait()
        return code


def _page_ports(asked: int | None, name: str | None) -> Sequence[int]:
    """The ports to try for the page. There can be many clusters with a name, so these take free ports."""
    if asked is not None:
        return (asked,)
    return (0,) if name else (PAGE_PORT, 0)


@asynccontextmanager
async def _page(cluster: Embedded, ports: Sequence[int], recordings: str, prometheus: str) -> AsyncIterator[PageServer | None]:
    """The server of the page, on the first port that is free; None without ports. Raises InputError if none is free."""
    if not ports:
        yield None
        return
    from pumice.page.server import PageServer

    async with AsyncExitStack() as stack:
        made = [
            PageServer(cluster.scheduler, f"127.0.0.1:{port}", cluster.server, recordings=recordings, prometheus=prometheus)
            for port in ports
        ]
        yield await _first_free(stack, made)


async def _first_free(stack: AsyncExitStack, pages: Sequence[PageServer]) -> PageServer:
    for page in pages:
        try:
            return await stack.enter_async_context(page)
        except OSError as error:
            why = error.strerror
    raise InputError(f"the port cannot be used: {why}; give another, or 0 for any that is free", where="--page-port")


def _started(url: str, nodes: int, seconds: float) -> str:
    return f"A cluster of {counted(nodes, 'node')} runs at {url}; it took {seconds:.1f} s to start.\n"


def _welcome(place: DataDir, merged_into: Path | None, detached: bool) -> str:
    """The text that suggests commands to try first; `pumice` commands if there is no kubectl."""
    to_try = list(TO_TRY) if shutil.which("kubectl") else [f"{own_name()} {words}" for words in TO_TRY_WITHOUT_KUBECTL]
    if merged_into is None:
        to_try.insert(0, f"export KUBECONFIG={shlex.quote(str(place.kubeconfig))}")
    commands = "\n".join(f"    {command}" for command in to_try)
    current = "" if merged_into is None else f'"{place.context}" is the current context of {merged_into} while it runs.\n\n'
    elsewhere = "" if detached else "This terminal is the cluster's; use another one for these, or start it with -d:\n\n"
    return f"{current}{elsewhere}{commands}\n\n{_end(place, detached)}\n"


def _end(place: DataDir, detached: bool) -> str:
    return f"`{place.down}` ends it; its log is {place.log}." if detached else f"Ctrl-C or `{place.down}` ends it."


def _explained(error: OSError, host: str, port: int) -> Exception:
    reasons: dict[int, Callable[[], str]] = {
        errno.EADDRINUSE: lambda: f"port {port} is taken by another program; give another, or 0 for any that is free",
        errno.EACCES: lambda: f"port {port} may not be used by this user; give one above 1023",
        errno.EADDRNOTAVAIL: lambda: f"{host} is no address of this machine",
    }
    if isinstance(error, socket.gaierror):
        return InputError(f'"{host}" is no address of this machine', where="--host")
    if error.errno not in reasons:
        return error
    return InputError(reasons[error.errno](), where="--host" if error.errno == errno.EADDRNOTAVAIL else "--port")
