"""Rules between fields of what orders the requests to the API server: FlowSchemas and PriorityLevelConfigurations."""

import math
from collections.abc import Iterator

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, forbidden, invalid, required, unsupported
from pumice.cluster.apiserver.validation.name_rules import misnamed, named_object

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_MOST_PRECEDENCE, _MOST_QUEUES = 10_000, 10_000_000
_MOST_BITS = 60  #: of the hash by which a hand of queues is dealt


def _schema(schema: Object) -> Iterator[Cause]:
    precedence = (schema.get("spec") or {}).get("matchingPrecedence") or _MOST_PRECEDENCE
    if precedence < 0:
        yield invalid("spec.matchingPrecedence", precedence, "must be a positive value")
    elif precedence > _MOST_PRECEDENCE:
        yield invalid("spec.matchingPrecedence", precedence, f"must not be greater than {_MOST_PRECEDENCE}")
    elif precedence == 1 and schema["metadata"].get("name") != "exempt":
        yield invalid("spec.matchingPrecedence", 1, "only the schema named 'exempt' may have matchingPrecedence 1")


def _distinguisher(method: Object) -> Iterator[Cause]:
    if method.get("type") not in ("ByNamespace", "ByUser"):
        yield from unsupported("type", {"Type": method.get("type", "")}, ("ByNamespace", "ByUser"))


def _rule(rule: Object) -> Iterator[Cause]:
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield required("", "at least one of resourceRules and nonResourceRules has to be non-empty")


def _subject(subject: Object) -> Iterator[Cause]:
    for kind, field in _SUBJECTS.items():
        if subject.get("kind") == kind and field not in subject:
            yield required(field, f"{field} is required when subject kind is '{kind}'")
        elif subject.get("kind") in _SUBJECTS and subject["kind"] != kind and field in subject:
            yield forbidden(field, f"{field} is forbidden when subject kind is not '{kind}'")


def _account(account: Object) -> Iterator[Cause]:
    if account.get("name") not in ("", "*", None):
        yield from named_object("long", account["name"], "name")


def _verbs(rule: Object) -> Iterator[Cause]:
    verbs = rule.get("verbs") or ()
    if not {*verbs} <= {*_VERBS, "*"}:
        yield from unsupported("verbs", verbs, _VERBS)


def _of_resources(rule: Object) -> Iterator[Cause]:
    yield from _verbs(rule)
    namespaces = rule.get("namespaces") or ()
    if not namespaces and not rule.get("clusterScope"):
        yield required("namespaces", "resource rules that are not cluster scoped must supply at least one namespace")
    for index, namespace in enumerate(namespaces if "*" not in namespaces else ()):
        for fault in misnamed("short", namespace):
            text = f"each member of this list must be '*' or a DNS-1123 label; {fault.replace('bytes', 'characters')}"
            yield invalid(f"namespaces[{index}]", namespace, text)


def _of_urls(rule: Object) -> Iterator[Cause]:
    yield from _verbs(rule)
    urls = rule.get("nonResourceURLs") or ()
    for index, url in enumerate(urls if "*" not in urls else ()):
        if fault := _fault_of_url(url):
            yield invalid(f"nonResourceURLs[{index}]", url, fault)


def _fault_of_url(url: str) -> str:
    if not url.startswith("/"):
        return "must start with slash" if url else "must not be empty"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    return "" if "*" not in url.removesuffix("/*") else "wildcard can only do suffix matching"


def _level(level: Object) -> Iterator[Cause]:
    kind = (level.get("spec") or {}).get("type", "")
    if (level["metadata"].get("name") == "exempt") is not (kind == "Exempt"):
        yield invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")


def _level_spec(spec: Object) -> Iterator[Cause]:
    kind = spec.get("type")
    if kind == "Exempt" and "limited" in spec:
        yield forbidden("limited", "must be nil if the type is not Limited")
    if kind == "Limited" and "exempt" in spec:
        yield forbidden("exempt", "must be nil if the type is Limited")
    if kind == "Limited" and "limited" not in spec:
        yield required("limited", "must not be empty when type is Limited")
    elif kind == "Limited" and "limitResponse" not in spec["limited"]:
        yield from unsupported("limited.limitResponse.type", "", ("Queue", "Reject"))


def _limits(limits: Object) -> Iterator[Cause]:
    for field, text in (("nominalConcurrencyShares", "must be"), ("borrowingLimitPercent", "if specified, must be")):
        if limits.get(field, 0) < 0:
            yield invalid(field, limits[field], f"{text} a non-negative integer")


def _response(response: Object) -> Iterator[Cause]:
    kind = response.get("type", "")
    yield from unsupported("type", kind, ("Queue", "Reject"))
    if kind == "Reject" and "queuing" in response:
        yield forbidden("queuing", "must be nil if limited.limitResponse.type is not Limited")
    if kind == "Queue" and "queuing" not in response:
        yield required("queuing", "must not be empty if limited.limitResponse.type is Limited")


def _queuing(queuing: Object) -> Iterator[Cause]:
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    for field in ("queueLengthLimit", "queues", "handSize"):
        if queuing.get(field, 0) <= 0:
            yield invalid(field, queuing.get(field, 0), "must be positive")
    if queues > _MOST_QUEUES:
        yield invalid("queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand > queues:
        yield invalid("handSize", hand, f"should not be greater than queues ({queues})")
    elif hand > 0 and math.ceil(math.log2(queues) * hand) > _MOST_BITS:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_MOST_BITS}"
        yield invalid("handSize", hand, text)


CHECKS = {
    "ExemptPriorityLevelConfiguration": _limits,
    "FlowDistinguisherMethod": _distinguisher,
    "FlowSchema": _schema,
    "LimitResponse": _response,
    "LimitedPriorityLevelConfiguration": _limits,
    "NonResourcePolicyRule": _of_urls,
    "PolicyRulesWithSubjects": _rule,
    "PriorityLevelConfiguration": _level,
    "PriorityLevelConfigurationSpec": _level_spec,
    "QueuingConfiguration": _queuing,
    "ResourcePolicyRule": _of_resources,
    "ServiceAccountSubject": _account,
    "Subject": _subject,
}
