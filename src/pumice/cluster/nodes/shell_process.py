"""A command that runs in a simulated container, as the client on the other end of the connection sees it."""

import posixpath
from collections.abc import Callable

from pumice.cluster.nodes.shell import MOST_WRITTEN, Exit, Shell

SHELLS = ("sh", "bash", "ash")


class ShellProcess:
    """A command in a container. One that reads waits for the end of its input; a shell on a terminal answers line by line."""

    def __init__(self, shell: Shell, words: list[str], tty: bool, has_stdin: bool) -> None:
        self._shell = shell
        self._words = words
        self._reads = has_stdin
        self._is_session = tty and has_stdin and len(words) == 1 and posixpath.basename(words[0]) in SHELLS
        self._read = bytearray()
        self._out: Callable[[bytes, bool], None] = lambda data, is_error: None
        self._done: Callable[[int], None] = lambda code: None

    def start(self, out: Callable[[bytes, bool], None], done: Callable[[int], None]) -> None:
        self._out, self._done = out, done
        if self._is_session:
            out(b"# ", False)
        elif not self._reads:
            self.stdin_ended()

    def stdin(self, data: bytes) -> None:
        if not self._is_session:
            self._read += data[: max(0, 4 * MOST_WRITTEN - len(self._read))]
            return None
        for byte in data:
            if byte in b"\r\n":
                self._typed()
            elif byte == 4:
                return self._done(0)
            elif byte in b"\x7f\b":
                if self._read:
                    del self._read[-1]
                    self._out(b"\b \b", False)
            elif len(self._read) < 4096:
                self._read.append(byte)
                self._out(bytes((byte,)), False)
        return None

    def _typed(self) -> None:
        """A line was typed on the terminal."""
        line = self._read.decode(errors="replace")
        self._read.clear()
        self._shell.begin()
        ended = False
        try:
            ran = self._shell.line(line)
        except Exit as end:
            ran, ended = end.ran, True
        self._out(b"\r\n" + (ran.out + ran.err).replace(b"\n", b"\r\n") + (b"" if ended else b"# "), False)
        if ended:
            self._done(ran.code)

    def stdin_ended(self) -> None:
        try:
            ran = self._shell.run(self._words, bytes(self._read))
        except Exit as end:
            ran = end.ran
        if ran.out:
            self._out(ran.out, False)
        if ran.err:
            self._out(ran.err, True)
        self._done(ran.code)

    def stop(self) -> None:
        self._done = lambda code: None
