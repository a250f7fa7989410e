"""TokenRequests: a service account's token, with the lifetime, the audiences and the bound object that the request states."""

from pumice.api import Object, rfc3339
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.auth.tokens import AUDIENCE, BOUND, Tokens
from pumice.cluster.apiserver.decoding import WrongType, conformed
from pumice.cluster.apiserver.scheme.builtin_shapes import object_shape
from pumice.cluster.apiserver.store import Store

_USUAL_S, _SHORTEST_S, _LONGEST_S = 3600, 600, 2**32


def answer(store: Store, tokens: Tokens, namespace: str, name: str, body: Object) -> Object:
    """The TokenRequest with the token in its status. Raises StatusError."""
    account = store.get("serviceaccounts", name, namespace)
    try:
        request, _ = conformed(object_shape("authentication.v1.TokenRequest"), body, "TokenRequest")
    except WrongType as wrong:
        raise status.bad_request(f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {wrong}') from None
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds", _USUAL_S)
    _check(seconds)
    audiences = spec.get("audiences") or [AUDIENCE]
    bound = _bound(store, account, spec.get("boundObjectRef"))
    now = store.now()
    token = tokens.issue(account, seconds, now, store.new_uid(), audiences, bound)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": rfc3339(now)},
        "spec": spec | {"audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": rfc3339(int(now) + seconds)},
    }


def for_pod(store: Store, tokens: Tokens, pod: Object, source: Object) -> str:
    """A token of the pod's ServiceAccount, bound to the pod, as the projection `source` of a volume asks for it. Raises StatusError."""
    metadata = pod["metadata"]
    spec: Object = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}}
    spec |= {"expirationSeconds": source["expirationSeconds"]} if "expirationSeconds" in source else {}
    spec |= {"audiences": [source["audience"]]} if source.get("audience") else {}
    account = pod["spec"].get("serviceAccountName") or "default"
    return str(answer(store, tokens, metadata["namespace"], account, {"spec": spec})["status"]["token"])


def _check(seconds: int) -> None:
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        word = "less than 10 minutes" if seconds < _SHORTEST_S else "larger than 2^32 seconds"
        text = f"Invalid value: {seconds}: may not specify a duration {word}"
        raise status.invalid("TokenRequest", "authentication.k8s.io", "", [("spec.expirationSeconds", text)])


def _bound(store: Store, account: Object, reference: Object | None) -> dict[str, Object]:
    """The objects that a token is bound to, by their names in `BOUND`: the referenced object, and for a pod also its node.

    Raises StatusError.
    """
    if not reference:
        return {}
    word, name, uid = str(reference.get("kind", "")).lower(), reference.get("name", ""), reference.get("uid")
    if word not in BOUND or reference.get("apiVersion", "v1") != "v1":
        raise status.bad_request(f"cannot bind token to object of type {reference.get('apiVersion', '')}, Kind={reference.get('kind', '')}")
    obj = store.get(BOUND[word], name, account["metadata"]["namespace"])
    if uid and uid != obj["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        raise status.conflict(BOUND[word], "", name, why + "The object might have been deleted and then recreated")
    if word != "pod":
        return {word: obj}
    if obj["spec"].get("serviceAccountName") != account["metadata"]["name"]:
        runs_as = account["metadata"]["name"]
        raise status.bad_request(f'cannot bind token for serviceaccount "{runs_as}" to pod running with different serviceaccount name.')
    node = store.find("nodes", "", obj["spec"].get("nodeName", ""))
    return {"pod": obj} | ({"node": node} if node is not None else {})
