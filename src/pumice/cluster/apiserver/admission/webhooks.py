"""Admission by webhooks: which of them a write concerns, what they are asked, and what their answers do.

MutatingWebhookConfigurations and ValidatingWebhookConfigurations say which writes are shown to which program. A program that runs in this
process (Volcano's admission in `pumice up`) stands behind a service name, and is called directly; all others are called by `Caller`. So
whoever changes or deletes a configuration changes admission, whichever program it is.

Mutating webhooks are called one after the other, by the names of their configurations; one that asks for it is called again if a later one
has changed the object. Validating webhooks all see the final object.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from pumice.api import Object
from pumice.api.cel.errors import EvaluationError
from pumice.api.selectors import label_selector, matches
from pumice.cluster.apiserver.admission.attributes import SYSTEM, AdmissionAttributes
from pumice.cluster.apiserver.discovery import SUBRESOURCES
from pumice.cluster.apiserver.patches.json_patch import PatchError, json_patch
from pumice.cluster.apiserver.pending_calls import Unanswered, call_about
from pumice.cluster.apiserver.scheme.conversion import seen_early, stored
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError

if TYPE_CHECKING:
    from pumice.api.cel.program import Program
    from pumice.cluster.apiserver.store import Store

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
Verdict = Object | StatusError | None
Service = Callable[[str, AdmissionAttributes], Verdict]
"""A program in this process. It gets a path and a write, and returns the changed object, a refusal, or None."""


def rule_matches(rule: Object, review: AdmissionAttributes) -> bool:
    kind = review.kind
    scope = rule.get("scope", "*")
    return (
        _names(rule.get("operations"), review.operation)
        and _names(rule.get("apiGroups"), kind.group)
        and _names(rule.get("apiVersions"), kind.version)
        and any(_is_resource(pattern, kind.plural, review.subresource) for pattern in rule.get("resources") or ())
        and (scope == "*" or (scope == "Namespaced") == kind.namespaced)
        and (not rule.get("resourceNames") or review.name in rule["resourceNames"])
    )


def seen_as(match: Object, field: str, review: AdmissionAttributes, kinds: Iterable[ServedKind]) -> ServedKind | None:
    """The version of the written kind that the rules in a field of a webhook or policy mean: by default, another version of it will do, in
    which the objects are then shown. None if they mean no version of it."""
    rules = match.get(field) or ()
    if any(rule_matches(rule, review) for rule in rules):
        return review.kind
    others = () if not rules or match.get("matchPolicy") == "Exact" else (kind for kind in kinds if kind.storage == review.kind.storage)
    return next((kind for kind in others if any(rule_matches(rule, replace(review, kind=kind)) for rule in rules)), None)


def shown_as(review: AdmissionAttributes, kind: ServedKind) -> AdmissionAttributes:
    """The write with its objects in this version. Raises Pending, StatusError."""
    if review.subresource in SUBRESOURCES:  # its objects are of another kind
        return review if kind is review.kind else replace(review, kind=kind, asked_kind=review.kind)
    if kind is review.kind and all(one is None or one["apiVersion"] == kind.api_version for one in (review.obj, review.old)):
        return review
    old = None if review.old is None else seen_early(kind, review.old)
    return replace(review, kind=kind, obj=seen_early(kind, review.obj), old=old, asked_kind=review.kind)


def changed_as(review: AdmissionAttributes, kind: ServedKind, obj: Object) -> AdmissionAttributes:
    """The write with its object as a rule has changed it in this version. Raises Pending, StatusError."""
    is_same = kind is review.kind or review.subresource in SUBRESOURCES
    return review.about(obj if is_same else stored(kind, obj) | {"apiVersion": review.obj["apiVersion"]})


def _names(stated: Iterable[str] | None, value: str) -> bool:
    return stated is not None and ("*" in stated or value in stated)


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    resource, slash, part = pattern.partition("/")
    return resource in ("*", plural) and (part in ("*", subresource) if slash else not subresource)


class Selectors:
    """Selectors of the labels of a write's namespace and of its object, new or old."""

    def __init__(self, spec: Object) -> None:
        self.namespaces, self.objects = (label_selector(spec.get(field) or {}) or () for field in ("namespaceSelector", "objectSelector"))
        self._known: tuple[Object | None, bool] = (None, False)  #: the last namespace that was looked at, and whether it matches

    def match(self, review: AdmissionAttributes, store: Store) -> bool:
        if self.namespaces and (review.namespace or review.kind.resource == "namespaces"):
            subject = store.storage.get("namespaces", ("", review.namespace)) if review.namespace else review.obj
            if subject is not self._known[0]:
                self._known = subject, subject is None or matches(self.namespaces, subject["metadata"].get("labels") or {})
            if not self._known[1]:
                return False
        if not self.objects:
            return True
        return any(matches(self.objects, (one.get("metadata") or {}).get("labels") or {}) for one in (review.obj, review.old) if one)


