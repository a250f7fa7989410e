"""The cluster in the user's own kubeconfig: merged beside what is there, taken out again, and never at the cost of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pumice.api.errors import InputError
from pumice.cli import clusters
from pumice.cli.clusters import merged
from pumice.client.kubeconfig import files
from pumice.cluster.apiserver.server import write_kubeconfig

THEIRS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
    "current-context": "prod",
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent") + ":" + str(tmp_path / "config"))
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, "https://here", "secret", b"authority", "pumice-dev")
    return path


def test_it_is_there_and_current_inside_and_gone_afterwards(own: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text(yaml.safe_dump(THEIRS))
    theirs.chmod(0o600)
    with merged(own, "pumice-dev", print) as path:
        assert path == theirs
        inside = yaml.safe_load(theirs.read_text())
        assert [each["name"] for each in inside["contexts"]] == ["prod", "pumice-dev"]
        assert inside["current-context"] == "pumice-dev"
    assert yaml.safe_load(theirs.read_text()) == THEIRS
    assert sorted(each.name for each in tmp_path.iterdir()) == ["config", "kubeconfig"]


def test_what_one_that_was_killed_left_is_replaced_and_another_choice_of_the_user_stays(own: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    left = {**THEIRS, "clusters": [*THEIRS["clusters"], {"name": "pumice-dev", "cluster": {"server": "https://dead"}}]}
    theirs.write_text(yaml.safe_dump({**left, "current-context": "pumice-dev"}))
    with merged(own, "pumice-dev", print):
        inside = yaml.safe_load(theirs.read_text())
        assert [each["cluster"]["server"] for each in inside["clusters"]] == ["https://prod", "https://here"]
        theirs.write_text(yaml.safe_dump({**inside, "current-context": "prod"}))
    assert yaml.safe_load(theirs.read_text())["current-context"] == "prod"


@pytest.mark.parametrize("text", ["[1, 2]", "{clusters: [1]}", ": :"])
def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(own: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    said: list[str] = []
    with merged(own, "pumice-dev", said.append) as path:
        assert path is None
    assert said == [f"{tmp_path / 'config'} is left as it is: it is no kubeconfig"]
    assert (tmp_path / "config").read_text() == text


def test_a_lock_that_stays_is_told(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "LOCK_PATIENCE_S", 0.0)
    (tmp_path / "absent.lock").touch()
    said: list[str] = []
    with merged(own, "pumice-dev", said.append):
        pass
    assert "absent.lock is there; remove it if no kubectl runs" in said[0]


def test_a_kubeconfig_that_was_named_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="KUBECONFIG: there is no file /nope; unset it or name another"):
        files("", {"KUBECONFIG": "/nope", "HOME": str(tmp_path)})
    assert files("", {"HOME": str(tmp_path)}) == []
