"""Every case has an outcome that is right, and `pumice cycle` (and `pumice score`) gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.main import cli
from tests.cases.compare import Case, agrees, cases, owners, same_scores
from tests.cases.extender_server import served

HERE = Path(__file__).parent
DEVIATIONS = yaml.safe_load((HERE / "deviations.yaml").read_text())
ALL = [*cases(HERE / "volcano"), *cases(HERE / "kube-scheduler")]
GANGS = list(cases(HERE / "native-gangs"))
DIFFERENCES = (HERE.parents[1] / "docs" / "differences.md").read_text()


def release(expect: dict[str, Any]) -> list[str]:
    """The options that name the release and the feature gates of a case of native gangs."""
    gates = {"GenericWorkload": True} | expect.get("gates", {})
    return ["--kubernetes-version", "1.37", "--feature-gates", ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())]


def run(command: str, path: Path, expect: dict[str, Any], *more: str) -> Any:
    """What the command prints; InputError passes through."""
    now = expect.get("now")
    moment = ["--now", now if isinstance(now, str) else now.strftime("%Y-%m-%dT%H:%M:%SZ")] if now else []
    result = CliRunner().invoke(cli, [command, "-f", str(path), "-o", "json", *moment, *more], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def told(ours: dict[str, Any]) -> dict[str, str]:
    """What waiting pods are told, less the words of extenders, of which we name the speaker."""
    messages = {pod: waiting["message"] for pod, waiting in ours["pending"].items()}
    return {pod: text for pod, text in messages.items() if not text.startswith("extender/")}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_is_of_a_known_case_and_explained(name: str) -> None:
    reasons = DEVIATIONS[name]["because"]
    assert name in {case.name for case in (*ALL, *GANGS)}
    assert [each for each in ([reasons] if isinstance(reasons, str) else reasons) if f"\n**{each}" not in DIFFERENCES] == []
    family, _, state = name.partition("/")
    assert family != "random-corners" or f"\n| {state} |" in DIFFERENCES


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in ALL if "outcomes" in case.expect], ids=lambda case: case.name)
def test_case_has_the_same_outcome_without_shortcuts(case: Case, tmp_path: Path) -> None:
    with served(case.text) as text:
        path = tmp_path / "case.yaml"
        path.write_text(text)
        cycles = ("--cycles", str(case.expect.get("cycles", 1)))
        assert run("cycle", path, case.expect, *cycles, "--no-shortcuts") == run("cycle", path, case.expect, *cycles)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    with served(case.text) as text:
        path = tmp_path / "case.yaml"
        path.write_text(text)
        if case.expect.get("compare") == "configError":
            with pytest.raises(InputError):
                run("cycle", path, case.expect)
            return
        if "outcomes" in case.expect:
            ours = run("cycle", path, case.expect, "--cycles", str(case.expect.get("cycles", 1)))
            right = [DEVIATIONS[case.name]] if case.name in DEVIATIONS else case.expect["outcomes"]
            owned = owners(case.text)
            assert any(agrees(ours, outcome, case.expect, owned) for outcome in right), ours
            if str(case.expect.get("upstream")).startswith("kube-scheduler"):
                theirs = case.expect.get("messages") or {}
                assert [text for pod, text in told(ours).items() if text != theirs.get(pod, text)] == []
        if case.expect.get("scores"):
            table = run("score", path, case.expect, "--pod", case.expect.get("scoredPod", "default/p"))
            assert same_scores(table["scores"], case.expect["scores"]) == []


@pytest.mark.parametrize("case", GANGS, ids=lambda case: case.name)
def test_native_gangs(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(case.text)
    ours = run("cycle", path, case.expect, "--cycles", str(case.expect["cycles"]), *release(case.expect))
    if case.name in DEVIATIONS:
        assert agrees(ours, DEVIATIONS[case.name], case.expect, {})
        return
    assert any(agrees(ours, outcome, case.expect, {}) for outcome in case.expect["outcomes"]), ours
    if len(case.expect["outcomes"]) == 1:
        outcome = case.expect["outcomes"][0]
        groups = {name: group["phase"] for name, group in ours["podGroups"].items()}
        assert groups == outcome.get("podGroups", {})
        for told in ("messages", "podGroupMessages"):
            assert {name: ours[told].get(name) for name in case.expect.get(told, {})} == case.expect.get(told, {})
        assert ours["queue"] == outcome.get("queue", {})
