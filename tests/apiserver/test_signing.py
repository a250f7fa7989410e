"""CertificateSigningRequests that are approved get a certificate, and its holder is the user that it names."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from pumice.client.certificates import private_pem
from tests.apiserver.made import request_of
from tests.apiserver.server_process import Running, in_thread

Object = dict[str, Any]
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENTS, KUBELETS = "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"
LIMIT_S = 60


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread() as made:
        yield made


def ask(running: Running, method: str, path: str, body: Object | None = None, pair: Path | None = None) -> tuple[int, Object]:
    """An answer to the administrator, or to the holder of a certificate and its key."""
    tls = ssl.create_default_context(cadata=running.server.certificate)
    headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    if pair is not None:
        tls.load_cert_chain(pair)
    else:
        headers["Authorization"] = f"Bearer {running.server.token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(running.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=tls, timeout=LIMIT_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def answered(running: Running, name: str, signer: str, request: str, usages: list[str]) -> Object:
    """The status of a request once it was approved and answered."""
    spec = {"signerName": signer, "request": request, "usages": usages, "username": "forged", "expirationSeconds": 600}
    status, made = ask(running, "POST", REQUESTS, {"metadata": {"name": name}, "spec": spec})
    assert status == 201 and made["spec"]["username"] != "forged" and "system:masters" in made["spec"]["groups"]
    approved = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Tested"}]}}
    assert ask(running, "PATCH", f"{REQUESTS}/{name}/approval", approved)[0] == 200
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found: Object = ask(running, "GET", f"{REQUESTS}/{name}")[1]["status"]
        if "certificate" in found or any(each["type"] == "Failed" for each in found["conditions"]):
            return found
    raise AssertionError(found)


@pytest.mark.parametrize("usages", [["client auth", "digital signature"], ["client auth"]], ids=len)
def test_holder_of_a_certificate_is_the_user_that_it_names(running: Running, tmp_path: Path, usages: list[str]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    status = answered(running, f"ann-{len(usages)}", CLIENTS, request_of(key, "ann", "painters"), usages)
    pair = tmp_path / "ann.pem"
    pair.write_bytes(base64.b64decode(status["certificate"]) + private_pem(key))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    code, answer = ask(running, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, pair)
    assert code == 201 and answer["status"]["userInfo"] == {"username": "ann", "groups": ["painters", "system:authenticated"]}
    code, answer = ask(running, "GET", "/api/v1/nodes", pair=pair)
    assert code == 403 and 'User "ann" cannot list resource "nodes"' in answer["message"]


@pytest.mark.parametrize(
    ("signer", "subject", "usages", "why"),
    [
        (CLIENTS, ("bob",), ["server auth"], "usages did not match"),
        (CLIENTS, ("bob",), ["digital signature"], "usages did not match"),
        (KUBELETS, ("system:node:n", "others"), ["client auth", "digital signature"], "subject is not that of a node"),
    ],
)
def test_what_a_signer_does_not_sign_has_failed(
    running: Running, signer: str, subject: tuple[str, ...], usages: list[str], why: str
) -> None:
    request = request_of(ec.generate_private_key(ec.SECP256R1()), *subject)
    status = answered(running, f"bad-{len(usages)}-{usages[0].replace(' ', '-')}", signer, request, usages)
    assert "certificate" not in status and why in status["conditions"][-1]["message"]


def test_what_is_no_signing_request_is_refused(running: Running) -> None:
    spec = {"signerName": CLIENTS, "request": base64.b64encode(b"nonsense").decode(), "usages": ["client auth"]}
    status, answer = ask(running, "POST", REQUESTS, {"metadata": {"name": "none"}, "spec": spec})
    assert status == 422 and answer["details"]["causes"][0]["field"] == "spec.request"
