"""The wires on which clients reach into containers: WebSocket and SPDY, each as an answer that takes the connection over."""

from pumice.cluster.apiserver import status
from pumice.http import spdy, websocket
from pumice.http.messages import Pipe, Request, Takeover


def offered(request: Request, header: str) -> list[str]:
    return [each.strip() for each in request.headers.get(header, "").split(",") if each.strip()]


def wire_of(request: Request, supported: tuple[str, ...], tunnels: tuple[str, ...] = ()) -> tuple[str, str]:
    """The kind of wire that a request wants, "websocket" or "spdy", and the protocol on it. Raises StatusError."""
    upgrade = request.headers.get("upgrade", "").lower()
    if upgrade == "websocket":
        wanted = offered(request, "sec-websocket-protocol")
        known = next((each for each in wanted if each in (*supported, *tunnels)), "")
        if not wanted and "" in supported:
            return upgrade, ""
    elif upgrade == "spdy/3.1":
        wanted = offered(request, "x-stream-protocol-version")
        known, upgrade = next((each for each in wanted if each in supported), ""), "spdy"
    else:
        raise status.bad_request("Upgrade request required")
    if not known:
        text = f"unable to upgrade: unable to negotiate protocol: client supports {wanted}, server accepts {[*supported, *tunnels]}"
        raise status.StatusError(403, "Forbidden", text, {})
    return upgrade, known


class SocketWire(Takeover):
    """WebSocket as a wire: `message` gets each message, `write` sends one."""

    def __init__(self, request: Request, protocol: str) -> None:
        key = websocket.accepted(request.headers.get("sec-websocket-key", ""))
        chosen = (("Sec-WebSocket-Protocol", protocol),) if protocol else ()
        self.headers = (("Upgrade", "websocket"), ("Sec-WebSocket-Accept", key), *chosen)
        self._messages = websocket.Messages()
        self._pipe: Pipe | None = None

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def stop(self) -> None:
        self._pipe = None

    def message(self, data: bytes) -> None:
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        if self._pipe is not None:
            self._pipe.send(websocket.frame(data))

    def end(self, code: int = websocket.NORMAL) -> None:
        if self._pipe is not None:
            self._pipe.send(websocket.closing(code))
            self._pipe.finish()

    def received(self, data: bytes) -> None:
        try:
            for kind, body in self._messages.read(data):
                if self._pipe is None:
                    return
                if kind == websocket.CLOSE:
                    self.end()
                elif kind == websocket.PING:
                    self._pipe.send(websocket.frame(body, websocket.PONG))
                elif kind != websocket.PONG and body:
                    self.message(body)
        except websocket.BadFrame as error:
            self.end(error.code)


class SpdyWire(Takeover):
    """SPDY as a wire: `happened` gets what happens on its streams."""

    def __init__(self, protocol: str) -> None:
        self.headers = (("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", protocol))
        self.frames = spdy.Frames()
        self._pipe: Pipe | None = None

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def stop(self) -> None:
        self._pipe = None

    def happened(self, event: spdy.Event) -> None:
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        if self._pipe is not None:
            self._pipe.send(data)

    def end(self) -> None:
        if self._pipe is not None:
            self._pipe.send(self.frames.going_away())
            self._pipe.finish()

    def received(self, data: bytes) -> None:
        try:
            for event in self.frames.read(data):
                self.happened(event)
        except spdy.BadSpdyFrame:
            self.end()
            return
        if self.frames.answers:
            self.write(bytes(self.frames.answers))
            self.frames.answers.clear()
