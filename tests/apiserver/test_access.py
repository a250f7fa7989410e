"""Who may reach the server, and what it asks of them."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.apiserver import Server, User
from pumice.apiserver.bootstrap import bootstrap
from pumice.apiserver.rbac import Act, allowed
from tests.apiserver.made import store
from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.apiserver.wire import Wire

RBAC = "rbac.authorization.k8s.io"


def test_the_kubeconfig_is_for_its_owner_and_names_the_authority(tmp_path: Path) -> None:
    with in_thread() as running:
        path = kubeconfig_of(running, tmp_path)
        assert path.stat().st_mode & 0o777 == 0o600
        config = yaml.safe_load(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == running.url
        authority = __import__("base64").b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        trusting = ssl.create_default_context(cadata=authority)
        with urllib.request.urlopen(f"{running.url}/healthz", context=trusting, timeout=10) as answer:
            assert answer.read() == b"ok"
        with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
            urllib.request.urlopen(f"{running.url}/healthz", context=ssl.create_default_context(), timeout=10)


def test_a_kubeconfig_goes_on_to_work_after_a_restart(tmp_path: Path) -> None:
    authorities = []
    for _ in range(2):
        with in_thread(data=tmp_path / "state") as running:
            config = yaml.safe_load(kubeconfig_of(running, tmp_path).read_text())
            authorities.append((config["clusters"][0]["cluster"]["certificate-authority-data"], config["users"][0]["user"]["token"]))
    assert authorities[0] == authorities[1]
    assert (tmp_path / "state" / "ca.key").stat().st_mode & 0o777 == 0o600


def test_plain_http_is_for_loopback_only() -> None:
    with pytest.raises(ValueError, match="plain HTTP is for loopback only"):
        Server(host="0.0.0.0", plain=True)


def test_users_with_tokens_of_their_own_have_the_rights_of_their_roles() -> None:
    with in_thread(plain=True, users={"secret": User("ann", ("team",))}) as running, Wire(running) as wire:
        wire._token = "secret"
        assert wire.ask("GET", "/api/v1/namespaces/default/pods")[0] == 403
        assert wire.ask("GET", "/apis")[0] == 200

        def grant(made: Any) -> None:
            made.create(
                f"roles.{RBAC}",
                {"metadata": {"name": "r"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]},
                "default",
            )
            subject = {"kind": "Group", "name": "team", "apiGroup": RBAC}
            binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r", "apiGroup": RBAC}, "subjects": [subject]}
            made.create(f"rolebindings.{RBAC}", binding, "default")

        running.call(grant)
        assert wire.ask("GET", "/api/v1/namespaces/default/pods")[0] == 200
        assert wire.ask("GET", "/api/v1/pods")[0] == 403
        assert wire.ask("GET", "/api/v1/namespaces/default/pods", Impersonate_User="root", Impersonate_Group="system:masters")[0] == 403


@pytest.mark.parametrize(
    ("rule", "act", "expected"),
    [
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Act("get", "", "pods"), True),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Act("delete", "apps", "deployments", "scale"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Act("get", "", "pods", "status"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}, Act("get", "", "pods", "status"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/status"]}, Act("get", "", "nodes", "status"), True),
        ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]}, Act("get", "", "pods"), False),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Act("get", "", "pods"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}, Act("get", "", "pods", name="a"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}, Act("get", "", "pods", name="b"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics*"]}, Act("get", path="/metrics/x"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Act("get", path="/logs"), False),
    ],
)
def test_what_a_rule_allows(rule: dict[str, Any], act: Act, expected: bool) -> None:
    made = store()
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "r"}, "rules": [rule]})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    made.create(
        f"clusterrolebindings.{RBAC}",
        {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": RBAC}, "subjects": [subject]},
    )
    assert allowed(made, User("ann"), act) is expected
    assert not allowed(made, User("bob"), act)


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("view", ["get pods", "list jobs.batch.volcano.sh", "watch events"], ["get secrets", "create pods", "get roles." + RBAC]),
        ("edit", ["create pods", "delete jobs.batch.volcano.sh", "get secrets"], ["create roles." + RBAC]),
        ("admin", ["create roles." + RBAC, "get secrets"], []),
    ],
)
def test_the_usual_roles_are_there(role: str, may: list[str], may_not: list[str]) -> None:
    made = store()
    bootstrap(made)
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    reference = {"kind": "ClusterRole", "name": role, "apiGroup": RBAC}
    made.create(f"rolebindings.{RBAC}", {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}, "default")

    def allows(what: str, namespace: str = "default") -> bool:
        verb, _, resource = what.partition(" ")
        plural, _, group = resource.partition(".")
        return allowed(made, User("ann"), Act(verb, group, plural, namespace=namespace))

    assert [what for what in may if not allows(what)] == []
    assert [what for what in may_not if allows(what)] == []
    assert [what for what in may if allows(what, "kube-system")] == [], "only in the namespace of the binding"


def test_on_other_addresses_than_loopback_it_speaks_tls_with_its_own_authority(tmp_path: Path) -> None:
    with in_thread(host="0.0.0.0") as running:
        config = yaml.safe_load(kubeconfig_of(running, tmp_path).read_text())
        assert config["clusters"][0]["cluster"]["server"].startswith("https://")
        assert config["clusters"][0]["cluster"]["certificate-authority-data"]
        port = running.server.port
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not plain.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_kubeconfig_is_private_even_where_one_lay_open_before(tmp_path: Path) -> None:
    path, target = tmp_path / "kubeconfig", tmp_path / "elsewhere"
    target.write_text("not to be touched")
    path.symlink_to(target)
    with in_thread() as running:
        kubeconfig_of(running, tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not path.is_symlink()
    assert target.read_text() == "not to be touched"


HOSTILE = ("../../evil", "..%2f..%2fevil", "%2e%2e/%2e%2e/evil", "/etc/evil", "a\x00b", "..", "a/../../b")


def test_no_name_leads_out_of_the_data_directory(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    with in_thread(plain=True, data=state) as running, Wire(running) as wire:
        known = {path.name for path in state.iterdir()}
        for name in HOSTILE:
            for body in (
                {"metadata": {"name": name}},
                {"metadata": {"name": "x", "namespace": name}},
                {"metadata": {"generateName": name}},
            ):
                for path in ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces", "/api/v1/nodes"):
                    assert wire.ask("POST", path, body)[0] < 500
            text = "".join(letter if letter.isprintable() else "%00" for letter in name)
            for path in (f"/api/v1/namespaces/{text}/configmaps", f"/api/v1/nodes/{text}", f"/openapi/v3/{text}", f"/{text}"):
                assert wire.ask("GET", path)[0] in (200, 301, 400, 404)
        assert {path.name for path in state.iterdir()} <= known | {"pumice.db-wal", "pumice.db-shm"}
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["state"]