def request_of(review: AdmissionAttributes, uid: str = "") -> Object:
    """The `request` of an AdmissionReview."""
    kind, user = review.kind, review.user
    api_version, name, _ = SUBRESOURCES.get(review.subresource, ("", "", ()))
    group, _, version = (api_version or kind.api_version).rpartition("/")
    kinds = {"group": group, "version": version, "kind": name or kind.kind}
    resources, asked = {"group": kind.group, "version": kind.version, "resource": kind.plural}, review.asked_kind or kind
    is_delete = review.operation == "DELETE"
    info: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    options = {"kind": f"{review.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    parts = {
        "subResource": review.subresource,
        "requestSubResource": review.subresource,
        "namespace": review.namespace,
        "name": review.name,
    }
    return {
        "uid": uid,
        "kind": kinds,
        "resource": resources,
        "requestKind": kinds if asked is kind or api_version else kinds | {"version": asked.version},
        "requestResource": resources | {"version": asked.version},
        **{key: value for key, value in parts.items() if value},
        "operation": review.operation,
        "userInfo": info | ({"extra": {key: list(values) for key, values in user.extra}} if user.extra else {}),
        "object": None if is_delete else review.obj,
        "oldObject": review.obj if is_delete else review.old,
        "dryRun": review.dry_run,
        "options": options,
    }


class Webhook(NamedTuple):
    configuration: str
    spec: Object
    selectors: Selectors
    conditions: tuple[tuple[str, Program], ...]
    service: tuple[str, str]  #: namespace and name of the service that it calls, if it calls one
    path: str

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_ignored(self) -> bool:
        """Whether a write goes on if the webhook cannot be asked."""
        return bool(self.spec.get("failurePolicy") == "Ignore")


def _webhooks(configurations: Iterable[Object]) -> list[Webhook]:
    found = []
    for one in configurations:
        for spec in one.get("webhooks") or ():
            service, stated = spec["clientConfig"].get("service") or {}, spec.get("matchConditions") or ()
            place = service.get("namespace", ""), service.get("name", "")
            programs = _programs(stated) if stated else ()
            found.append(Webhook(one["metadata"]["name"], spec, Selectors(spec), programs, place, service.get("path") or "/"))
    return found


def _programs(stated: Iterable[Object]) -> tuple[tuple[str, Program], ...]:
    from pumice.cluster.apiserver.admission.conditions import compiled  # importing CEL takes 20 ms; most webhooks have no conditions

    return tuple(compiled(stated))


