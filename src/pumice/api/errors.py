"""The one exception for wrong input: its place, what was found there, what to write instead.

`str()` gives the line that the user reads: `jobs.yaml:14: document 3, Pod default/a, spec.x: "2 cores" is not a quantity; write "2"`.
"""

from collections.abc import Iterable, Sequence


class InputError(Exception):
    """Raised for input or configuration that cannot be used. `where` is a file or stream, `field` a path into the document."""

    def __init__(self, message: str, *, where: str = "", line: int = 0, document: int = 0, subject: str = "", field: str = "") -> None:
        self.message = in_line(message)
        self.where = where
        self.line = line
        self.document = document
        self.subject = subject
        self.field = field
        super().__init__(message)

    def __str__(self) -> str:
        where = in_line(self.where)
        place = f"{where}:{self.line}" if self.line else where
        document = f"document {self.document}" if self.document else ""
        inside = ", ".join(_clipped(in_line(part)) for part in (document, self.subject, self.field) if part)
        return ": ".join(part for part in (place, inside, self.message) if part)


def in_line(text: str) -> str:
    """The text in one line, however many the words of others in it would make."""
    return text if text.isprintable() else text.replace("\n", "\\u000a").replace("\r", "\\u000d")


#: characters: enough to show a kind, a namespace and a name whole, as a Kubernetes name has at most 253
_LONGEST_PART = 600


def _clipped(part: str) -> str:
    return part if len(part) <= _LONGEST_PART else f"{part[:60]}... ({len(part)} characters)"


FAULTS_SHOWN = 20


def raise_all(errors: Sequence[InputError]) -> None:
    """Raise the first error, if there is any, with the others as further lines of its message; of very many, the number is enough."""
    if errors:
        first, *others = errors
        more = [f"and {len(errors) - FAULTS_SHOWN} more"] if len(errors) > FAULTS_SHOWN else []
        first.message = "\n".join([first.message, *map(str, others[: FAULTS_SHOWN - 1]), *more])
        raise first


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint `; did you mean "x"?` with the known word that is most like this one; empty if none is like it."""
    import difflib  # only wrong input has to wait for this import

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def not_utf8(error: UnicodeDecodeError, where: str) -> InputError:
    problem = "is compressed; unpack it first, with gunzip" if error.object.startswith(b"\x1f\x8b") else "not UTF-8; save the file as UTF-8"
    return InputError(problem, where=where)
