"""Helm on the chart, and the values that tests render it with."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from binaries import KUBERNETES, program, why_not

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/chart"
TIMEOUT_S = 120.0

POD: dict[str, Any] = {
    "priorityClassName": "",
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}}
    ],
    "podAnnotations": {"example.org/team": "batch"},
    "podLabels": {"team": "batch"},
    "extraArgs": ["--kube-api-qps=50"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "extra", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
    "podDisruptionBudget": {"enabled": True, "maxUnavailable": "50%"},
    "replicas": 2,
}
MONITORED = {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor", "prometheusRule", "dashboard")}

#: by name of a rendering: its values
RENDERINGS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "all that can be set": {
        "imagePullSecrets": [{"name": "registry"}],
        "scheduler": {
            **POD,
            "plugins": {"configMap": "plugins"},
            "record": {"enabled": True, "volume": {"emptyDir": None, "persistentVolumeClaim": {"claimName": "records"}}},
            "pageAddress": ":7480",
        },
        "controllers": POD,
        "webhooks": {
            **POD,
            "failurePolicy": "Ignore",
            "namespaceSelector": [{"key": "team", "operator": "Exists"}],
            "enabled": "/jobs/mutate,/jobs/validate,/pods/mutate,/later/validate",
        },
        "crds": {"upgrade": False},
    },
    "monitored": {"monitoring": {**MONITORED, "labels": {"release": "prometheus"}}},
    "shadow": {"mode": "shadow", "monitoring": MONITORED},
    "canary": {"mode": "canary", "canary": {"queues": ["research"], "namespaces": ["team-a"], "schedulerNames": ["pumice", "other"]}},
    "only the scheduler": {"controllers": {"replicas": 0}, "webhooks": {"replicas": 0}},
}

Values = dict[str, Any]
#: of each line one is chosen, whatever is chosen of the others
CHOICES: tuple[tuple[Values, ...], ...] = (
    ({}, {"mode": "shadow"}, *({"mode": "canary", "canary": {share: ["a", "b"]}} for share in ("queues", "namespaces"))),
    ({}, {"scheduler": {"pageAddress": ":7480"}}),
    (
        {},
        *(
            {"scheduler": {"record": {"enabled": True, **volume}}}
            for volume in ({}, {"volume": {"emptyDir": None, "hostPath": {"path": "/"}}})
        ),
    ),
    ({}, {"scheduler": {"plugins": {"configMap": "plugins"}}}),
    *(({}, {part: POD}, {part: {"replicas": 0}}) for part in ("scheduler", "controllers", "webhooks")),
    ({}, {"webhooks": {"enabled": "/jobs/validate", "schedulerUrl": "http://a:8080"}}, {"webhooks": {"failurePolicy": "Ignore"}}),
    (
        {},
        *(
            {"monitoring": {name: MONITORED[name] for name in names}}
            for names in (("podMonitor", "prometheusRule"), ("serviceMonitor", "dashboard"))
        ),
    ),
    ({}, {"monitoring": {"labels": {"release": "prometheus"}, "interval": "1m"}}),
    ({}, {"crds": {"upgrade": False}, "imagePullSecrets": [{"name": "registry"}]}),
)


def _merged(one: Values, other: Values) -> Values:
    return one | {name: _merged(one[name], each) if isinstance(one.get(name), dict) else each for name, each in other.items()}


def _in_pairs() -> Iterator[Values]:
    """Few renderings in which any two choices of different lines meet; each next one has as many new meetings as is easily found."""
    places = [(line, choice) for line, choices in enumerate(CHOICES) for choice in range(len(choices))]
    missing = {pair for pair in itertools.combinations(places, 2) if pair[0][0] != pair[1][0]}
    while missing:
        row = list(min(missing))
        for line, choices in enumerate(CHOICES):
            if line not in (row[0][0], row[1][0]):
                options = [(line, choice) for choice in range(len(choices))]
                row.append(max(options, key=lambda each: sum(tuple(sorted((each, other))) in missing for other in row)))
        missing -= set(itertools.combinations(sorted(row), 2))
        values: Values = {}
        for line, choice in row:
            values = _merged(values, CHOICES[line][choice])
        yield values


RENDERINGS |= {f"pairs {number}": values for number, values in enumerate(_in_pairs())}


class Helm:
    """Runs helm in a folder of its own, against the cluster of a kubeconfig if one is given."""

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        if reason := why_not(("helm",)):
            pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
        self.folder = folder
        self._program = str(program("helm"))
        home = {"HOME": str(folder), "KUBECONFIG": str(kubeconfig or folder / "none"), "PATH": os.environ["PATH"]}
        self.environment = home

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [self._program, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=self.environment, cwd=self.folder)

    def __call__(self, *words: str | Path) -> str:
        """What it printed; it must have succeeded."""
        done = self.run(*words)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *words: str | Path) -> str:
        done = self.run(*words)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def values(self, values: dict[str, Any]) -> str:
        """A flag with a file of these values."""
        path = self.folder / f"values-{len(list(self.folder.glob('values-*')))}.yaml"
        path.write_text(yaml.safe_dump(values))
        return f"--values={path}"

    def rendered(self, values: dict[str, Any], release: str = "", namespace: str = "") -> list[dict[str, Any]]:
        """The objects that the chart makes of the values, hooks too."""
        beside = values.get("mode", "live") != "live"
        release, namespace = release or ("pumice" if beside else "volcano"), namespace or ("trial" if beside else "volcano-system")
        flags = ("--namespace", namespace, "--kube-version", KUBERNETES, self.values(values))
        return [item for item in yaml.safe_load_all(self("template", release, CHART, *flags)) if item]
