"""Kubeconfig files mean to us what they mean to kubectl, and what is wrong with one is said with file, line, context and field."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from aloop import run

from pumice.api.errors import InputError
from pumice.client.access import TOKEN_FILE_AGE_S, Access
from pumice.client.certificates import Authority
from pumice.client.proxy_environment import from_environment
from pumice.client.renewed_files import LOOK_AGAIN_S
from pumice.client.resolve_access import find

PAIR = Authority(time.time(), days=1).issue("jane")


def config(user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "dev") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "ml"}}],
    }


def written(folder: Path, content: Any, name: str = "config") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return str(path)


def access(folder: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **options: Any) -> Access:
    return find(written(folder, config(user, cluster)), environ={}, **options)


def header(found: Access) -> str:
    return str(run(found.credentials.authorization()))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_current_context_is_used_or_the_one_named(tmp_path: Path) -> None:
    both = config({"token": "t1"})
    other = config({"token": "t2"}, {"server": "https://other"}, name="prod")
    for part in ("clusters", "users", "contexts"):
        both[part] += other[part]
    path = written(tmp_path, both)
    found = find(path, environ={})
    assert (found.server, found.namespace, header(found)) == ("https://10.0.0.1:6443", "ml", "Bearer t1")
    assert header(find(path, context="prod", environ={})) == "Bearer t2"
    assert find(path, master="http://127.0.0.1:8080/", environ={}).server == "http://127.0.0.1:8080"


def test_of_several_files_the_first_that_has_a_name_keeps_it(tmp_path: Path) -> None:
    first, second = config({"token": "first"}), config({"token": "second", "as": "x"}, {"tls-server-name": "x"})
    del first["contexts"], first["current-context"]
    paths = [written(tmp_path, first, "one"), str(tmp_path / "missing"), written(tmp_path, second, "two")]
    found = find(environ={"KUBECONFIG": os.pathsep.join(paths)})
    assert header(found) == "Bearer first" and found.headers == () and found.trust.current().server_name == ""


def test_home_is_looked_into_and_then_the_pod_we_run_in(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", config({"token": "home"}))
    assert header(find(environ={"HOME": str(tmp_path)})) == "Bearer home"
    account = tmp_path / "account"
    account.mkdir()
    for name, content in (("token", "pod-token\n"), ("ca.crt", "PEM"), ("namespace", "volcano-system")):
        (account / name).write_text(content)
    environ = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = find(environ=environ, service_account=account)
    assert (found.server, found.namespace, found.trust.current().ca_pem) == ("https://[fd00::1]:443", "volcano-system", b"PEM")
    assert header(found) == "Bearer pod-token"
    with pytest.raises(InputError, match="name a file with --kubeconfig"):
        find(environ={"HOME": "/nowhere"})


def test_a_token_file_is_read_again_once_a_minute_and_survives_a_moment_of_absence(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "secrets" / "token"
    file.parent.mkdir()
    file.write_text("one\n")
    found = access(tmp_path, {"tokenFile": "secrets/token", "token": "ignored"}, clock=lambda: now)
    assert header(found) == "Bearer one"
    file.write_text("two")
    now = TOKEN_FILE_AGE_S - 1
    assert header(found) == "Bearer one"
    now = TOKEN_FILE_AGE_S
    assert header(found) == "Bearer two"
    file.unlink()
    now = 3 * TOKEN_FILE_AGE_S
    assert header(found) == "Bearer two"
    file.write_text("three")
    assert header(found) == "Bearer three"


def test_basic_authentication_and_impersonation(tmp_path: Path) -> None:
    user = {"username": "jane", "password": "s3:cret", "as": "bob", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"x/y": ["1"]}}
    found = access(tmp_path, user)
    assert header(found) == "Basic " + b64(b"jane:s3:cret")
    assert found.headers == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-x%2Fy", "1"),
    )


def test_certificates_come_from_data_or_from_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name, content in (("c.pem", PAIR.certificate), ("k.pem", PAIR.key), ("ca.pem", b"AUTHORITY")):
        (tmp_path / "pki" / name).write_bytes(content)
    by_file = access(tmp_path, {"client-certificate": "pki/c.pem", "client-key": "pki/k.pem"}, {"certificate-authority": "pki/ca.pem"})
    data = {"client-certificate-data": b64(PAIR.certificate), "client-key-data": b64(PAIR.key)}
    by_data = access(tmp_path, data, {"certificate-authority-data": b64(b"AUTHORITY")})
    for found in (by_file, by_data):
        pair = found.credentials.key_pair()
        assert pair and (pair.certificate, pair.key) == (PAIR.certificate, PAIR.key)
        assert found.trust.current().ca_pem == b"AUTHORITY"
    assert access(tmp_path, {}, {"insecure-skip-tls-verify": True}).trust.current().insecure
    assert access(tmp_path, {}, {"tls-server-name": "api"}).trust.current().server_name == "api"


def test_a_certificate_in_files_is_taken_over_when_it_is_renewed_and_whole(tmp_path: Path) -> None:
    now = 0.0
    renewed = Authority(time.time(), days=1).issue("jane")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(PAIR.certificate)
    key.write_bytes(PAIR.key)
    found = access(tmp_path, {"client-certificate": "c.pem", "client-key": "k.pem"}, clock=lambda: now)

    def presented() -> bytes:
        pair = found.credentials.key_pair()
        assert pair is not None and pair is found.credentials.key_pair(), "one object for one certificate"
        return pair.certificate

    assert presented() == PAIR.certificate
    certificate.write_bytes(renewed.certificate)
    now += LOOK_AGAIN_S - 1
    assert presented() == PAIR.certificate, "not looked at yet"
    now += 1
    assert presented() == PAIR.certificate, "the key is still the old one"
    key.unlink()
    now += LOOK_AGAIN_S
    assert presented() == PAIR.certificate, "gone for a moment"
    key.write_bytes(renewed.key)
    now += LOOK_AGAIN_S
    assert presented() == renewed.certificate
    certificate.write_bytes(PAIR.certificate)
    key.write_bytes(PAIR.key)
    found.credentials.refused()
    assert presented() == PAIR.certificate, "a refusal looks at once"
    given = {"client-certificate-data": b64(PAIR.certificate), "client-key-data": b64(PAIR.key)}
    fixed = access(tmp_path, given).credentials
    fixed.refused()
    assert fixed.key_pair() is fixed.key_pair()


def test_the_proxy_of_the_file_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    assert access(tmp_path, {}, {"proxy-url": "http://proxy:3128"}).proxy == "http://proxy:3128"
    found = find(written(tmp_path, config()), environ={"HTTPS_PROXY": "http://env:3128"})
    assert found.proxy == "http://env:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "used"),
    [
        ("https://10.1.2.3:6443", "", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://10.1.2.3:6443", "2.3", True),
        ("https://[fd00::1]:6443", "fd00:0::1", False),
        ("https://api.corp:6443", "corp", False),
        ("https://api.corp:6443", ".corp", False),
        ("https://corp:6443", ".corp", True),
        ("https://api.corp:6443", "api.corp:6443, x", False),
        ("https://api.corp:6443", "*", False),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("http://10.1.2.3:8080", "", False),
    ],
)
def test_the_environments_proxy_is_used_as_go_does(server: str, no_proxy: str, used: bool) -> None:
    assert from_environment(server, {"https_proxy": "proxy:3128", "NO_PROXY": no_proxy}) == ("http://proxy:3128" if used else "")


WRONG = [
    ({"users": [{"name": "dev", "user": {"token": 7}}]}, r":\d+: document 1, user dev, users\[0\]\.user\.token: expected str, got int"),
    ({"current-context": "deV"}, r'contexts: there is no context "deV"; did you mean "dev"\?'),
    ({"current-context": ""}, r"current-context: no current-context is set; name one with --context: dev"),
    ({"clusters": []}, r':\d+: .*context dev, contexts\[0\]\.context\.cluster: there is no cluster "dev"'),
    ({"users": [{"name": "devs", "user": {}}]}, r'context dev, .*user: there is no user "dev"; did you mean "devs"\?'),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_is_wrong_with_a_file_is_said_where_it_stands(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as failed:
        find(written(tmp_path, {**config(), **change}), environ={})
    assert str(failed.value).startswith(str(tmp_path)) and re.search(message, str(failed.value)), str(failed.value)


WRONG_USERS = [
    ({"token": "t", "username": "u"}, "user.token: both a token and a user name are given"),
    ({"client-certificate-data": b64(PAIR.certificate)}, "is given without client-key"),
    ({"client-certificate-data": "!!!"}, "client-certificate-data: is not base64"),
    ({"client-certificate": "nowhere.pem"}, 'client-certificate: "nowhere.pem" cannot be read'),
    ({"tokenFile": "nowhere"}, 'tokenFile: "nowhere" is not a file'),
    ({"as-groups": ["a"]}, "user.as: is empty, but groups"),
    ({"auth-provider": {"name": "gcp"}}, "auth-provider: is no longer supported"),
    ({"exec": {"command": "x", "apiVersion": "v9"}}, 'exec.apiVersion: "v9" is not known'),
    ({"exec": {"apiVersion": "v9"}}, "missing required field command"),
]


@pytest.mark.parametrize(("user", "message"), WRONG_USERS)
def test_what_is_wrong_with_a_user_is_said(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as failed:
        access(tmp_path, user)
    assert message in str(failed.value) and "user dev" in str(failed.value)


WRONG_CLUSTERS = [
    ({"server": ""}, "server: is empty"),
    ({"server": "ftp://x"}, "is not a URL"),
    ({"certificate-authority-data": b64(b"x"), "insecure-skip-tls-verify": True}, "insecure-skip-tls-verify: has no sense together"),
    ({"proxy-url": "socks5://x"}, "proxy-url: "),
]


@pytest.mark.parametrize(("cluster", "message"), WRONG_CLUSTERS)
def test_what_is_wrong_with_a_cluster_is_said(tmp_path: Path, cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as failed:
        access(tmp_path, {}, cluster)
    assert message in str(failed.value) and "context dev, cluster dev" in str(failed.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read"):
        find(str(tmp_path / "nowhere"), environ={})


PLUGIN = """
import json, os, sys, time
runs = os.path.join(os.path.dirname(__file__), "runs")
with open(runs, "a") as file:
    file.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
