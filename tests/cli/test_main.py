"""What the program does with what it is given wrongly: one line that says what to write, and exit code 2."""

from __future__ import annotations

import sys

import pytest

from pumice.cli.main import main
from pumice.cli.remote import explained
from pumice.kube.errors import ApiError, KubeError, NoAnswer


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["pumice", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nonsense", "Error: No such command 'nonsense'. (see pumice --help)"),
        ("job lst", "Error: No such command 'lst'. Did you mean 'list'? (see pumice job --help)"),
        ("job list --quue q", "Error: No such option '--quue'. Did you mean '--queue'? (see pumice job list --help)"),
        ("job view", "Error: Missing option '-N' / '--name'. (see pumice job view --help)"),
        ("job run", "Error: a job needs a name (-N), or a file that describes it (-f) (see pumice job run --help)"),
        ("job run -N a -r two", "Error: Invalid value for '-r' / '--replicas': 'two' is not a valid integer. (see pumice job run --help)"),
        (
            "queue operate -n q",
            "Error: Missing option '-a' / '--action'. Choose from: open, close, update (see pumice queue operate --help)",
        ),
        ("jobflow delete", "Error: give either a file (-f) or a name (-N) (see pumice jobflow delete --help)"),
        (
            "completion tcsh",
            "Error: Invalid value for '{bash|zsh|fish}': 'tcsh' is not one of 'bash', 'zsh', 'fish'. (see pumice completion --help)",
        ),
        ("job list -k /nothing", "/nothing: cannot be read (No such file or directory)"),
        ("apply -f /nothing", "/nothing: cannot be read: No such file or directory"),
        ("controllers --controllers=jb-controller", '--controllers: "jb-controller" is not a controller; did you mean "job-controller"?'),
        (
            "webhooks --webhook-namespace=n --tls-cert-file=x",
            "--tls-cert-file: certificate, key and authority are given together or not at all",
        ),
    ],
)
def test_a_mistake_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, told: str) -> None:
    assert ended(monkeypatch, *arguments.split()) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()) == ("", [told])


@pytest.mark.parametrize("arguments", [(), ("job",), ("queue",)])
def test_a_group_without_a_command_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert ended(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err.startswith(" ".join(("Usage: pumice", *arguments)))


def test_help_and_version_end_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "job", "list", "-h") == ended(monkeypatch, "--version") == 0
    assert "Usage: pumice job list" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiError(404, "NotFound", 'pods "a" not found'), 'from server (NotFound): pods "a" not found'),
        (ApiError(400, "", "admission webhook denied the request: no"), "from server: admission webhook denied the request: no"),
        (NoAnswer("timed out", sent=False), "https://here did not answer: timed out"),
    ],
)
def test_failures_are_told_as_kubectl_tells_them(error: KubeError, told: str) -> None:
    assert explained(error, "https://here") == told
