"""One module per input format. Each has `workload(path)`, which streams jobs, and `nodes(path)` if the format also describes clusters.

Here is what readers of text files share: rows by column names, and errors that name file and line.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TextIO

from pumice.api.errors import InputError, not_utf8
from pumice.api.files import refuse_endless


class CsvRow:
    """One row, with its cells by column name."""

    __slots__ = ("_cells", "line", "where")

    def __init__(self, where: str, line: int, cells: dict[str, str]) -> None:
        self.where, self.line, self._cells = where, line, cells

    def wrong(self, message: str) -> NoReturn:
        raise InputError(message, where=self.where, line=self.line)

    def text(self, column: str) -> str:
        return self._cells.get(column) or ""

    def number(self, column: str, least: float = 0.0) -> float:
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            self.wrong(f'{column}: "{text[:40]}" is not a number')
        if not least <= value < 1e15:
            self.wrong(f"{column}: {text[:40]} is out of range; it must be at least {least:g}")
        return value

    def whole(self, column: str, least: int = 0) -> int:
        value = self.number(column, least)
        if not value.is_integer():
            self.wrong(f"{column}: {self.text(column)[:40]} is not a whole number")
        return int(value)


def csv_rows(path: str, needed: Sequence[str]) -> Iterator[CsvRow]:
    """The rows below the header line. Raises InputError."""
    with _opened(path) as file:
        reader = csv.reader(file)
        try:
            head = next(reader, [])
            for column in needed:
                if column not in head:
                    raise InputError(f'there is no column "{column}"; the first line must name {", ".join(needed)}', where=path, line=1)
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(head):
                    raise InputError(f"{len(cells)} cells below {len(head)} columns", where=path, line=reader.line_num)
                yield CsvRow(path, reader.line_num, dict(zip(head, cells, strict=True)))
        except csv.Error as error:
            raise InputError(f"cannot be read as CSV: {error}", where=path, line=reader.line_num) from None


def lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file, numbered from 1. Raises InputError."""
    with _opened(path) as file:
        yield from enumerate(file, 1)


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """The text of a file, which may be packed by gzip, and may begin with a byte order mark. Raises InputError."""
    try:
        refuse_endless(path)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise not_utf8(error, path) from None
    except (EOFError, zlib.error):
        raise InputError("its end is missing, or it is damaged; unpack it with gunzip to see", where=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=path) from None
