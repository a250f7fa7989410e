"""CertificateSigningRequests: who asked is noted when one is created, and what is approved is signed by the server's own authority.

The signers are Kubernetes' own; requests to others are left to whoever signs for these. A certificate for clients is a user of this server:
its common name is the user's name, its organizations are the groups.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pumice.api import Object, rfc3339
from pumice.api.json_objects import condition, field
from pumice.client.certificates import Authority, subject_of
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRule
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.apiserver.validation.field_rules import Causes, missing
from pumice.http.watchdog import Handler

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
SIGNED_S = 365 * 86400.0  #: how long a certificate is valid, if less is not asked for
_CLIENT = ("digital signature", "client auth")
_SERVER = ("digital signature", "server auth")
#: by signer: the usages that a request must state; beside these it may state key encipherment only
SIGNERS = {
    "kubernetes.io/kube-apiserver-client": ("client auth",),
    "kubernetes.io/kube-apiserver-client-kubelet": _CLIENT,
    "kubernetes.io/kubelet-serving": _SERVER,
}
_MAY = ("digital signature", "key encipherment")


def signing_rules() -> list[AdmissionRule]:
    return [AdmissionRule((REQUESTS,), ("CREATE",), mutate=_by_its_user)]


def _by_its_user(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    user, spec = review.user, review.obj.setdefault("spec", {})
    asked = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    for name, value in asked.items():
        spec.pop(name, None)
        if value:
            spec[name] = value
    return review.obj


def request_causes(request: Object, old: Object | None) -> Causes:
    """What is wrong with a request: pairs of a field's path and a sentence."""
    spec = request.get("spec") or {}
    try:
        subject_of(base64.b64decode(spec.get("request") or ""))
    except ValueError as error:
        return [("spec.request", f"Invalid value: {error}")]
    return missing("spec", spec, "usages")


def why_not(spec: Object) -> str:
    """Why the signer of a request does not sign it; empty if it does."""
    needed, usages = SIGNERS[spec["signerName"]], spec["usages"]
    wrong = [usage for usage in usages if usage not in (*needed, *_MAY)] or [usage for usage in needed if usage not in usages]
    if wrong:
        return f"usages did not match {[*needed, *_MAY]}"
    name, groups = subject_of(base64.b64decode(spec["request"]))
    if "kubelet" in spec["signerName"] and (groups != ("system:nodes",) or not name.startswith("system:node:")):
        return "subject is not that of a node: organization system:nodes, common name system:node:NAME"
    return ""


class Signer:
    """Signs what is approved, soon after it is."""

    def __init__(self, store: Store, authority: Callable[[], Authority]) -> None:
        self._store = store
        self._authority = authority
        store.storage.listen(self._on_write, REQUESTS)

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if event.type != "DELETED" and _waits(event.object):
            asyncio.get_running_loop().call_soon(self._sign, event.key[1])

    def sign_all(self) -> None:
        """Sign what was approved before the server started."""
        for request in list(self._store.all(REQUESTS)):
            self._sign(request["metadata"]["name"])

    def _sign(self, name: str) -> None:
        request = self._store.find(REQUESTS, "", name)
        if request is None or not _waits(request):
            return
        with Handler("the signing of certificates"):
            self._store.patch(REQUESTS, name, PatchRequest("merge", {"status": self._answer(request)}), subresource="status")

    def _answer(self, request: Object) -> Object:
        spec, status = request["spec"], request["status"]
        why = why_not(spec)
        if why:
            now = rfc3339(self._store.now())
            failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why, "lastUpdateTime": now}
            return {"conditions": [*status["conditions"], failed | {"lastTransitionTime": now}]}
        seconds = min(float(spec.get("expirationSeconds") or SIGNED_S), SIGNED_S)
        signed = self._authority().sign(base64.b64decode(spec["request"]), spec["usages"], time.time(), seconds)
        return {"certificate": base64.b64encode(signed).decode()}


def _waits(request: Object) -> bool:
    """Whether a request is approved, and our signers have not answered yet."""
    ended = field(request, "status.certificate") or condition(request, "Denied") or condition(request, "Failed")
    return not ended and condition(request, "Approved") is not None and request["spec"]["signerName"] in SIGNERS
