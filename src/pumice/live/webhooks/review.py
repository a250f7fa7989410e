"""AdmissionReviews (v1): the questions and their answers, pure, given the rules' view of the cluster.

An object that the API server sends may lack its name (generateName) and its namespace. The rules see both, and the patch leaves both alone.
"""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from pumice.api import Object, kinds
from pumice.api.json_objects import controller_of
from pumice.api.kinds import kind_of
from pumice.client.odd_json import decode
from pumice.controllers import admission
from pumice.controllers.controller import Lister
from pumice.live.webhooks.json_patch import difference

_GENERATED = "xxxxx"  #: stands for what the server will add to a generateName


class NotAReview(ValueError):
    """A body that no API server sends."""


class AdmissionRequest(msgspec.Struct):
    uid: str
    operation: str
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    oldObject: dict[str, Any] | None = None


class AdmissionReview(msgspec.Struct):
    request: AdmissionRequest
    apiVersion: str = ""
    kind: str = ""


_review = msgspec.json.Decoder(AdmissionReview)


def read(body: bytes) -> AdmissionReview:
    """The AdmissionReview in a request body. Raises NotAReview."""
    try:
        review = decode(_review, body)
    except msgspec.DecodeError as error:
        raise NotAReview(f"the body is not an AdmissionReview: {error}") from None
    if review.apiVersion != "admission.k8s.io/v1" or review.kind != "AdmissionReview":
        raise NotAReview(f"{review.apiVersion} {review.kind} is not admission.k8s.io/v1 AdmissionReview")
    return review


def problems(review: AdmissionReview, lister: Lister, settings: admission.Settings) -> list[admission.Problem]:
    """The problems that a validating webhook finds."""
    request = review.request
    new, old = _complete(request.object, request), _complete(request.oldObject, request)
    if new is None and old is None:
        return []  # a server too old to send what it deletes
    return admission.validate(request.operation, new, old, lister, settings)


def patch(review: AdmissionReview, lister: Lister, settings: admission.Settings) -> list[dict[str, Any]]:
    """The JSON patch of a mutating webhook."""
    subject = _complete(review.request.object, review.request)
    if subject is None:
        return []
    return list(difference(subject, admission.mutate(review.request.operation, subject, lister, settings)))


def submitted(review: AdmissionReview) -> Object | None:
    """The object, if the request creates a job or a pod without a controller. None for all other requests."""
    made = _complete(review.request.object, review.request) if review.request.operation == admission.CREATE else None
    return made if made is not None and kind_of(made) in (kinds.JOB, kinds.POD) and controller_of(made) is None else None


def judged(review: AdmissionReview, found: list[admission.Problem], warnings: Sequence[str] = ()) -> dict[str, Any]:
    verdict: dict[str, Any] = {"allowed": not found, **({"warnings": list(warnings)} if warnings else {})}
    if found:
        verdict["status"] = {"code": 400, "message": "; ".join(map(str, found))}
    return _response(review, verdict)


def mutated(review: AdmissionReview, operations: list[dict[str, Any]]) -> dict[str, Any]:
    verdict: dict[str, Any] = {"allowed": True}
    if operations:
        verdict |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(operations)).decode()}
    return _response(review, verdict)


def _response(review: AdmissionReview, verdict: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": review.apiVersion, "kind": review.kind, "response": {"uid": review.request.uid, **verdict}}


def _complete(subject: Object | None, request: AdmissionRequest) -> Object | None:
    if subject is None:
        return None
    metadata = subject.get("metadata") or {}
    name = metadata.get("name") or request.name or (metadata.get("generateName") or "") + _GENERATED
    place = {"namespace": metadata.get("namespace") or request.namespace} if request.namespace else {}
    return {**subject, "metadata": {**metadata, "name": name, **place}}
