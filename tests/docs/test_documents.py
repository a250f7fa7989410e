"""What the documents show works: every Python block is run, every `pumice` command of the README ends well."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import cli

ROOT = Path(__file__).parents[2]
LIVE = ("up", "scheduler", "controllers", "webhooks", "down", "job")  #: commands that stay, or need what stays: stories of their own
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.yaml"))


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def test_the_plugins_of_the_guide_work_and_its_test_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, object] = {}
    for block in blocks("docs/plugins.md", "python"):
        exec(compile(block, "docs/plugins.md", "exec"), space)
    space["test_small_pods_keep_away_from_gpu_nodes"]()
    from pumice.testing import cluster, node, pod, podgroup, schedule

    def made() -> object:
        return cluster(node("big").cpu(8).gpu(4), node("small").cpu(8), podgroup("web"), pod("web").cpu(1).gang("web"))

    assert schedule(made(), "enqueue, allocate", "gang", space["QuietArrays"]).binds == {"default/web": "small"}
    assert schedule(made(), "enqueue, allocate", "gang", space["Calm"]).binds == {"default/web": "big"}


def test_a_plugin_of_a_folder_is_found_and_its_argument_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "my-plugins"
    folder.mkdir()
    (folder / "calm.py").write_text(next(block for block in blocks("docs/plugins.md", "python") if "class Calm(" in block))
    conf = tmp_path / "my.conf"
    conf.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: calm\n    arguments: {calm.mostPod: 1}\n')
    inputs = ["-f", str(ROOT / "examples/gang.yaml"), "--conf", str(conf), "--plugins-dir", str(folder)]
    result = CliRunner().invoke(cli, ["cycle", *inputs])
    assert result.exit_code == 0
    assert result.stderr == (f'{conf}:6: warning: plugin "calm" has no argument "calm.mostPod" (ignored); did you mean "calm.mostPods"?\n')


def commands() -> list[str]:
    lines = re.findall(r"^ {4}(pumice .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [line.partition("  #")[0].strip() for line in lines]


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_readme_works(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)[1:]
    if words[0] in LIVE or "--from-cluster" in words:
        words = [words[0], "--help"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_explained_and_valid(name: str) -> None:
    path = ROOT / "examples" / name
    assert path.read_text().startswith("# ")
    result = CliRunner().invoke(cli, ["check", "-f", str(path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_running_installs_only_what_running_needs() -> None:
    """What `make run` would do in a fresh clone names the requirements of running and no others; `make test` brings the others."""

    def installed(target: str) -> set[str]:
        done = subprocess.run(["make", "-n", "-B", target, "VENV=absent"], cwd=ROOT, capture_output=True, text=True, check=True)
        return set(re.findall(r"-r requirements/(\w+)\.txt", done.stdout))

    assert installed("run") == installed("demo") == {"run", "build"}
    assert installed("test") == {"dev"}


def test_the_tests_that_hold_a_promise_exist() -> None:
    pages = [ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {name for page in pages for name in re.findall(r"`((?:tests|bench)/[\w./]+)`", page.read_text())}
    assert "tests/live/test_leading.py" in named
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("document", ["docs/design.md", "CONTRIBUTING.md"])
def test_files_that_the_map_names_exist(document: str) -> None:
    """A file may be named by the end of its path, as it is after a folder in the same row. Capitals stand for a name."""
    text = (ROOT / document).read_text().partition("## Names that changed")[0]
    files = [
        str(path.relative_to(ROOT))
        for folder in ("src", "tests", "bench", "deploy", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
    ]
    known = {"/".join(parts[at:]) for parts in (file.split("/") for file in files) for at in range(len(parts))}
    named = {name.removeprefix("../").rstrip("/") for name in re.findall(r"`([\w./-]+(?:\.py|\.md|\.yaml|/))`", text)}
    assert {name for name in named if name not in known and not (ROOT / name).exists() and not re.search(r"\b[A-Z]{4}", name)} == set()
