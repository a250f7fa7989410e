"""`pumice record`: record what a scheduler of a live cluster would see into a folder, or copy existing recordings."""

import asyncio
from itertools import islice
from pathlib import Path

import click

from pumice.api import InputError
from pumice.api.files import file_bytes
from pumice.cli.inputs import warn
from pumice.cli.live_cluster import Remote, remote_options
from pumice.cli.tables import say
from pumice.cli.up_options import policy_of
from pumice.client.client import Client
from pumice.inputs.recording.anonymous import Anonymous
from pumice.inputs.recording.file_format import Hide, RecordingFile, Retention, as_it_is, entries, files_of
from pumice.live.clock import WallClock
from pumice.live.lifecycle import end_signal, first
from pumice.live.scheduler.black_box import black_box
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.policy import Policy

EVERY_S = 1.0  #: seconds between writes of new entries to the folder
AT_ONCE = 1000  #: entries that are copied in one write


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@remote_options
@click.option("--from", "source", type=click.Path(path_type=Path), help="Take over recordings, a file or a folder, in place of a cluster.")
@click.option("--anonymise", "key_file", type=click.Path(path_type=Path), metavar="KEYFILE", help="Hash names with what is in this file.")
@click.option("--size", type=click.IntRange(1), default=256, show_default=True, help="MiB in the folder; the oldest files go.")
@click.option("--conf", type=click.Path(), multiple=True, help="The configuration to record with it. Default: built in.")
def record(remote: Remote, out: Path, source: Path | None, key_file: Path | None, size: int, conf: tuple[str, ...]) -> None:
    """Record what a scheduler of a live cluster would see into the folder OUT, until Ctrl-C. Nothing is written to the cluster."""
    hide = Anonymous(_key(key_file)).entry if key_file is not None else as_it_is
    if source is not None:
        take_over(source, out, hide)
        return
    policy = policy_of(conf)
    remote.run(lambda client: follow(client, policy, out, Retention.of_folder(size << 20), hide))


def _key(path: Path) -> bytes:
    """The key that is in the file. Raises InputError."""
    key = file_bytes(path)
    if len(key) < 16:
        raise InputError("is too short for a key; make one with `head -c 32 /dev/urandom`", where=str(path))
    return key


async def follow(client: Client, policy: Policy, out: Path, retention: Retention, hide: Hide) -> None:
    """Record until a signal ends it. Nothing here writes to the cluster, and the client would refuse a write."""
    options, clock = Options(schedulers=schedulers_of(policy)), WallClock()
    with black_box(str(out), options, clock.now, retention, hide) as box, end_signal() as ended:
        assert box is not None
        scheduler = Scheduler(client.fenced(lambda: False), policy, options, clock, keeper=box)

        async def keep() -> None:
            say(f"recording to {out}; Ctrl-C ends it", err=True)
            while True:
                box.hand_over(policy)
                await asyncio.sleep(EVERY_S)

        await first(scheduler.run(keep), ended.wait())
        box.hand_over(policy)


def take_over(source: Path, out: Path, hide: Hide) -> None:
    """Copy recordings to the folder `out`, file by file, with each entry changed by `hide`. Raises InputError."""
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in files_of(source, warn):
        try:
            file = RecordingFile(out / path.name)
        except FileExistsError:
            raise InputError("is there already; give another folder", where=str(out / path.name)) from None
        taken = map(hide, entries(path, warn))
        while batch := list(islice(taken, AT_ONCE)):
            file.write(batch)
        file.close()
