"""A small shell, for simulated containers: variables, quotes, pipes, `;`, `&&`, `||`, `$(...)` and redirections to files in memory.

Nothing is ever run on this machine: its words are functions (shell_words.py). What one call may read, write and do is bounded.
"""

from __future__ import annotations

import posixpath
import re
import tarfile
from collections.abc import Callable, Mapping
from typing import NamedTuple

MOST_WRITTEN = 1024 * 1024  #: bytes that are kept of what is written in one container
MOST_STEPS = 1000  #: commands of one call
MOST_SPENT = 8 * 1024 * 1024  #: bytes that one call reads from files and variables
DEEPEST = 16  #: of lines within lines
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)
_OPERATORS = ("&&", "||", ">>", "2>&1", "1>&2", ">&2", "2>", ";", "|", ">", "<", "&", "\n")


class Ran(NamedTuple):
    """What a command has written, and its exit code."""

    out: bytes = b""
    code: int = 0
    err: bytes = b""


class Exit(Exception):
    """The shell ends, with what it had written."""

    def __init__(self, code: int, out: bytes = b"", err: bytes = b"") -> None:
        super().__init__(str(code))
        self.ran = Ran(out, code, err)


class Shell:
    """A shell in one container. `files` are all files by their paths; `written` are those that it has written, which stay."""

    def __init__(
        self, words: Words, env: dict[str, str], files: dict[str, bytes], written: dict[str, bytes], now: Callable[[], float]
    ) -> None:
        self.words = words
        self.env = env
        self.mounted = files
        self.written = written
        self.now = now
        self.folder = "/"
        self.code = 0
        self._steps = self._spent = self._depth = 0

    def begin(self) -> None:
        """Another call: it may do as much as the first."""
        self._steps = self._spent = self._depth = 0

    def spend(self, data: bytes | str) -> None:
        self._spent += len(data)
        if self._spent > MOST_SPENT:
            raise Exit(137)

    # Files

    @property
    def files(self) -> dict[str, bytes]:
        return self.mounted | self.written

    def path(self, name: str) -> str:
        return posixpath.normpath(posixpath.join(self.folder, name))

    def read(self, name: str) -> bytes:
        """The content of a file. Raises OSError."""
        path = self.path(name)
        if path == "/dev/null":
            return b""
        if path in self.files:
            self.spend(self.files[path])
            return self.files[path]
        raise IsADirectoryError("Is a directory") if self.is_folder(path) else FileNotFoundError("No such file or directory")

    def write(self, name: str, data: bytes) -> None:
        """Keep a file. Raises OSError if too much would be kept."""
        path = self.path(name)
        if path == "/dev/null":
            return
        if sum(map(len, self.written.values())) + len(data) > MOST_WRITTEN or len(self.written) > MOST_STEPS:
            raise OSError("No space left on device")
        self.written[path] = data

    def is_folder(self, path: str) -> bool:
        return path == "/" or any(each.startswith(path.rstrip("/") + "/") for each in self.files)

    def names(self, path: str) -> list[str]:
        """The names in a folder."""
        head = path.rstrip("/") + "/"
        return sorted({name for each in self.files if each.startswith(head) and (name := each[len(head) :].split("/")[0])})

    # Lines

    def line(self, text: str, stdin: bytes = b"") -> Ran:
        """Run a line of commands. Raises Exit."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise Exit(137)
        reader = _Reader(text, self)
        total = Ran()
        skipped = False
        while not reader.ended:
            ran = Ran(stdin)
            operator = "|"
            try:
                while operator == "|":
                    words, redirections, operator = reader.command()
                    if not skipped and (words or redirections):
                        ran = self._redirected(words, redirections, ran)
            except Exit as end:
                raise Exit(end.ran.code, total.out + end.ran.out, total.err + end.ran.err) from None
            if not skipped:
                self.code = ran.code
                total = Ran(total.out + ran.out, ran.code, total.err + ran.err)
            skipped = (operator == "&&" and self.code != 0) or (operator == "||" and self.code == 0)
        self._depth -= 1
        return total._replace(code=self.code)

    def _redirected(self, words: list[str], redirections: list[tuple[str, str]], before: Ran) -> Ran:
        """Run one command of a pipe, which reads what the command before it has written."""
        stdin, err = before.out, before.err
        for operator, name in redirections:
            if operator == "<":
                try:
                    stdin = self.read(name)
                except OSError as error:
                    return Ran(code=1, err=err + f"sh: can't open {name}: {error}\n".encode())
        ran = self.run(words, stdin)
        ran = ran._replace(err=err + ran.err)
        for operator, name in redirections:
            try:
                if operator == "2>&1":
                    ran = ran._replace(out=ran.out + ran.err, err=b"")
                elif operator.endswith("&2"):
                    ran = ran._replace(out=b"", err=ran.err + ran.out)
                elif operator == "2>":
                    self.write(name, ran.err)
                    ran = ran._replace(err=b"")
                elif operator in (">", ">>"):
                    kept = self.files.get(self.path(name), b"") if operator == ">>" else b""
                    self.write(name, kept + ran.out)
                    ran = ran._replace(out=b"")
            except OSError as error:
                return Ran(code=1, err=ran.err + f"sh: can't create {name}: {error}\n".encode())
        return ran

    def run(self, words: list[str], stdin: bytes = b"") -> Ran:
        """Run one command. Raises Exit."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Exit(130)
        while words and (match := _ASSIGNMENT.match(words[0])):
            self.env[match[1]] = match[2]
            words = words[1:]
        if not words:
            return Ran()
        name, *arguments = words
        word = self.words.get(posixpath.basename(name))
        if word is None:
            known = " ".join(sorted(self.words))
            return Ran(code=127, err=f"{name}: not found: this container is simulated, and knows only: {known}\n".encode())
        try:
            return word(self, arguments, stdin)
        except (OSError, ValueError, tarfile.TarError) as error:
            return Ran(code=1, err=f"{name}: {' '.join(arguments[-1:])}: {error}\n".encode())