while "GO" in os.environ and not os.path.exists(os.environ["GO"]):
    time.sleep(0.01)
status = json.loads(os.environ["STATUS"])
status["token"] = status.get("token", "") and status["token"] + str(len(open(runs).readlines()))
print(json.dumps({"kind": "ExecCredential", "apiVersion": os.environ["VERSION"], "status": status}))
sys.exit(int(os.environ.get("CODE", "0")))
"""
V1 = "client.authentication.k8s.io/v1"


def plugin(folder: Path, status: dict[str, Any], **more: Any) -> dict[str, Any]:
    (folder / "plugin.py").write_text(PLUGIN)
    env = {"STATUS": json.dumps(status), "VERSION": V1} | more.pop("env", {})
    pairs = [{"name": name, "value": value} for name, value in env.items()]
    command = {"command": sys.executable, "args": [str(folder / "plugin.py")], "apiVersion": V1, "interactiveMode": "Never"}
    return {"exec": command | {"env": pairs} | more}


def runs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs").read_text().splitlines()]


def test_a_plugins_token_is_kept_until_it_expires_or_is_refused(tmp_path: Path) -> None:
    now = 1767225600.0  # 2026-01-01T00:00:00Z
    found = access(tmp_path, plugin(tmp_path, {"token": "t", "expirationTimestamp": "2026-01-01T00:10:00Z"}), wall=lambda: now)
    assert header(found) == "Bearer t1" and header(found) == "Bearer t1"
    now += 595
    assert header(found) == "Bearer t2"
    now -= 595
    assert header(found) == "Bearer t2"
    found.credentials.refused()
    assert header(found) == "Bearer t3"
    assert runs(tmp_path)[0] == {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}


def test_a_slow_plugin_runs_on_for_the_others_when_somebody_waits_no_longer(tmp_path: Path) -> None:
    """A step of an election has five seconds, and the next one would begin anew."""
    found = access(tmp_path, plugin(tmp_path, {"token": "t"}, env={"GO": str(tmp_path / "go")}))

    async def story() -> str:
        impatient = asyncio.create_task(found.credentials.authorization())
        while not (tmp_path / "runs").exists():
            await asyncio.sleep(0.01)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        (tmp_path / "go").touch()
        return await found.credentials.authorization()

    assert asyncio.run(story()) == "Bearer t1" and len(runs(tmp_path)) == 1


def test_a_plugin_may_be_told_of_the_cluster_and_give_a_certificate(tmp_path: Path) -> None:
    status = {"clientCertificateData": PAIR.certificate.decode(), "clientKeyData": PAIR.key.decode()}
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    cluster = {"certificate-authority-data": b64(b"CA"), "extensions": extension}
    found = access(tmp_path, plugin(tmp_path, status, provideClusterInfo=True), cluster)
    assert header(found) == ""
    pair = found.credentials.key_pair()
    assert pair and pair.certificate == PAIR.certificate
    told = {"server": "https://10.0.0.1:6443", "certificate-authority-data": b64(b"CA"), "config": {"audience": "x"}}
    assert runs(tmp_path)[0]["spec"]["cluster"] == told


@pytest.mark.parametrize(
    ("status", "more", "message"),
    [
        ({}, {}, "gave neither a token nor a certificate"),
        ({"token": "t"}, {"env": {"CODE": "3"}}, "ended with code 3"),
        ({"token": "t"}, {"env": {"VERSION": "v0"}}, "answered in v0"),
        ({"token": "t", "expirationTimestamp": "soon"}, {}, 'expirationTimestamp "soon" is not an RFC 3339 time'),
        ({"clientKeyData": "k"}, {}, "a key without its certificate"),
        ({"token": "t"}, {"args": ["-c", "print('hello')"]}, "did not write an ExecCredential"),
        (
            {"token": "t"},
            {"command": "no-such-program", "installHint": "Get it at x"},
            "(No such file or directory); Get it at x",
        ),
        ({"token": "t"}, {"command": "./no-such-program"}, "install it or correct the path"),
    ],
)
def test_what_a_plugin_does_wrong_is_said(tmp_path: Path, status: dict[str, Any], more: dict[str, Any], message: str) -> None:
    found = access(tmp_path, plugin(tmp_path, status, **more))
    with pytest.raises(InputError) as failed:
        header(found)
    assert message in str(failed.value) and "user dev, exec.command" in str(failed.value)


def test_a_plugin_that_needs_a_terminal_is_refused_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = access(tmp_path, plugin(tmp_path, {"token": "t"}, interactiveMode="Always"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is no terminal"):
        header(found)
