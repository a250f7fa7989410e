"""Who had what, beyond the last hour: what `pumice usage` tells of the folder into which the scheduler records.

It reads all recordings of a month, so it runs in a process of its own, one at a time, and an answer is given again for a minute.
"""

import asyncio
import csv
import time
from pathlib import Path

from pumice.http.listener import Handler
from pumice.http.messages import Request, Response
from pumice.page.command import output_of
from pumice.page.files import UNCACHED

LONGEST_S, KEPT_S = 60.0, 60.0
Asked = tuple[str, str, str]  #: by what, per what, and which month; as the options of the command


class PageUsage:
    def __init__(self, folder: str) -> None:
        """`folder`: of the recordings; empty if there are none."""
        self.folder = str(Path(folder).absolute()) if folder else ""
        self._one_at_a_time = asyncio.Lock()
        self._tables: dict[Asked, tuple[float, str]] = {}  #: when, and what

    @property
    def routes(self) -> dict[str, Handler]:
        return {"/api/usage": self._usage}

    async def _usage(self, request: Request) -> Response:
        if not self.folder:
            return Response.json({"error": "nothing is recorded here"}, 404, headers=UNCACHED)
        try:
            head, *rows = await self.table(*(request.query.get(name, "") for name in ("by", "per", "month")))
        except RuntimeError as error:
            return Response.json({"error": str(error)}, 400, headers=UNCACHED)
        except TimeoutError:
            return Response.json({"error": f"this takes more than {LONGEST_S:g} s; ask in the shell"}, 503, headers=UNCACHED)
        return Response.json({"head": head, "rows": rows}, headers=UNCACHED)

    async def table(self, by: str, per: str, month: str = "") -> list[list[str]]:
        """The head and the rows of the command. Raises RuntimeError if it fails, TimeoutError if it takes too long."""
        async with self._one_at_a_time:
            return list(csv.reader((await self._table((by, per, month))).splitlines()))

    async def _table(self, asked: Asked) -> str:
        now_s = time.monotonic()
        self._tables = {one: table for one, table in self._tables.items() if table[0] > now_s - KEPT_S}
        if asked not in self._tables:
            by, per, month = asked
            options = (f"--by={by}", f"--per={per}", *([f"--month={month}"] if month else []), "-o", "csv")
            self._tables[asked] = now_s, (await output_of("usage", self.folder, *options, within_s=LONGEST_S)).decode()
        return self._tables[asked][1]
