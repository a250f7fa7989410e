"""One thing that is wrong, as a value."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    """In SARIF's words."""

    ERROR = "error"  #: something cannot work
    WARNING = "warning"  #: it works otherwise than most would think
    NOTE = "note"


class Finding(Struct, frozen=True, omit_defaults=True, rename="camel"):
    rule: str
    level: Level
    subject: str  #: such as queue/research, or configuration
    consequence: str  #: in one sentence
    fix: str
    example: str = ""  #: on the user's own objects: what happens because of it

    @property
    def text(self) -> str:
        example = f" {self.example}." if self.example else ""
        return f"{self.subject}: {self.consequence}.{example} {self.fix}."
