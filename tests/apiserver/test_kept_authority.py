"""The authority that a directory keeps: taken as it is, or refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.errors import InputError
from pumice.client.certificates import kept_authority, make_authority

NOW = 1_767_225_600.0


def test_it_is_made_once(tmp_path: Path) -> None:
    assert kept_authority(tmp_path, NOW).pair == kept_authority(tmp_path, NOW).pair


@pytest.mark.parametrize("damage", [b"", b"x", b"\xff" * 40], ids=["empty", "text", "bytes"])
@pytest.mark.parametrize("name", ["ca.key", "ca.crt"])
def test_a_damaged_one_is_refused_with_what_to_do(name: str, damage: bytes, tmp_path: Path) -> None:
    kept_authority(tmp_path, NOW)
    (tmp_path / name).write_bytes(damage)
    with pytest.raises(InputError, match=r"ca\.key: it or ca\.crt is damaged; put it back from a copy, or remove") as caught:
        kept_authority(tmp_path, NOW)
    assert "\n" not in str(caught.value)


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    kept_authority(tmp_path, NOW)
    (tmp_path / "ca.key").write_bytes(make_authority(NOW).pair.key)
    with pytest.raises(InputError, match=r"not the key of ca\.crt"):
        kept_authority(tmp_path, NOW)
