"""Where plugins and actions come from: this package, installed packages, a folder; each is found by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.errors import InputError
from pumice.extensions import PLUGIN_GROUP, installed, plugins
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.registry import ACTIONS


def test_each_is_found_by_its_name_and_all_are_listed() -> None:
    assert ACTIONS["gangpreempt"].name == "gangpreempt" and plugins()["task-topology"].name == "task-topology"
    assert {"allocate", "schedule", "shuffle"} < set(ACTIONS) and len(ACTIONS) == len(set(ACTIONS))
    assert {"gang", "network-topology-aware"} < set(plugins())


@pytest.mark.parametrize("name", ["", "gank", "queue-accounts", "kube", "../gang", "registry", "os.path"])
def test_what_there_is_not_is_not_found(name: str) -> None:
    assert name not in plugins() and name not in ACTIONS


def test_a_plugin_of_a_folder_goes_before_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from pumice.scheduler.framework.plugin import Plugin\nclass Mine(Plugin):\n    name = 'gang'\n")
    found = plugins(str(tmp_path))
    assert found["gang"].__module__ == "pumice_plugins_mine" and list(found).count("gang") == 1


def test_a_policy_knows_what_it_has() -> None:
    policy, _ = read_policy(DEFAULT, plugins())
    assert policy.has_plugin("gang") and not policy.has_plugin("binpack")
    assert policy.has_action("backfill") and not policy.has_action("preempt")


def test_a_folder_of_plugins_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        plugins(str(tmp_path / "absent"))
    (tmp_path / "broken.py").write_text("import absent_module_of_nobody\n")
    with pytest.raises(InputError, match=r"broken\.py: cannot be loaded: ModuleNotFoundError"):
        plugins(str(tmp_path))
    assert installed(Plugin, PLUGIN_GROUP) == {}


ODD_FILES = {
    "ends the program": b"import sys; sys.exit(3)",
    "raises what nobody catches": b"class Odd(BaseException): ...\nraise Odd('x')",
    "no Python": b"def (",
    "no UTF-8": b"\xff\xfe",
    "nothing": b"x = 1\0",
    "nested": b"(" * 100_000,
}


@pytest.mark.parametrize("content", ODD_FILES.values(), ids=ODD_FILES)
def test_whatever_a_file_of_plugins_does_when_it_is_loaded_is_told_in_a_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(content)
    with pytest.raises(InputError, match=r"odd\.py: cannot be loaded: ") as refused:
        plugins(str(tmp_path))
    assert "\n" not in str(refused.value)


ENTRY = """
from pumice.scheduler.framework.plugin import Plugin

class Theirs(Plugin):
    name = "theirs"

class Unnamed(Plugin):
    pass

def helper():
    pass
"""


def test_an_installed_package_brings_plugins_by_its_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_plugins.py").write_text(ENTRY)
    described = tmp_path / "theirs-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    points = described / "entry_points.txt"
    points.write_text("[pumice.plugins]\na = their_plugins:Theirs\nb = their_plugins:Unnamed\nc = their_plugins:helper\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sorted(installed(Plugin, PLUGIN_GROUP)) == ["b", "theirs"]
    points.write_text("[pumice.plugins]\na = their_plugins:Absent\n")
    with pytest.raises(InputError, match=r"theirs: .*entry point 'a' cannot be loaded"):
        installed(Plugin, PLUGIN_GROUP)