class Webhooks:
    """All webhooks of a store. Configurations are read again when one has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.services: dict[tuple[str, str], Service] = {}  #: programs in this process, by namespace and name of their service
        self._found: dict[tuple[Any, ...], list[tuple[Webhook, ServedKind]]] = {}
        self._all: dict[str, list[Webhook]] = {}
        self._seen: dict[tuple[str | int, ...], bool] = {}

    def changed(self) -> None:
        self._found.clear()
        self._seen.clear()
        self._all.clear()

    def _for(self, resource: str, review: AdmissionAttributes) -> list[tuple[Webhook, ServedKind]]:
        """The webhooks of a sort whose rules mean a write, each with the version in which it is shown the objects."""
        kind, everyone = review.kind, self._all.get(resource)
        if everyone is None:
            everyone = self._all[resource] = _webhooks(self._store.all(resource))
        if not everyone:
            return []
        key = (resource, kind, review.subresource, review.operation)
        found = self._found.get(key)
        if found is None:
            kinds = self._store.kinds
            seen = [(one, seen_as(one.spec, "rules", review, kinds)) for one in everyone] if kind.group != GROUP else []
            found = self._found[key] = [(one, as_kind) for one, as_kind in seen if as_kind is not None]
        return found

    def sees(self, kind: ServedKind, subresource: str, operation: str) -> bool:
        """Whether the rules of any webhook mean such writes."""
        key = (self._store.kinds.revision, kind.group, kind.version, kind.plural, subresource, operation)
        if key not in self._seen:
            review = AdmissionAttributes(operation, kind, "", "", subresource, {}, None, SYSTEM)
            self._seen[key] = any(self._for(resource, review) for resource in (MUTATING, VALIDATING))
        return self._seen[key]

    def mutated(self, review: AdmissionAttributes) -> tuple[AdmissionAttributes, bool]:
        """The write as the mutating webhooks have changed it, and whether a program outside of this process has. Raises StatusError."""
        by_others = False
        left: list[tuple[Webhook, ServedKind, Object]] = []  #: webhooks that ask to be called again, and the object that each left behind
        for hook, kind in self._for(MUTATING, review):
            if self._concerns(hook, kind, review):
                changed = self._asked(hook, kind, review, False)
                if changed is not None and changed is not review.obj:
                    review = changed_as(review, kind, changed)
                    by_others = by_others or hook.service not in self.services
            if hook.spec.get("reinvocationPolicy") == "IfNeeded":
                left.append((hook, kind, review.obj))
        for hook, kind, obj in left:
            if obj != review.obj and self._concerns(hook, kind, review) and (changed := self._asked(hook, kind, review, True)) is not None:
                review, by_others = changed_as(review, kind, changed), True
        return review, by_others

    def check(self, review: AdmissionAttributes) -> None:
        """Show the write to the validating webhooks. Raises StatusError."""
        for hook, kind in self._for(VALIDATING, review):
            if self._concerns(hook, kind, review):
                self._asked(hook, kind, review, False)

    def _concerns(self, hook: Webhook, kind: ServedKind, review: AdmissionAttributes) -> bool:
        if not hook.selectors.match(review, self._store):
            return False
        if not hook.conditions:
            return True
        from pumice.cluster.apiserver.admission import conditions

        try:
            shown = shown_as(review, kind)
            holds = partial(conditions.conditions_hold, hook.conditions, conditions.names_of(shown, request_of(shown), self._store))
            return self._store.evaluated(f'the conditions of webhook "{hook.name}"', shown, holds)
        except EvaluationError as error:
            if hook.is_ignored:
                return False
            raise review.kind.forbidden(review.name, f'webhook "{hook.name}": {error}') from None

    def _asked(self, hook: Webhook, kind: ServedKind, review: AdmissionAttributes, is_again: bool) -> Object | None:
        """The object as the webhook has changed it, or None. Raises StatusError."""
        if review.dry_run and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise StatusError(400, "BadRequest", f'admission webhook "{hook.name}" does not support dry run', {})
        program, shown = self.services.get(hook.service), shown_as(review, kind)
        if program is not None:
            verdict = program(hook.path, shown)
        else:
            verdict = self._answer(hook, shown, is_again)
        if isinstance(verdict, StatusError):
            raise verdict
        return verdict

    def _answer(self, hook: Webhook, review: AdmissionAttributes, is_again: bool) -> Verdict:
        """What the program of a webhook outside of this process answers. Raises Pending."""
        call = partial(self._call, hook, replace(review))
        answer = self._store.answer(call_about(f'webhook "{hook.name}"', review, call, hook.configuration, is_again))
        if isinstance(answer, Unanswered):
            if hook.is_ignored:
                return None
            text = f'Internal error occurred: failed calling webhook "{hook.name}": failed to call webhook: {answer}'
            return StatusError(500, "InternalError", text, {"causes": [{"message": text.partition(": ")[2]}]})
        review.warnings.extend(str(text) for text in answer.get("warnings") or ())
        if not answer.get("allowed"):
            return _refusal(hook.name, answer.get("status") or {})
        if not answer.get("patch"):
            return None
        try:
            return _patched(review.obj, answer)
        except (PatchError, ValueError, StatusError) as error:
            return None if hook.is_ignored else StatusError(500, "InternalError", f'webhook "{hook.name}": its patch: {error}')

    async def _call(self, hook: Webhook, review: AdmissionAttributes) -> Object | Unanswered:
        uid, timeout_s = self._store.new_uid(), int(hook.spec.get("timeoutSeconds") or 10)
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request_of(review, uid)}
        if "v1" not in hook.spec["admissionReviewVersions"]:
            return Unanswered("it does not understand AdmissionReview v1, the only version here")
        try:
            answer = await self._store.caller.post(hook.spec["clientConfig"], f"timeout={timeout_s}s", body, timeout_s)
        except Unanswered as error:
            return error
        response = answer.get("response")
        if not isinstance(response, dict) or response.get("uid") != uid:
            return Unanswered("the answer is not an AdmissionReview with the uid of the request")
        return response


def _refusal(name: str, status: Object) -> StatusError:
    code, reason, why = int(status.get("code") or 0), str(status.get("reason") or ""), status.get("message")
    text = f'admission webhook "{name}" denied the request'
    text += f": {why or reason}" if why or reason else " without explanation"
    return StatusError(code if code >= 400 else 400, reason, text, status.get("details"))


def _patched(obj: Object, answer: Object) -> Object:
    patch = msgspec.json.decode(base64.b64decode(answer["patch"]))
    found = json_patch(obj, patch)
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise ValueError("it leaves no object")
    return found


#: what is left out of the objects that webhooks and policies are for
