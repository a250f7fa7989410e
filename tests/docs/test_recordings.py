"""docs/recordings.md shows what the commands really print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import cli
from pumice.scheduler.config.volcano_conf import DEFAULT
from tests.recording.week import record_week

PAGE = (Path(__file__).parents[2] / "docs/recordings.md").read_text()
SHOWN = re.findall(r"```console\n\$ (pumice .*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    record_week(made / "recordings")
    (made / "no-reclaim.conf").write_text(DEFAULT)
    return made


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_is_printed(command: str, output: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert result.stdout.rstrip() == output.rstrip()
