"""The plain manifests, made of the chart: `python deploy/render.py` writes deploy/manifests anew.

The chart's templates use values and nothing else, so this much of Helm is enough: {{ .Values.a.b }}, {{ .Release.Name }},
{{ .Release.Namespace }}, and `| nindent N` for texts of several lines.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
RELEASE = {"Name": "volcano", "Namespace": "volcano-system"}
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: volcano-system\n"
HEAD = "# Made of deploy/chart by deploy/render.py; change it there.\n"

_FIELD = re.compile(r"\{\{ \.(Values|Release)\.([\w.]+)(?: \| nindent (\d+))? \}\}")


def rendered(template: str, values: dict[str, Any]) -> str:
    """The text with every field replaced. Raises KeyError for one that does not exist."""

    def value(match: re.Match[str]) -> str:
        found: Any = values if match[1] == "Values" else RELEASE
        for step in match[2].split("."):
            found = found[step]
        if not match[3]:
            return str(found)
        return "".join(f"\n{' ' * int(match[3])}{line}" if line else "\n" for line in str(found).rstrip("\n").split("\n"))

    return _FIELD.sub(value, template)


def manifests() -> dict[str, str]:
    """File names and contents."""
    values = yaml.safe_load((HERE / "chart/values.yaml").read_text())
    made = {path.name: HEAD + rendered(path.read_text(), values) for path in sorted((HERE / "chart/templates").glob("*.yaml"))}
    return {"00-namespace.yaml": HEAD + NAMESPACE, **made}


if __name__ == "__main__":
    for name, text in manifests().items():
        (HERE / "manifests" / name).write_text(text)
