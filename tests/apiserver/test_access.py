"""Who may reach the server, and what it asks of them."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cluster.apiserver import PatchRequest, Server, StatusError, UserInfo, WriteOptions
from pumice.cluster.apiserver.admission.attributes import SYSTEM
from pumice.cluster.apiserver.auth.grants import Attributes
from pumice.cluster.apiserver.auth.rbac import allowed
from pumice.cluster.apiserver.bootstrap import bootstrap
from tests.apiserver.made import pod, store
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
    with in_thread(plain=True, users={"secret": UserInfo("ann", ("team",))}) as running, Wire(running) as wire:
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
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Attributes("get", "", "pods"), True),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Attributes("delete", "apps", "deployments", "scale"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Attributes("get", "", "pods", "status"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}, Attributes("get", "", "pods", "status"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/status"]}, Attributes("get", "", "nodes", "status"), True),
        ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]}, Attributes("get", "", "pods"), False),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Attributes("get", "", "pods"), False),
        (
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
            Attributes("get", "", "pods", name="a"),
            True,
        ),
        (
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
            Attributes("get", "", "pods", name="b"),
            False,
        ),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics*"]}, Attributes("get", path="/metrics/x"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Attributes("get", path="/logs"), False),
    ],
)
def test_what_a_rule_allows(rule: dict[str, Any], act: Attributes, expected: bool) -> None:
    made = store()
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "r"}, "rules": [rule]})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    made.create(
        f"clusterrolebindings.{RBAC}",
        {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": RBAC}, "subjects": [subject]},
    )
    assert allowed(made, UserInfo("ann"), act) is expected
    assert not allowed(made, UserInfo("bob"), act)


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
        return allowed(made, UserInfo("ann"), Attributes(verb, group, plural, namespace=namespace))

    assert [what for what in may if not allows(what)] == []
    assert [what for what in may_not if allows(what)] == []
    assert [what for what in may if allows(what, "kube-system")] == [], "only in the namespace of the binding"


GETS_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
RULES_ROLES = {"verbs": ["create", "update", "patch"], "apiGroups": [RBAC], "resources": ["*"]}


@pytest.mark.parametrize(
    ("has", "gives", "accepted"),
    [
        ([GETS_PODS], [GETS_PODS], True),
        ([GETS_PODS], [GETS_PODS | {"resourceNames": ["p"]}], True),
        ([GETS_PODS | {"resourceNames": ["p"]}], [GETS_PODS], False),
        ([GETS_PODS], [GETS_PODS | {"verbs": ["get", "list"]}], False),
        ([GETS_PODS], [GETS_PODS | {"verbs": ["*"]}], False),
        ([GETS_PODS], [GETS_PODS | {"resources": ["pods/exec"]}], False),
        ([GETS_PODS], [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}], False),
        ([{"verbs": ["get"], "nonResourceURLs": ["/m*"]}], [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}], True),
        ([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}], [GETS_PODS, RULES_ROLES], True),
        ([{"verbs": ["escalate", "bind"], "apiGroups": [RBAC], "resources": ["*"]}], [GETS_PODS], True),
        ([{"verbs": ["escalate"], "apiGroups": [RBAC], "resources": ["clusterroles"]}], [GETS_PODS], False),
    ],
)
def test_nobody_gives_away_rights_that_they_have_not(has: list[Any], gives: list[Any], accepted: bool) -> None:
    made = store()
    reference = {"kind": "ClusterRole", "name": "own", "apiGroup": RBAC}
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "own"}, "rules": [*has, RULES_ROLES]})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    made.create(f"clusterrolebindings.{RBAC}", {"metadata": {"name": "own"}, "roleRef": reference, "subjects": [subject]})
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "big"}, "rules": gives})
    options = WriteOptions(user=UserInfo("ann"))

    def gives_it(resource: str, obj: dict[str, Any]) -> bool:
        try:
            made.create(resource, obj, options=options)
        except StatusError as error:
            assert error.code == 403
            assert 'user "ann" is attempting to grant RBAC permissions not currently held' in error.message
            return False
        return True

    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "big", "apiGroup": RBAC}, "subjects": [subject]}
    assert gives_it(f"clusterrolebindings.{RBAC}", binding) is accepted
    may_escalate = has[0].get("resources") == ["clusterroles"]
    assert gives_it(f"clusterroles.{RBAC}", {"metadata": {"name": "new"}, "rules": gives}) is (accepted or may_escalate)
    made.patch(f"clusterroles.{RBAC}", "big", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), options=options)


def test_a_role_that_is_not_there_is_bound_by_administrators_only() -> None:
    made = store()
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "own"}, "rules": [RULES_ROLES]})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    for name, role, user in (("a", "own", SYSTEM), ("b", "none", SYSTEM)):
        reference = {"kind": "ClusterRole", "name": role, "apiGroup": RBAC}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        made.create(f"clusterrolebindings.{RBAC}", body, options=WriteOptions(user=user))
    with pytest.raises(StatusError, match=r'clusterroles.* "none" not found'):
        made.create(f"clusterrolebindings.{RBAC}", body | {"metadata": {"name": "c"}}, options=WriteOptions(user=UserInfo("ann")))


def test_who_acts_as_another_must_be_allowed_each_of_his_groups() -> None:
    rules = [
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["readers"]},
    ]

    def grant(made: Any) -> None:
        for name, subject, its_rules in (
            ("actors", {"kind": "User", "name": "ann"}, rules),
            ("readers", {"kind": "Group", "name": "readers"}, [GETS_PODS]),
        ):
            made.create(f"clusterroles.{RBAC}", {"metadata": {"name": name}, "rules": its_rules})
            reference = {"kind": "ClusterRole", "name": name, "apiGroup": RBAC}
            body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject | {"apiGroup": RBAC}]}
            made.create(f"clusterrolebindings.{RBAC}", body)
        made.create("pods", pod("p"), "default")

    path = "/api/v1/namespaces/default/pods/p"
    with in_thread(plain=True, users={"secret": UserInfo("ann")}) as running, Wire(running) as wire:
        running.call(grant)
        wire._token = "secret"
        assert wire.ask("GET", path)[0] == 403
        assert wire.ask("GET", path, Impersonate_User="bob")[0] == 403
        assert wire.ask("GET", path, Impersonate_User="bob", Impersonate_Group="readers")[0] == 200
        refused = wire.ask("GET", path, Impersonate_User="bob", Impersonate_Group="readers,writers")
        assert refused[0] == 403
        assert 'User "ann" cannot impersonate resource "groups"' in refused[1]["message"]


def test_groups_and_extra_that_are_impersonated_may_have_commas() -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with in_thread(plain=True) as running, Wire(running) as wire:
        sent = wire.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, Impersonate_User="bob")
        more = b"".join(b"Impersonate-%s\r\n" % line for line in (b"Group: b", b"Group: ,,a", b"Extra-Key: one,two", b"Extra-Key: three"))
        head, _, body = sent.partition(b"\r\n\r\n")
        wire.send(head + b"\r\n" + more + b"\r\n" + body)
        told = json.loads(wire.answer()[2])["status"]["userInfo"]
    assert told["groups"] == ["b", ",,a", "system:authenticated"] and told["extra"] == {"key": ["one,two", "three"]}


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
