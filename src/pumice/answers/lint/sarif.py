"""Findings as SARIF 2.1.0, which code hosts show beside changes."""

from collections.abc import Sequence
from typing import Any

from pumice import __version__
from pumice.answers.lint.finding import Finding

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
    location = {"physicalLocation": {"artifactLocation": {"uri": file}}, "logicalLocations": [{"fullyQualifiedName": finding.subject}]}
    return {"ruleId": finding.rule, "level": finding.level.value, "message": {"text": finding.text}, "locations": [location]}
