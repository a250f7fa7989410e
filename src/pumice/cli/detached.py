"""`pumice up -d`: the parent process waits until the child reports that all parts are up, or why not; then it exits."""

import os
import signal
import sys

from pumice.cli.data_dir import DataDir
from pumice.cli.tables import say


class Detached:
    """One end of the pipe between parent and child."""

    def __init__(self, pipe: int, child: int) -> None:
        self._pipe = pipe
        self._child = child  #: 0 in the child

    @property
    def is_parent(self) -> bool:
        return self._child != 0

    def report(self) -> int:
        """In the parent: print what the child reports; return the exit code. Signals, blocked until here, end the child from here on."""
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
            with os.fdopen(self._pipe) as pipe:
                report = pipe.read()
        except KeyboardInterrupt:
            os.kill(self._child, signal.SIGTERM)
            os.waitpid(self._child, 0)
            raise
        say(report.removesuffix("\0"), nl=False)
        if report.endswith("\0"):
            return 0
        status = os.waitpid(self._child, 0)[1]
        return os.waitstatus_to_exitcode(status)

    def say(self, text: str) -> None:
        """In the child: send a line to the waiting parent."""
        os.write(self._pipe, f"{text}\n".encode())

    def let_go(self) -> None:
        """In the child: report that all parts are up, and detach from the parent."""
        os.write(self._pipe, b"\0")
        os.close(self._pipe)
        os.dup2(1, 2)


def detach(place: DataDir) -> Detached:
    """Fork. The child has its own session. Its output goes to the log; its errors go to the parent until it calls `let_go`."""
    place.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(write)
        return Detached(read, child)
    os.close(read)
    os.setsid()
    log = os.open(place.log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (write, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)
    return Detached(write, 0)
