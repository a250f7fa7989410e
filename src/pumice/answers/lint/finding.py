"""A finding, which is one thing that is wrong."""

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    """How serious a finding is, in SARIF's words."""

    ERROR = "error"  #: something cannot work
    WARNING = "warning"  #: it does not work as most users would expect
    NOTE = "note"


class Finding(Struct, frozen=True, omit_defaults=True, rename="camel"):
    rule: str
    level: Level
    subject: str  #: such as queue/research, or configuration
    consequence: str  #: in one sentence
    fix: str
    example: str = ""  #: what happens because of it to the user's own objects; may be empty

    @property
    def text(self) -> str:
        example = f" {self.example}." if self.example else ""
        return f"{self.subject}: {self.consequence}.{example} {self.fix}."
