"""What the program does with what it is given wrongly: one line that says what to write, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from pumice.cli.live_cluster import explained
from pumice.cli.main import COMMANDS, SHORT, cli, main
from pumice.client.failures import ApiError, KubeError, NoAnswer


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["pumice", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nonsense", "Error: there is no command 'nonsense' (see pumice --help)"),
        ("cylce", "Error: there is no command 'cylce'; did you mean \"cycle\"? (see pumice --help)"),
        ("plugins binpak", 'NAME: there is no plugin "binpak"; did you mean "binpack"?'),
        ("job lst", "Error: No such command 'lst'. Did you mean 'list'? (see pumice job --help)"),
        ("job list --quue q", "Error: No such option '--quue'. Did you mean '--queue'? (see pumice job list --help)"),
        ("job view", "Error: say the job's name, and once: as an argument or with -N/--name (see pumice job view --help)"),
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
        ("job list -k /nothing", "/nothing: cannot be read: No such file or directory"),
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


def test_the_help_says_in_full_what_each_command_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, (_, summary) in COMMANDS.items():
        assert name in shown
        assert summary.replace("-", "") in shown.replace("- ", "").replace("-", "")
        assert isinstance(cli.get_command(click.Context(cli), name), click.Command)


def test_the_help_imports_no_command() -> None:
    look = "import sys; from click.testing import CliRunner; from pumice.cli.main import cli; CliRunner().invoke(cli, ['--help'])"
    told = subprocess.run([sys.executable, "-c", f"{look}; print('numpy' in sys.modules)"], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def completed(*words: str) -> list[str]:
    *before, begun = words
    return [item.value for item in ShellComplete(cli, {}, "pumice", "_PUMICE_COMPLETE").get_completions(before, begun)]


def test_commands_plugins_and_kinds_are_completed_and_files_left_to_the_shell() -> None:
    assert completed("cl") == ["clusters"]
    assert completed("--v") == ["--version"]
    assert completed("plugins", "bin") == ["binpack"]
    assert completed("get", "podg") == ["podgroups"]
    files = ShellComplete(cli, {}, "pumice", "_PUMICE_COMPLETE").get_completions(["cycle", "-f"], "ex")
    assert [item.type for item in files] == ["file"]


@pytest.mark.parametrize(("short", "words"), SHORT.items())
def test_short_names_are_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], short: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"/bin/{short}", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith(" ".join(("Usage: pumice", *words)))
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[short] == scripts["pumice"]
