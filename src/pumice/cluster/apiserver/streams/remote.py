"""What reaches into containers: commands of exec and attach, and logs that are followed.

`Containers` answers for the containers of pods: the server itself runs none, and no process of the machine is ever started. A command is
served on a wire (wires.py); ports are in forwarding.py.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qs

import msgspec

from pumice.api import Object
from pumice.api.field_selectors import FieldTerm
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.streams.wires import SocketWire, SpdyWire
from pumice.http import spdy
from pumice.http.messages import Pipe, Request


class Process(Protocol):
    """What runs in a container for one request."""

    def start(self, out: Callable[[bytes, bool], None], done: Callable[[int], None]) -> None:
        """Begin. `out` takes what is written, and whether that is an error; `done` the exit code."""

    def stdin(self, data: bytes) -> None: ...

    def stdin_ended(self) -> None: ...

    def stop(self) -> None: ...


class Containers(Protocol):
    def log(self, pod: Object, container: str, query: dict[str, str]) -> str: ...

    def run(
        self, store: Store, issue: Callable[[Object], str], pod: Object, container: str, command: list[str], tty: bool, has_stdin: bool
    ) -> Process:
        """A command in a container; without words the main process. `issue` makes a token for the pod, as a volume asks for it."""

    def page(self, pod: Object, port: int, asked: bytes) -> bytes:
        """The answer to an HTTP request to a port, whose head is `asked`. Raises ConnectionRefusedError."""


class NoContainers:
    """The containers of a server without kubelets: there are none."""

    def log(self, pod: Object, container: str, query: dict[str, str]) -> str:
        return ""

    def run(
        self, store: Store, issue: Callable[[Object], str], pod: Object, container: str, command: list[str], tty: bool, has_stdin: bool
    ) -> Process:
        raise status.bad_request("this server has no kubelets, so no containers to speak to")

    def page(self, pod: Object, port: int, asked: bytes) -> bytes:
        raise ConnectionRefusedError


class Command:
    """What a client asks for by exec or attach, as its query says it."""

    def __init__(self, request: Request) -> None:
        query = parse_qs(request.target.partition("?")[2], keep_blank_values=True)
        self.words = query.get("command", [])
        self.tty = request.flag("tty")
        self.channels = {name for name in ("stdin", "stdout", "stderr") if request.flag(name)}


def outcome(code: int) -> Object:
    """The Status that ends a command, for the error channel."""
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSED = 0, 1, 2, 3, 4, 255  #: channels of a command over WebSocket
COMMAND_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io")


class SocketCommand(SocketWire):
    """A command over WebSocket: the first byte of a message is the number of its channel."""

    def __init__(self, request: Request, protocol: str, command: Command, process: Process) -> None:
        super().__init__(request, protocol)
        self._is_first = protocol == "channel.k8s.io"  #: of which the error channel has text, and nothing when all is well
        self._command = command
        self._process = process

    def start(self, pipe: Pipe) -> None:
        super().start(pipe)
        self._process.start(self._out, self._done)

    def stop(self) -> None:
        super().stop()
        self._process.stop()

    def message(self, data: bytes) -> None:
        if data[0] == STDIN and len(data) > 1:
            self._process.stdin(data[1:])
        elif data == bytes((CLOSED, STDIN)):
            self._process.stdin_ended()

    def _out(self, data: bytes, is_error: bool) -> None:
        if ("stderr" if is_error else "stdout") in self._command.channels:
            self.write(bytes((STDERR if is_error else STDOUT,)) + data)

    def _done(self, code: int) -> None:
        status = outcome(code)
        if not self._is_first:
            self.write(bytes((ERROR,)) + msgspec.json.encode(status))
        elif code:
            self.write(bytes((ERROR,)) + status["message"].encode())
        self.end()


class SpdyCommand(SpdyWire):
    """A command over SPDY: the client opens a stream for each of its channels; with the last one the command begins."""

    def __init__(self, protocol: str, command: Command, process: Process) -> None:
        super().__init__(protocol)
        self._process = process
        self._wanted = {"error", *command.channels} | ({"resize"} if command.tty else set())
        self._streams: dict[str, int] = {}
        self._begun = False
        self._early: list[spdy.Event] = []  #: what came on streams before the command began

    def stop(self) -> None:
        super().stop()
        self._process.stop()

    def happened(self, event: spdy.Event) -> None:
        if isinstance(event, spdy.Opened):
            self._streams[event.headers.get("streamtype", "")] = event.stream
            self.write(self.frames.reply(event.stream))
            if not self._begun and self._wanted <= self._streams.keys():
                self._begun = True
                self._process.start(self._out, self._done)
                for one in self._early:
                    self.happened(one)
        elif not self._begun:
            self._early.append(event)
        elif event.stream == self._streams.get("stdin"):
            if isinstance(event, spdy.Data):
                self._process.stdin(event.data)
            else:
                self._process.stdin_ended()

    def _out(self, data: bytes, is_error: bool) -> None:
        stream = self._streams.get("stderr" if is_error else "stdout")
        if stream is not None:
            self.write(self.frames.data(stream, data))

    def _done(self, code: int) -> None:
        # until version 4 a command that ended well says nothing on the error channel
        text = msgspec.json.encode(outcome(code)) if code else b""
        for name in ("stdout", "stderr", "error"):
            if name in self._streams:
                self.write(self.frames.data(self._streams[name], text if name == "error" else b"", last=True))
        self.end()


class Following:
    """The log of a container from now on: each new part is sent, until the container has ended or its pod is gone."""

    def __init__(self, store: Store, pod: Object, log: Callable[[Object], str], ended: Callable[[Object], bool]) -> None:
        self._store = store
        self._pod = pod
        self._log = log
        self._ended = ended
        self._sent = ""
        self._send: Callable[[bytes], None] = lambda data: None
        self._done: Callable[[], None] = lambda: None
        name = FieldTerm(("metadata", "name"), True, pod["metadata"]["name"])
        self._watch = store.watch("pods", pod["metadata"]["namespace"], fields=(name,))

    def start(self, send: Callable[[bytes], None], done: Callable[[], None]) -> None:
        self._send, self._done = send, done
        self._show(self._pod)
        self._watch.rouse_with(self._wake)
        if self._ended(self._pod):
            done()

    def stop(self) -> None:
        self._store.unwatch("pods", self._watch)

    def _wake(self) -> None:
        asyncio.get_running_loop().call_soon(self._on_progress)

    def _on_progress(self) -> None:
        for kind, pod in self._watch.objects():
            self._show(pod)
            if kind == "DELETED" or self._ended(pod):
                self._done()
                return

    def _show(self, pod: Object) -> None:
        text = self._log(pod)
        if text != self._sent:
            self._send(text.removeprefix(self._sent).encode())
            self._sent = text


class LogStream:
    """A log that is followed, as an answer."""

    content_type = "text/plain; charset=utf-8"
    version = 0

    def __init__(self, following: Following) -> None:
        self._following = following

    def start(self, pipe: Pipe) -> None:
        self._following.start(pipe.send, pipe.finish)

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        self._following.stop()


LOG_PROTOCOLS = ("binary.k8s.io", "")


class SocketLog(SocketWire):
    """A log over WebSocket: each message is a piece of it."""

    def __init__(self, request: Request, protocol: str, following: Following) -> None:
        super().__init__(request, protocol)
        self._following = following

    def start(self, pipe: Pipe) -> None:
        super().start(pipe)
        self._following.start(self.write, self.end)

    def stop(self) -> None:
        super().stop()
        self._following.stop()

    def message(self, data: bytes) -> None:
        """What a client says is not heard."""


class Attached:
    """The main process of a container, to which a client is attached: what it logs is shown, and what it is told it repeats."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._out: Callable[[bytes, bool], None] = lambda data, is_error: None

    def start(self, out: Callable[[bytes, bool], None], done: Callable[[int], None]) -> None:
        self._out = out
        self._following.start(lambda data: out(data, False), lambda: done(0))

    def stdin(self, data: bytes) -> None:
        self._out(data, False)

    def stdin_ended(self) -> None:
        pass

    def stop(self) -> None:
        self._following.stop()


def container_of(pod: Object, wanted: str) -> str:
    """The name of the container that a request is about. Raises StatusError."""
    spec: dict[str, Any] = pod["spec"]
    names = [each["name"] for field in ("containers", "initContainers", "ephemeralContainers") for each in spec.get(field) or ()]
    chosen = wanted or (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container") or names[0]
    if chosen not in names:
        raise status.bad_request(f"container {chosen} is not valid for pod {pod['metadata']['name']}")
    return str(chosen)


def state_of(pod: Object, container: str) -> Object:
    """The state of a container: a dict with the key waiting, running or terminated; empty if it has none yet."""
    found = pod.get("status") or {}
    lists = (found.get(field) or () for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"))
    state: Object = next((each.get("state") or {} for entries in lists for each in entries if each["name"] == container), {})
    return state


def must_run(pod: Object, container: str) -> None:
    """Raises StatusError if nobody can speak to the container."""
    name, phase = pod["metadata"]["name"], (pod.get("status") or {}).get("phase")
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {name} does not have a host assigned")
    if phase in ("Succeeded", "Failed"):
        raise status.bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    if "running" not in state_of(pod, container):
        text = f'unable to upgrade connection: container not found ("{container}")'
        raise status.StatusError(404, "NotFound", text, {})
