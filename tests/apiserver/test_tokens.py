"""Tokens of service accounts: whom they stand for, for how long, and what ends them earlier."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.cluster.apiserver import Server, StatusError, Store, UserInfo
from pumice.cluster.apiserver.auth.token_requests import answer
from pumice.cluster.apiserver.auth.tokens import AUDIENCE, Tokens
from tests.apiserver.made import Clock, pod, store
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire

KEY = b"0123456789abcdef"


class Issuer:
    """A store with a service account, and the tokens made for it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store: Store = store(self.clock)
        self.tokens = Tokens("admin", KEY)
        self.account()

    def account(self) -> None:
        self.store.create("serviceaccounts", {"metadata": {"name": "robot"}}, "default")

    def ask(self, **spec: Any) -> dict[str, Any]:
        return answer(self.store, self.tokens, "default", "robot", {"spec": spec})

    def user(self, token: str) -> UserInfo | None:
        return self.tokens.user(token, self.clock.now, self.store)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    yield Issuer()


def test_a_token_stands_for_its_account_and_says_so(issuer: Issuer) -> None:
    token = issuer.ask()["status"]["token"]
    user = issuer.user(token)
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert user.uid == issuer.store.get("serviceaccounts", "robot", "default")["metadata"]["uid"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == user.name
    assert (claims["aud"], claims["exp"] - claims["iat"]) == ([AUDIENCE], 3600)


def test_a_token_ends_when_it_says(issuer: Issuer) -> None:
    made = issuer.ask(expirationSeconds=600)
    assert made["spec"]["expirationSeconds"] == 600
    issuer.clock.now += 599
    assert issuer.user(made["status"]["token"]) is not None
    issuer.clock.now += 1
    assert issuer.user(made["status"]["token"]) is None


@pytest.mark.parametrize("seconds", [0, 599, -1, 2**32 + 1])
def test_no_token_lasts_less_than_ten_minutes_or_for_ever(issuer: Issuer, seconds: int) -> None:
    with pytest.raises(StatusError, match="may not specify a duration"):
        issuer.ask(expirationSeconds=seconds)


def test_a_token_ends_with_its_account_though_another_of_the_name_follows(issuer: Issuer) -> None:
    token = issuer.ask()["status"]["token"]
    issuer.store.delete("serviceaccounts", "robot", "default")
    assert issuer.user(token) is None
    issuer.account()
    assert issuer.user(token) is None


@pytest.mark.parametrize("resource", ["pods", "secrets"])
def test_a_token_ends_with_what_it_is_bound_to(issuer: Issuer, resource: str) -> None:
    def make() -> dict[str, Any]:
        body = pod("b", serviceAccountName="robot") if resource == "pods" else {"metadata": {"name": "b"}}
        return issuer.store.create(resource, body, "default")

    kind, uid = ("Pod" if resource == "pods" else "Secret"), make()["metadata"]["uid"]
    token = issuer.ask(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": "b", "uid": uid})["status"]["token"]
    user = issuer.user(token)
    assert user is not None
    assert (("authentication.kubernetes.io/pod-uid", (uid,)) in user.extra) is (resource == "pods")
    issuer.store.delete(resource, "b", "default")
    assert issuer.user(token) is None
    make()
    assert issuer.user(token) is None


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ({"kind": "Pod", "apiVersion": "v1", "name": "none"}, 404),
        ({"kind": "Pod", "apiVersion": "v1", "name": "other"}, 400),
        ({"kind": "Pod", "apiVersion": "v1", "name": "own", "uid": "another"}, 409),
        ({"kind": "ConfigMap", "apiVersion": "v1", "name": "m"}, 400),
        ({"kind": 7}, 400),
    ],
)
def test_a_token_is_bound_only_to_what_is_there_and_runs_as_the_account(issuer: Issuer, reference: Any, code: int) -> None:
    issuer.store.create("pods", pod("other"), "default")
    issuer.store.create("pods", pod("own", serviceAccountName="robot"), "default")
    with pytest.raises(StatusError) as refused:
        issuer.ask(boundObjectRef=reference)
    assert refused.value.code == code


def test_a_token_for_others_opens_nothing_here(issuer: Issuer) -> None:
    token = issuer.ask(audiences=["vault"])["status"]["token"]
    assert issuer.user(token) is None
    holder = issuer.tokens.holder(token, issuer.clock.now, issuer.store)
    assert holder is not None
    assert holder.audiences == ("vault",)


def test_tokens_that_were_changed_or_signed_by_another_open_nothing(issuer: Issuer) -> None:
    token = issuer.ask()["status"]["token"]
    head, payload, signature = token.split(".")
    other = Tokens("admin", KEY[::-1])
    forged = other.issue(issuer.store.get("serviceaccounts", "robot", "default"), 3600, issuer.clock.now, "1", [], {})
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for changed in (
        forged,
        f"{head}.{payload}.",
        f"{head}.{payload}",
        f"{unsigned}.{payload}.",
        f"{head}.{payload[:-2]}AA.{signature}",
        "..",
        "é",
    ):
        assert issuer.user(changed) is None


@pytest.mark.parametrize(("token", "key"), [("admin", b""), ("admin", b"short"), ("", KEY), (" ", KEY)])
def test_a_server_with_a_key_or_token_that_can_be_guessed_does_not_start(token: str, key: bytes) -> None:
    with pytest.raises(ValueError, match="signing key"):
        Tokens(token, key)


@pytest.mark.parametrize("name", ["signing-key", "token"])
def test_a_secret_file_that_was_emptied_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=f"{name}.*too short"):
        Server(data=tmp_path)


def test_token_reviews_ask_for_whom_a_token_is() -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    with in_thread(plain=True) as running, Wire(running) as wire:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        assert wire.ask("POST", accounts, {"metadata": {"name": "robot"}})[0] == 201
        token = wire.ask("POST", f"{accounts}/robot/token", {"spec": {"audiences": ["vault", "db"]}})[1]["status"]["token"]
        for asked, told in ((["vault", "x"], ["vault"]), (["x"], None), ([], None)):
            review = wire.ask("POST", path, {"spec": {"token": token, "audiences": asked}})[1]["status"]
            assert (review["authenticated"], review.get("audiences")) == (told is not None, told)
        wire._token = token
        assert wire.ask("GET", "/api/v1/pods")[0] == 401