class _Reader:
    """Commands out of a text, one at a time: its variables are those of the moment."""

    def __init__(self, text: str, shell: Shell) -> None:
        self._text = text
        self._shell = shell
        self._place = 0

    @property
    def ended(self) -> bool:
        return self._place >= len(self._text)

    def command(self) -> tuple[list[str], list[tuple[str, str]], str]:
        """The words of the next command, its redirections, and the operator after it; ";" at the end."""
        words: list[str] = []
        redirections: list[tuple[str, str]] = []
        while True:
            while not self.ended and self._text[self._place] in " \t":
                self._place += 1
            if not self.ended and self._text[self._place] == "#":
                end = self._text.find("\n", self._place)
                self._place = len(self._text) if end < 0 else end
            if self.ended:
                return words, redirections, ";"
            operator = next((each for each in _OPERATORS if self._text.startswith(each, self._place)), "")
            if not operator:
                words += self._word()
                continue
            self._place += len(operator)
            if operator.endswith(("&1", "&2")):
                redirections.append((operator, ""))
            elif operator in (">", ">>", "<", "2>"):
                while not self.ended and self._text[self._place] in " \t":
                    self._place += 1
                redirections.append((operator, "".join(self._word())))
            else:
                return words, redirections, ";" if operator in ("&", "\n") else operator

    def _word(self) -> list[str]:
        """The word at this place: none, if it is an empty variable, or several, if a variable outside of quotes has spaces."""
        parts: list[str] = [""]
        quoted = bare = False
        while not self.ended and (letter := self._text[self._place]) not in " \t\n;|&<>":
            self._place += 1
            if letter == "'":
                end = self._text.find("'", self._place)
                end = len(self._text) if end < 0 else end
                parts[-1] += self._text[self._place : end]
                self._place, quoted = end + 1, True
            elif letter == '"':
                parts[-1] += self._in_quotes()
                quoted = True
            elif letter == "\\":
                parts[-1] += self._text[self._place : self._place + 1]
                self._place += 1
            elif letter == "$":
                first, *more = re.split(r"[ \t\n]+", self._variable()) or [""]
                parts[-1] += first
                parts += more
                bare = True
            else:
                parts[-1] += letter
        return parts if quoted or not bare else [part for part in parts if part]

    def _in_quotes(self) -> str:
        text = ""
        while not self.ended and (letter := self._text[self._place]) != '"':
            self._place += 1
            if letter == "$":
                text += self._variable()
            elif letter == "\\" and self._text[self._place : self._place + 1] in ('"', "\\", "$", "`"):
                text += self._text[self._place]
                self._place += 1
            else:
                text += letter
        self._place += 1
        return text

    def _variable(self) -> str:
        """What stands after a dollar: $NAME, ${NAME}, $?, $$ or $(a line)."""
        value = self._after_dollar()
        self._shell.spend(value)
        return value

    def _after_dollar(self) -> str:
        text, start = self._text, self._place
        if text.startswith("(", start):
            depth, end = 1, start + 1
            while end < len(text) and depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            self._place = end
            return self._shell.line(text[start + 1 : end - 1]).out.decode(errors="replace").rstrip("\n")
        if text.startswith("{", start):
            end = text.find("}", start)
            end = len(text) if end < 0 else end
            self._place = end + 1
            name, _, otherwise = text[start + 1 : end].partition(":-")
            return self._shell.env.get(name) or otherwise
        if text[start : start + 1] in ("?", "$"):
            self._place += 1
            return str(self._shell.code) if text[start] == "?" else "1"
        match = _NAME.match(text, start)
        if match is None:
            return "$"
        self._place = match.end()
        return self._shell.env.get(match[0], "")


Word = Callable[[Shell, list[str], bytes], Ran]  #: called with the shell, the arguments, and what is read
Words = Mapping[str, Word]
