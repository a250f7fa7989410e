"""`python -m pumice.cluster.apiserver`: the API server alone, until it is interrupted. Tests and benchmarks run it so."""

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from pumice import garbage_collection
from pumice.cluster.apiserver.server import EVENT_TTL_S, Server
from pumice.cluster.apiserver.storage.journal_files import JournalError


async def _serve(arguments: argparse.Namespace) -> None:
    server = Server(
        host=arguments.host,
        port=arguments.port,
        plain=arguments.plain,
        data=arguments.data,
        recover=arguments.recover,
        event_ttl_s=arguments.event_ttl,
    )
    garbage_collection.collect_seldom()
    garbage_collection.settle()
    await server.start()
    if arguments.kubeconfig:
        server.kubeconfig(arguments.kubeconfig)
    print(server.url, flush=True)
    serving = asyncio.create_task(server.until_broken())
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, serving.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pumice.cluster.apiserver", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--plain", action="store_true", help="HTTP without TLS, on loopback only")
    parser.add_argument("--data", type=Path, help="directory of the journal; without it everything is forgotten at the end")
    parser.add_argument("--recover", action="store_true", help="go on without what is damaged in the journal, which is kept aside")
    parser.add_argument("--event-ttl", type=float, default=EVENT_TTL_S, metavar="SECONDS", help="how long events are kept (3600)")
    parser.add_argument("--kubeconfig", type=Path, help="file to write")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(parser.parse_args()))
    except JournalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
