"""An action of somebody else's is found as a plugin is: in a folder, or by the entry points of a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.errors import InputError
from pumice.extensions import actions, plugins
from pumice.scheduler.config.volcano_conf import read_policy

OWN = """
from pumice.scheduler.framework.policy import Action


class Count(Action):
    name = "count"

    def run(self, session):
        session.counted = len(session.cluster.tasks)
"""
CONF = 'actions: "count"\ntiers: [{plugins: [{name: gang}]}]\n'


def test_an_action_of_a_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(OWN)
    policy, _ = read_policy(CONF, plugins(), actions=actions(str(tmp_path)))
    assert [(action.name, action.settles) for action in policy.actions] == [("count", False), ("giveback", True)]
    assert "allocate" in actions(str(tmp_path))
    with pytest.raises(InputError, match='there is no action "count"'):
        read_policy(CONF, plugins(), actions=actions())


def test_an_action_of_a_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting.py").write_text(OWN)
    info = tmp_path / "counting-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pumice.actions]\ncount = counting:Count\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert actions()["count"].__module__ == "counting"
