"""A finding, which is one thing that is wrong; and many findings as SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from pumice import __version__


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


# Findings as SARIF 2.1.0, which code hosts show beside changes.

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Sequence[Finding], file: str) -> dict[str, Any]:
    """The findings as a SARIF document. `file` is the file that was checked: SARIF requires a location for each result."""
    rules = sorted({finding.rule for finding in findings})
    driver = {"name": "pumice lint", "version": __version__, "rules": [{"id": rule, "name": rule} for rule in rules]}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(each, file) for each in findings]}],
    }


def _result(finding: Finding, file: str) -> dict[str, Any]:
    location = {
        "physicalLocation": {"artifactLocation": {"uri": file}},
        "logicalLocations": [{"fullyQualifiedName": finding.subject}],
    }
    return {"ruleId": finding.rule, "level": finding.level.value, "message": {"text": finding.text}, "locations": [location]}
