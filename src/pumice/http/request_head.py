"""The head of a request. A request of HTTP/1.1 names one host."""

import re

from pumice.http.parser import Head, Malformed

_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=@\[\]_~]*\Z")


class RequestHead:
    """What the head of a request says, and how its body is sent. Raises Malformed."""

    __slots__ = ("framed", "framing", "headers", "keep_alive", "method", "target")

    def __init__(self, head: Head) -> None:
        parts = head.first.split(" ")
        if len(parts) != 3 or parts[2] not in ("HTTP/1.0", "HTTP/1.1") or not _METHOD.match(parts[0]) or not parts[1]:
            raise Malformed(400, "not an HTTP/1.1 request")
        self.method, self.target, version = parts
        self.headers = head.headers
        host = self.headers.get("host")
        if host is None and version == "HTTP/1.1":
            raise Malformed(400, "the header Host is missing")
        if not _HOST.match(host or ""):
            raise Malformed(400, "the header Host is malformed")
        self.framing = head.framing(version, unstated=0)
        self.framed = version != "HTTP/1.0"  #: the client understands answers in chunks
        connection = self.headers.get("connection", "").lower()
        self.keep_alive = connection != "close" and (version != "HTTP/1.0" or connection == "keep-alive")
