"""The writes of a scheduler to pods: bind, evict, status; each is carried through until its outcome is known.

If an answer was lost, the pod is read to find out what happened. So a bind that took place is not reported as failed, and never happens
twice. A pod is identified by its uid: a pod that was created again under the same name is another pod and is left alone. The status is
written as a whole object, read just before, because the installed role does not allow it to be patched.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from pumice.api.kinds import PODS, ObjectRef
from pumice.client.failures import ApiError, NoAnswer, despite
from pumice.client.transport import Transport, as_dict

ATTEMPTS = 4


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct):
    nodeName: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


_pod = msgspec.json.Decoder(_Pod)


async def bind(transport: Transport, pod: ObjectRef, node: str, annotations: dict[str, str] | None = None) -> None:
    """Bind the pod to the node. Raises ApiError if the pod is on another node or gone, or the bind is refused; NoAnswer if the outcome
    cannot be found out."""
    body = _binding(pod, node, annotations)
    for _ in range(ATTEMPTS):
        try:
            await transport.create(PODS, body, pod.namespace, name=pod.name, subresource="binding")
            return
        except (ApiError, NoAnswer) as error:
            if not _in_doubt(error):
                raise
            doubt = error
        try:
            found = await _place(transport, pod)
        except NoAnswer as error:
            raise NoAnswer(str(error), sent=True) from doubt  # the bind was sent, even if the read was not
        if found == node:
            return
        if found or (isinstance(doubt, ApiError) and doubt.code == 409):
            raise doubt if isinstance(doubt, ApiError) else _elsewhere(pod, found)
    raise doubt


async def evict(transport: Transport, pod: ObjectRef, conditions: list[dict[str, Any]]) -> None:
    """Write the conditions into the pod's status, then delete the pod. It is no failure if the pod is gone already."""
    with despite(404):
        await amend_status(transport, pod, lambda status: set_conditions(status, conditions))
        await _delete(transport, pod)


def eviction_conditions(why: str, scheduler: str, at: str, whom: str = "pod") -> list[dict[str, Any]]:
    """The conditions for the status of a victim, in Volcano's words; without `why`, in kube-scheduler's. `at` is an RFC 3339 time."""
    moment = {"lastProbeTime": None, "lastTransitionTime": at}
    text = f"{scheduler}: preempting to accommodate a higher priority {whom}"
    ready = {"type": "Ready", "status": "False", **moment, "reason": "Evict", "message": why}
    target = {"type": "DisruptionTarget", "status": "True", **moment, "reason": "PreemptionByScheduler", "message": text}
    return [ready, target] if why else [target]


async def amend_status(transport: Transport, pod: ObjectRef, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Read the pod, let `change` alter its status, and write the status if `change` returned True. Try again after a conflict.

    Return whether the status was written. If an answer got lost and the status is then found as wanted, it counts as written.
    """
    doubt: ApiError | NoAnswer | None = None
    for _ in range(ATTEMPTS):
        read = as_dict(await transport.get(PODS, pod))
        _same(pod, read["metadata"].get("uid", ""))
        if not change(read.setdefault("status", {})):
            return doubt is not None
        try:
            await transport.update(PODS, pod, read, subresource="status")
            return True
        except (ApiError, NoAnswer) as error:
            if not _in_doubt(error):
                raise
            doubt = error
    assert doubt is not None
    raise doubt


def set_conditions(status: dict[str, Any], conditions: list[dict[str, Any]]) -> bool:
    """Replace the conditions of the same types, or add them. Return whether anything except times changed."""
    there = status.get("conditions") or []
    status["conditions"] = there
    changed = [_set_condition(there, condition) for condition in conditions]
    return any(changed)


def _set_condition(there: list[dict[str, Any]], condition: dict[str, Any]) -> bool:
    for index, old in enumerate(there):
        if old.get("type") == condition["type"]:
            if all(old.get(field, "") == condition.get(field, "") for field in ("status", "reason", "message")):
                return False
            same_status = old.get("status") == condition["status"]
            kept = {"lastTransitionTime": old["lastTransitionTime"]} if same_status and old.get("lastTransitionTime") else {}
            there[index] = condition | kept
            return True
    there.append(condition)
    return True


def _binding(pod: ObjectRef, node: str, annotations: dict[str, str] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace}
    if pod.uid:
        metadata["uid"] = pod.uid
    if annotations:
        metadata["annotations"] = annotations
    return {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": {"kind": "Node", "name": node}}


def _in_doubt(error: ApiError | NoAnswer) -> bool:
    """Whether the write may have been carried out, by this try or by an earlier one."""
    return error.sent if isinstance(error, NoAnswer) else error.code == 409 or error.code >= 500


async def _place(transport: Transport, pod: ObjectRef) -> str:
    read = _pod.decode(await transport.get(PODS, pod))
    _same(pod, read.metadata.uid)
    return read.spec.nodeName


async def _delete(transport: Transport, pod: ObjectRef) -> None:
    try:
        await transport.delete(PODS, pod)
    except ApiError as error:
        if error.code == 409 and pod.uid:
            await _place(transport, pod)  # raises if another pod has the name; else the refusal had another reason
        raise


def _same(pod: ObjectRef, uid: str) -> None:
    if pod.uid and uid != pod.uid:
        raise _gone(pod)


def _gone(pod: ObjectRef) -> ApiError:
    return ApiError(404, "NotFound", f"pod {pod} with uid {pod.uid} is gone; another has its name")


def _elsewhere(pod: ObjectRef, node: str) -> ApiError:
    return ApiError(409, "Conflict", f"pod {pod} is already assigned to node {node}")
