"""A recording without names tells nobody's, and is decided as before."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cli.record import take_over
from pumice.inputs.recording.anonymous import Anonymous
from pumice.inputs.recording.entry_format import Put
from pumice.inputs.recording.file_format import as_it_is, entries, files_of
from pumice.inputs.recording.replay import opened
from pumice.live.scheduler.options import Options
from tests.live.situations import SITUATIONS
from tests.recording.recorded import a_minute, all_alike, recorded
from tests.recording.week import record_week

HIDE = Anonymous(b"a key that nobody else has").entry


GO_BY_NAME = {"room for all"}  #: jobs of one second, whose turn goes by their names


@pytest.mark.parametrize("name", sorted(SITUATIONS.keys() - GO_BY_NAME))
def test_it_is_decided_as_it_was(name: str, tmp_path: Path) -> None:
    situation = SITUATIONS[name]
    recorded(tmp_path / "named", situation.build(), a_minute, situation.conf, Options(schedulers=(situation.scheduler,)))
    take_over(tmp_path / "named", tmp_path / "hidden", HIDE)
    before, after = opened(tmp_path / "named", pytest.fail), opened(tmp_path / "hidden", pytest.fail)
    assert all_alike(after) == all_alike(before) >= 2
    assert after.begin.anonymous and not before.begin.anonymous


def test_no_name_is_left_and_amounts_are(tmp_path: Path) -> None:
    record_week(tmp_path / "named")
    take_over(tmp_path / "named", tmp_path / "hidden", HIDE)
    (path,) = files_of(tmp_path / "hidden", pytest.fail)
    text = "\n".join(msgspec.json.encode(entry).decode() for entry in entries(path, pytest.fail))
    assert re.findall(r"train|report|huge|research|finance|\bn[12]\b", text) == []
    assert '"cpu":"5"' in text and "Running" in text and "scheduling.k8s.io/group-name" in text


def test_equal_names_are_hidden_alike_wherever_they_stand() -> None:
    def told(kind: str, body: bytes) -> dict[str, object]:
        hidden = HIDE(Put(0.0, kind, msgspec.Raw(body)))
        assert isinstance(hidden, Put)
        return dict(msgspec.json.decode(hidden.object))

    term = b'{"labelSelector":{"matchLabels":{"team":"blue"}},"topologyKey":"kubernetes.io/hostname"}'
    affinity = b'{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[' + term + b"]}}"
    pod = b'{"metadata":{"name":"web-7","labels":{"team":"blue","app":"true"}},"spec":{"nodeName":"gpu-3","affinity":' + affinity + b"}}"
    node = b'{"metadata":{"name":"gpu-3","labels":{"kubernetes.io/hostname":"gpu-3"}}}'
    seen, place = msgspec.json.encode(told("Pod", pod)).decode(), msgspec.json.encode(told("Node", node)).decode()
    name = re.search(r'"nodeName":"(x[0-9a-f]{12}-3)"', seen)
    assert name is not None and place.count(name[1]) == 2
    blue = re.findall(r'"(x[0-9a-f]{12})":"(x[0-9a-f]{12})"', seen)
    assert len(blue) == 2 and len(set(blue)) == 1
    assert '"true"' in seen and '"kubernetes.io/hostname"' in seen and "-7" in seen and "gpu" not in seen + place


def test_a_key_must_be_long_enough_and_a_file_is_not_overwritten(tmp_path: Path) -> None:
    record_week(tmp_path / "named")
    (tmp_path / "key").write_bytes(b"short")
    arguments = ["record", str(tmp_path / "out"), "--from", str(tmp_path / "named"), "--anonymise", str(tmp_path / "key")]
    assert "too short for a key" in str(CliRunner().invoke(cli, arguments).exception)
    (tmp_path / "key").write_bytes(bytes(range(32)))
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    with pytest.raises(InputError, match="is there already"):
        take_over(tmp_path / "named", tmp_path / "out", as_it_is)
