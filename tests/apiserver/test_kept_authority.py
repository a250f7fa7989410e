"""The authority that a directory keeps: taken as it is, or refused in a line."""

from __future__ import annotations

import base64
import ssl
import time
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from pumice.api.errors import InputError
from pumice.client.certificates import DAY_S, VALID_DAYS, kept_authority, make_authority
from tests.apiserver.server_process import in_thread, kubeconfig_of

NOW = 1_767_225_600.0


def test_it_is_made_once(tmp_path: Path) -> None:
    assert kept_authority(tmp_path, NOW).pair == kept_authority(tmp_path, NOW).pair


def test_it_is_renewed_before_it_ends_and_who_trusts_the_old_one_trusts_what_it_issues(tmp_path: Path) -> None:
    day_s = 86400.0
    old = kept_authority(tmp_path, NOW)
    assert kept_authority(tmp_path, NOW + 0.89 * VALID_DAYS * day_s).pem == old.pem
    later = NOW + 0.91 * VALID_DAYS * day_s
    new = kept_authority(tmp_path, later)
    assert new.pem != old.pem and new.pair.key == old.pair.key and kept_authority(tmp_path, later).pem == new.pem
    issued = x509.load_pem_x509_certificate(new.issue("pumice", "localhost").certificate)
    for authority in (old, new):
        issued.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pem))
    assert issued.not_valid_after_utc.timestamp() > NOW + VALID_DAYS * day_s


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_server_that_runs_on_takes_another_before_its_own_ends(is_kept: bool, tmp_path: Path) -> None:
    with in_thread(data=tmp_path / "state" if is_kept else None) as running:
        server, config, now = running.server, kubeconfig_of(running, tmp_path), time.time()
        old, first = server.certificate, _presented(server.port)
        for years in (8.9, 9.1):
            running.call(lambda store, years=years: server.renew(now + years / 10 * VALID_DAYS * DAY_S))
            assert (server.certificate == old, _presented(server.port) == first) == (years < 9, years < 9)
        presented = _presented(server.port)
        for authority in (old, server.certificate):
            presented.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.encode()))
        assert presented.not_valid_after_utc.timestamp() > now + 1.8 * VALID_DAYS * DAY_S
        told = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
        assert base64.b64decode(told).decode() == server.certificate


def _presented(port: int) -> x509.Certificate:
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode())


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
