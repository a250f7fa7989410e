"""What simulated containers answer when somebody speaks to them: a shell, the log of their pod's life, and a page on their ports.

It is there so that tools go on that look into a container, copy a file or probe a port, not to run anybody's program.
"""

import posixpath
from collections import OrderedDict
from collections.abc import Callable

from pumice.api import Object, name_of, namespace_of, spec_of, uid_of
from pumice.cluster.apiserver.remote import Attached, Following, state_of
from pumice.cluster.apiserver.store import Store
from pumice.cluster.nodes.container_files import Issue, environment, hostname, mounted
from pumice.cluster.nodes.pod_life import log_of
from pumice.cluster.nodes.shell import MOST_WRITTEN, Exit, Shell
from pumice.cluster.nodes.shell_words import WORDS

MOST_CONTAINERS = 256  #: in which something that was written is kept; of the others it is forgotten
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


PAGE = """<!doctype html><title>{pod}</title><h1>{pod}</h1>
<p>A simulated container of pod {namespace}/{pod} on node {node}, port {port}.</p>
"""


class SimulatedContainers:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._written: OrderedDict[tuple[str, str], dict[str, bytes]] = OrderedDict()

    def log(self, pod: Object, container: str, query: dict[str, str]) -> str:
        return log_of(pod, container, state_of(pod, container), query)

    def run(
        self, store: Store, issue: Issue, pod: Object, container: str, command: list[str], tty: bool, has_stdin: bool
    ) -> ShellProcess | Attached:
        if not command:
            return Attached(
                Following(store, pod, lambda pod: self.log(pod, container, {}), lambda pod: "terminated" in state_of(pod, container))
            )
        fields = ("containers", "initContainers", "ephemeralContainers")
        spec = next(each for field in fields for each in spec_of(pod).get(field) or () if each["name"] == container)
        files = _system(pod) | mounted(pod, spec, store.find, issue)
        shell = Shell(WORDS, environment(pod, spec, store.find), files, self._kept(pod, container), self._now)
        shell.folder = spec.get("workingDir") or "/"
        return ShellProcess(shell, command, tty, has_stdin)

    def _kept(self, pod: Object, container: str) -> dict[str, bytes]:
        """What was written in the container; the oldest of too many containers forget."""
        key = (uid_of(pod), container)
        kept = self._written.setdefault(key, {})
        self._written.move_to_end(key)
        if len(self._written) > MOST_CONTAINERS:
            self._written.popitem(last=False)
        return kept

    def page(self, pod: Object, port: int, asked: bytes) -> bytes:
        stated = {each["containerPort"] for container in spec_of(pod)["containers"] for each in container.get("ports") or ()}
        if stated and port not in stated:
            raise ConnectionRefusedError
        head = asked.split(b" ", 1)[0] == b"HEAD"
        body = PAGE.format(pod=name_of(pod), namespace=namespace_of(pod), node=spec_of(pod).get("nodeName"), port=port).encode()
        lines = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
        return lines.encode() + (b"" if head else body)


def _system(pod: Object) -> dict[str, bytes]:
    name = hostname(pod)
    return {"/etc/hostname": f"{name}\n".encode(), "/etc/hosts": f"127.0.0.1 localhost\n127.0.0.1 {name}\n".encode(), "/tmp/": b""}
