"""What is made of the chart, by Helm: `python deploy/render.py` writes deploy/manifests, deploy/monitoring and the chart's CRDs anew.

The definitions of the chart are those of the embedded API server, each whole in a file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pumice.cluster.apiserver.bootstrap import definition_texts

HERE = Path(__file__).parent
ROOT = HERE.parent
CHART = HERE / "chart"
KUBERNETES = "1.36.1"  #: the version that is told to Helm where no cluster is asked
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: volcano-system\n"
HEAD = "# Made of deploy/chart by deploy/render.py; change it there.\n"
MONITORING = ("podMonitor", "serviceMonitor", "prometheusRule")

_SOURCE = re.compile(r"^# Source: pumice/templates/(\S+)\n", re.MULTILINE)


def helm() -> Path:
    sys.path.insert(0, str(ROOT))
    from tests.cluster.binaries import program  # builds it with Go, once

    return program("helm")


def rendered(*flags: str, release: str = "volcano", namespace: str = "volcano-system") -> str:
    """What Helm makes of the chart. Raises CalledProcessError."""
    command = [helm(), "template", release, CHART, "--namespace", namespace, "--kube-version", KUBERNETES, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def by_template(text: str) -> dict[str, str]:
    """The objects by the file of the template that made them."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^---\n", text, flags=re.MULTILINE):
        if source := _SOURCE.match(part):
            found.setdefault(source[1], []).append(part[source.end() :].rstrip("\n") + "\n")
    return {name: HEAD + "---\n".join(parts) for name, parts in sorted(found.items())}


def files() -> dict[Path, str]:
    """All that is made of the chart and for it: paths and contents."""
    made = {HERE / "manifests/00-namespace.yaml": HEAD + NAMESPACE}
    made |= {HERE / "manifests" / name: text for name, text in by_template(rendered("--no-hooks")).items()}
    for name in MONITORING:
        text = by_template(rendered("--no-hooks", "--set", f"monitoring.{name}.enabled=true"))["monitoring.yaml"]
        made[HERE / "monitoring" / f"{name.lower()}.yaml"] = text
    return made | {CHART / "crds" / name: text for name, text in definition_texts().items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
