"""Log lines that machines read too: logfmt (`ts=... level=info msg="..."`) or one JSON object a line, on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime

from pumice.escaped_text import shown_in_line


class _Structured(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {"ts": at, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return fields


class Logfmt(_Structured):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields(record).items())


class Json(_Structured):
    def format(self, record: logging.LogRecord) -> str:
        return shown_in_line(json.dumps(self.fields(record), ensure_ascii=False))


def _quoted(value: str) -> str:
    plain = value and not any(char in ' "=\\' or not char.isprintable() for char in value)
    return value if plain else shown_in_line(json.dumps(value, ensure_ascii=False))


def set_up(form: str, verbosity: int) -> None:
    """Set up logging. `verbosity` counts as in Kubernetes' programs: 0 logs what matters to an operator, 4 and more logs everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if form == "json" else Logfmt())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
