"""What simulated containers answer when somebody speaks to them: a shell, the log of their pod's life, and a page on their ports.

It is there so that tools go on that look into a container, copy a file or probe a port, not to run anybody's program. The shell is loaded
for the first command.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from pumice.api import Object, name_of, namespace_of, spec_of, uid_of
from pumice.api.json_objects import field
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams.remote import Attached, Following, state_of

if TYPE_CHECKING:
    from pumice.cluster.nodes.container_files import Issue
    from pumice.cluster.nodes.shell_process import ShellProcess

MOST_CONTAINERS = 256  #: in which something that was written is kept; of the others it is forgotten

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
        from pumice.cluster.nodes.container_files import environment, mounted, system_files
        from pumice.cluster.nodes.shell import Shell
        from pumice.cluster.nodes.shell_process import ShellProcess
        from pumice.cluster.nodes.shell_words import WORDS

        fields = ("containers", "initContainers", "ephemeralContainers")
        spec = next(each for field in fields for each in spec_of(pod).get(field) or () if each["name"] == container)
        files = system_files(pod) | mounted(pod, spec, store.find, issue)
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


def log_of(pod: Object, container: str, state: Object, query: dict[str, str]) -> str:
    """The log of a container whose state is given. Of the query, `tailLines` counts."""
    lines = []
    begun = field(state, "running.startedAt") or field(state, "terminated.startedAt")
    if begun:
        lines.append(f"{begun} simulated container {container} of {pod['metadata']['name']} started on {pod['spec']['nodeName']}")
    end = state.get("terminated")
    if end:
        lines.append(f"{end['finishedAt']} ended with exit code {end['exitCode']}")
    last = query.get("tailLines", "")
    return "".join(f"{line}\n" for line in (lines[max(len(lines) - int(last), 0) :] if last.isdigit() else lines))
