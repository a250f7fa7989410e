"""What a right is needed for: acting as another, creating by other verbs than create, and what the usual roles hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.cluster.apiserver import StatusError, Store, UserInfo
from pumice.cluster.apiserver.auth.grants import Attributes
from pumice.cluster.apiserver.auth.rbac import allowed
from pumice.cluster.apiserver.bootstrap import bootstrap
from tests.apiserver.made import store
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire

RBAC = "rbac.authorization.k8s.io"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
APPLY = "application/apply-patch+yaml"


def grant(made: Store, user: str, *rules: dict[str, Any]) -> None:
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": user}, "rules": list(rules)})
    reference = {"kind": "ClusterRole", "name": user, "apiGroup": RBAC}
    subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    made.create(f"clusterrolebindings.{RBAC}", {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]})


def rule(verbs: str, resources: str, group: str = "", *names: str) -> dict[str, Any]:
    found = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return found | ({"resourceNames": list(names)} if names else {})


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread(plain=True, users={name: UserInfo(name) for name in ("actor", "patcher", "maker", "binder")}) as started:
        yield started


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    with Wire(running) as made:
        yield made


def test_each_part_of_another_needs_its_own_right(running: Running, wire: Wire) -> None:
    authentication = "authentication.k8s.io"
    running.call(
        lambda made: grant(
            made,
            "actor",
            rule("impersonate", "users", "", "bob"),
            rule("impersonate", "groups", "", "team"),
            rule("impersonate", "serviceaccounts", "", "robot"),
            rule("impersonate", "uids", authentication, "u-1"),
            rule("impersonate", "userextras/scopes", authentication, "read"),
        )
    )
    wire._token = "actor"
    bob = {"Impersonate_User": "bob"}
    for headers, code in (
        (bob, 201),
        ({"Impersonate_User": "carol"}, 403),
        (bob | {"Impersonate_Group": "team"}, 201),
        (bob | {"Impersonate_Group": "system:masters"}, 403),
        (bob | {"Impersonate_Uid": "u-1"}, 201),
        (bob | {"Impersonate_Uid": "u-2"}, 403),
        (bob | {"Impersonate_Extra_Scopes": "read"}, 201),
        (bob | {"Impersonate_Extra_Scopes": "read, write"}, 403),
        (bob | {"Impersonate_Extra_Other": "read"}, 403),
        ({"Impersonate_User": "system:serviceaccount:default:robot"}, 201),
        ({"Impersonate_User": "system:serviceaccount:default:other"}, 403),
        ({"Impersonate_Group": "team"}, 400),
        ({"Impersonate_Uid": "u-1"}, 400),
    ):
        assert wire.ask("POST", WHO_AM_I, {}, **headers)[0] == code, headers
    told = wire.ask("POST", WHO_AM_I, {}, **bob, Impersonate_Uid="u-1", Impersonate_Extra_Scopes="read")[1]["status"]["userInfo"]
    assert told == {"username": "bob", "groups": ["system:authenticated"], "uid": "u-1", "extra": {"scopes": ["read"]}}
    robot = wire.ask("POST", WHO_AM_I, {}, Impersonate_User="system:serviceaccount:default:robot")[1]["status"]["userInfo"]
    assert "system:serviceaccounts:default" in robot["groups"]


def test_who_creates_by_applying_or_by_putting_needs_the_right_to_create(running: Running, wire: Wire) -> None:
    running.call(lambda made: grant(made, "patcher", rule("patch update get", "configmaps endpoints")))
    running.call(lambda made: grant(made, "maker", rule("patch update create", "configmaps endpoints")))
    for resource, kind in (("configmaps", "ConfigMap"), ("endpoints", "Endpoints")):
        path = f"/api/v1/namespaces/default/{resource}/x"
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
        wire._token = "patcher"
        refused = wire.ask("PATCH", f"{path}?fieldManager=m", body, APPLY)
        assert (refused[0], refused[1]["message"].split(": ")[-1]) == (
            403,
            f'User "patcher" cannot create resource "{resource}" in API group "" in the namespace "default"',
        )
        assert wire.ask("PUT", path, body)[0] == (403 if resource == "endpoints" else 404)
        wire._token = "maker"
        if resource == "endpoints":
            assert wire.ask("PUT", path, body)[0] == 201
        else:
            assert wire.ask("PATCH", f"{path}?fieldManager=m", body, APPLY)[0] == 201
        wire._token = "patcher"
        assert wire.ask("PATCH", f"{path}?fieldManager=m", body, APPLY)[0] == 200
        assert wire.ask("PUT", path, body)[0] == 200


def test_who_may_bind_any_role_may_bind_one_that_is_not_there(running: Running, wire: Wire) -> None:
    running.call(lambda made: grant(made, "binder", rule("create", "rolebindings", RBAC), rule("bind", "roles", RBAC)))
    wire._token = "binder"
    for kind, code in (("Role", 201), ("ClusterRole", 403)):
        body = {"metadata": {"name": kind.lower()}, "roleRef": {"kind": kind, "name": "none", "apiGroup": RBAC}}
        assert wire.ask("POST", f"/apis/{RBAC}/v1/namespaces/default/rolebindings", body)[0] == code


@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_the_usual_roles_lead_to_nobody_else_and_to_nothing_of_the_cluster(role: str) -> None:
    made = store()
    bootstrap(made)
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    reference = {"kind": "ClusterRole", "name": role, "apiGroup": RBAC}
    made.create(f"clusterrolebindings.{RBAC}", {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]})
    ann = UserInfo("ann")
    for resource in ("users", "groups", "serviceaccounts"):
        assert not allowed(made, ann, Attributes("impersonate", "", resource, namespace="default", name="x"))
    for act in (
        Attributes("create", RBAC, "clusterrolebindings"),
        Attributes("escalate", RBAC, "roles", namespace="default"),
        Attributes("update", "", "pods", "status", "default"),
        Attributes("create", "", "pods", "binding", "default"),
        Attributes("update", "", "nodes"),
        Attributes("create", "", "namespaces"),
        Attributes("update", "", "resourcequotas", namespace="default"),
        Attributes("create", "scheduling.volcano.sh", "queues"),
        Attributes("delete", "apiextensions.k8s.io", "customresourcedefinitions"),
    ):
        assert not allowed(made, ann, act), act
    assert allowed(made, ann, Attributes("get", "", "pods", "log", "default"))
    assert allowed(made, ann, Attributes("list", "scheduling.volcano.sh", "queues"))
    assert allowed(made, ann, Attributes("create", "", "pods", "eviction", "default")) is (role != "view")
    assert allowed(made, ann, Attributes("create", "batch.volcano.sh", "jobs", "", "default")) is (role != "view")
    assert allowed(made, ann, Attributes("create", RBAC, "rolebindings", "", "default")) is (role == "admin")


def test_roles_of_an_older_server_are_brought_up_to_date_unless_somebody_keeps_them() -> None:
    made = store()
    wide = [{"verbs": ["*"], "apiGroups": [""], "resources": ["*"]}]
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "edit"}, "rules": wide})
    kept = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "view", "annotations": kept}, "rules": wide})
    bootstrap(made)
    assert made.get(f"clusterroles.{RBAC}", "edit")["rules"] != wide
    assert made.get(f"clusterroles.{RBAC}", "view")["rules"] == wide


SUBJECT = {"kind": "User", "name": "ann", "apiGroup": RBAC}
BINDING = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": RBAC}, "subjects": [SUBJECT]}


@pytest.mark.parametrize(
    ("resource", "change", "told"),
    [
        ("clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "other", "apiGroup": RBAC}}, "cannot change roleRef"),
        ("clusterrolebindings", {"subjects": [{"kind": "ServiceAccount", "name": "a"}]}, r"subjects\[0\]\.namespace: Required value"),
        ("clusterrolebindings", {"subjects": [{"kind": "Robot", "name": "a"}]}, "Unsupported value"),
        ("clusterrolebindings", {"subjects": [{"kind": "Group", "name": "a", "apiGroup": "x.io"}]}, "apiGroup: Unsupported value"),
        ("clusterroles", {"rules": [{"verbs": ["get"]}]}, "at least one api group"),
        ("clusterroles", {"rules": [{"verbs": [], "apiGroups": [""], "resources": ["pods"]}]}, "at least one value"),
        ("roles", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, "cannot apply to non-resource URLs"),
    ],
)
def test_roles_and_bindings_that_are_refused_on_update_too(resource: str, change: dict[str, Any], told: str) -> None:
    made = store()
    namespace = "default" if resource == "roles" else ""
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "r"}, "rules": []})
    first = BINDING if resource.endswith("bindings") else {"metadata": {"name": "x"}, "rules": []}
    there = made.create(f"{resource}.{RBAC}", first, namespace)
    with pytest.raises(StatusError, match=told) as refused:
        made.update(f"{resource}.{RBAC}", there | change)
    assert refused.value.code == 422
