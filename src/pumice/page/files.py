"""The page's files as they are sent: zipped once, with a strict Content-Security-Policy, sent again only if they have changed."""

import gzip
import hashlib
from importlib import resources

from pumice.http.messages import Request, Response

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
OF_REPORTS = ("frame.html", "report.html", "compare.html", "report.css")
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
GUARDS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Vary", "Accept-Encoding"),
)
UNCACHED = (*GUARDS, ("Cache-Control", "no-store"))


class File:
    def __init__(self, name: str, body: bytes) -> None:
        self._plain = body
        self._zipped = gzip.compress(body, mtime=0)
        self._type = TYPES[name.rpartition(".")[2]]
        self._tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'

    def respond(self, request: Request) -> Response:
        headers = (*GUARDS, ("Cache-Control", "no-cache"), ("ETag", self._tag))
        if request.headers.get("if-none-match") == self._tag:
            return Response(b"", 304, self._type, headers)
        return packed(request, self._plain, self._zipped, self._type, headers)


def packed(request: Request, plain: bytes, zipped: bytes, type_: str, headers: tuple[tuple[str, str], ...]) -> Response:
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(zipped, content_type=type_, headers=(*headers, ("Content-Encoding", "gzip")))
    return Response(plain, content_type=type_, headers=headers)


def files() -> dict[str, File]:
    """The files of the page, by their path in a URL."""
    folder = resources.files("pumice.page").joinpath("static")
    found = {f"/{item.name}": File(item.name, item.read_bytes()) for item in folder.iterdir() if item.name not in OF_REPORTS}
    return {"/": found.pop("/index.html"), **found}
