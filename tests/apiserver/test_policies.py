"""Admission policies: where they apply, what they refuse, warn of and change, and what their parameters and variables are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pumice.cluster.apiserver import DeleteOptions, PatchRequest, StatusError, Store, UserInfo, WriteOptions
from tests.apiserver.made import pod, store

GROUP = "admissionregistration.k8s.io"
Object = dict[str, Any]
ON_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE", "DELETE"]}


def validating(
    made: Store, *validations: Object, actions: tuple[str, ...] = ("Deny",), binding: Object | None = None, **spec: Any
) -> Object:
    body = {"matchConstraints": {"resourceRules": [ON_MAPS]}, "validations": list(validations), **spec}
    policy = made.create(f"validatingadmissionpolicies.{GROUP}", {"metadata": {"name": "p"}, "spec": body})
    bound = {"policyName": "p", "validationActions": list(actions), **(binding or {})}
    made.create(f"validatingadmissionpolicybindings.{GROUP}", {"metadata": {"name": "b"}, "spec": bound})
    return policy


def mutating(made: Store, *mutations: Object, **spec: Any) -> None:
    body = {"matchConstraints": {"resourceRules": [ON_MAPS]}, "reinvocationPolicy": "Never", "mutations": list(mutations), **spec}
    made.create(f"mutatingadmissionpolicies.{GROUP}", {"metadata": {"name": "m"}, "spec": body})
    made.create(f"mutatingadmissionpolicybindings.{GROUP}", {"metadata": {"name": "b"}, "spec": {"policyName": "m"}})


def config_map(made: Store, name: str = "c", warnings: list[str] | None = None, **data: str) -> Object:
    options = WriteOptions(warnings=[] if warnings is None else warnings)
    return made.create("configmaps", {"metadata": {"name": name}, "data": data}, "default", options)


def test_what_a_policy_demands_is_demanded_where_it_is_bound() -> None:
    made = store()
    validating(made, {"expression": "object.data.size == 'small'", "message": "too large", "reason": "Forbidden"})
    config_map(made, size="small")
    with pytest.raises(StatusError, match="ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too large") as refusal:
        config_map(made, "d", size="large")
    assert (refusal.value.code, refusal.value.reason) == (403, "Forbidden")
    made.delete(f"validatingadmissionpolicybindings.{GROUP}", "b")
    config_map(made, "d", size="large")


def test_updates_are_compared_with_what_was_and_deletes_are_seen() -> None:
    made = store()
    validating(
        made,
        {"expression": "oldObject == null || request.operation == 'DELETE' || oldObject.data.a == object.data.a"},
        {"expression": "request.operation != 'DELETE' || oldObject.data.a == 'free'"},
    )
    kept = config_map(made, a="kept")
    with pytest.raises(StatusError, match="failed expression") as refusal:
        made.update("configmaps", {**kept, "data": {"a": "other"}})
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    with pytest.raises(StatusError, match="DELETE"):
        made.delete("configmaps", "c", "default", DeleteOptions())
    config_map(made, "f", a="free")
    made.delete("configmaps", "f", "default", DeleteOptions())


def test_what_the_user_may_do_else_can_be_asked() -> None:
    made = store()
    subjects = [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
    rules = [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"], "resourceNames": ["web"]}]
    rules += [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["shrink"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    made.create("clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": "r"}, "rules": rules})
    reference = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    made.create("clusterrolebindings.rbac.authorization.k8s.io", {"metadata": {"name": "b"}, "subjects": subjects, "roleRef": reference})
    scale = "group('apps').resource('deployments').subresource('scale').namespace('default').name('web').check('get')"
    asked = {
        "scale": f"authorizer.{scale}.allowed() && !authorizer.{scale}.errored()",
        "shrinks": "authorizer.requestResource.check('shrink').allowed()",
        "reads": "authorizer.path('/metrics').check('get').allowed() && !authorizer.path('/logs').check('get').allowed()",
        "robot": f"authorizer.serviceAccount('default', 'robot').{scale}.allowed()",
        "other": f"authorizer.serviceAccount('default', 'other').{scale}.reason() == ''",
    }
    validating(made, *({"expression": f"object.metadata.name != '{name}' || ({text})"} for name, text in asked.items()))
    for user, refused in (("ann", set()), ("bob", {"scale", "shrinks", "reads"})):
        for name in asked:
            options = WriteOptions(user=UserInfo(user), dry_run=True)
            try:
                made.create("configmaps", {"metadata": {"name": name}}, "default", options)
                assert name not in refused, user
            except StatusError:
                assert name in refused, user


def test_a_warning_is_no_refusal() -> None:
    made, warnings = store(), list[str]()
    validating(made, {"expression": "false", "messageExpression": "'not ' + object.metadata.name"}, actions=("Warn", "Audit"))
    config_map(made, warnings=warnings)
    told = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': not c"
    assert warnings == [told]
    made.patch("configmaps", "c", PatchRequest("merge", {"data": {"a": "b"}}), "default", options=WriteOptions(warnings=warnings))
    assert warnings == [told, told]


def test_what_a_policy_wants_audited_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    made = store()
    keys = {"size": "object.data.size", "none": "''", "fails": "object.data.missing"}
    wanted = [{"key": key, "valueExpression": text} for key, text in keys.items()]
    validating(made, {"expression": "false", "message": "no"}, actions=("Audit",), auditAnnotations=wanted, failurePolicy="Ignore")
    config_map(made, size="large")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {"name": "a.example.com", "rules": [rule], "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"url": "https://127.0.0.1:1/"}
    made.create(f"validatingwebhookconfigurations.{GROUP}", {"metadata": {"name": "h"}, "webhooks": [hook]})
    with pytest.raises(StatusError, match="is not there yet"):  # the write will be begun again
        config_map(made, "d", size="large")
    (event,) = (json.loads(record.getMessage()) for record in caplog.records if record.name == "pumice.audit")
    assert (event["apiVersion"], event["verb"], event["objectRef"]["name"]) == ("audit.k8s.io/v1", "create", "c")
    (failure,) = json.loads(event["annotations"].pop("validation.policy.admission.k8s.io/validation_failure"))
    assert event["annotations"] == {"p/size": "large"}
    assert failure == {"message": "no", "policy": "p", "binding": "b", "validationActions": ["Audit"]}


def test_an_audit_annotation_without_a_value_refuses_a_write_if_failures_do() -> None:
    made = store()
    validating(made, auditAnnotations=[{"key": "k", "valueExpression": "object.data.missing"}])
    with pytest.raises(StatusError, match="the value of audit annotation k resulted in error"):
        config_map(made)


def test_conditions_variables_and_the_namespace() -> None:
    made = store()
    validating(
        made,
        {"expression": "variables.twice == 'aa' && namespaceObject.metadata.name == 'default'"},
        variables=[{"name": "once", "expression": "object.data.a"}, {"name": "twice", "expression": "variables.once + variables.once"}],
        matchConditions=[{"name": "only", "expression": "object.metadata.name.startsWith('x')"}],
    )
    config_map(made, a="b")
    config_map(made, "x", a="a")
    with pytest.raises(StatusError, match="failed expression"):
        config_map(made, "x2", a="b")


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_an_expression_without_a_value_is_treated_as_the_failure_policy_says(policy: str) -> None:
    made = store()
    validating(made, {"expression": "object.data.none == 'x'"}, failurePolicy=policy)
    if policy == "Ignore":
        config_map(made, size="small")
        return
    with pytest.raises(StatusError, match="resulted in error: no such key: none"):
        config_map(made, size="small")


@pytest.mark.parametrize("ref", [{"name": "limits"}, {"selector": {"matchLabels": {"is": "limit"}}}])
def test_parameters_are_objects_that_a_binding_names(ref: Object) -> None:
    made = store()
    made.create("configmaps", {"metadata": {"name": "limits", "labels": {"is": "limit"}}, "data": {"most": "5"}}, "default")
    ref = {**ref, "parameterNotFoundAction": "Deny"}
    validating(made, {"expression": "int(object.data.n) <= int(params.data.most)"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
               binding={"paramRef": ref})  # fmt: skip
    config_map(made, n="5")
    with pytest.raises(StatusError, match="failed expression"):
        config_map(made, "d", n="6")
    made.create("namespaces", {"metadata": {"name": "bare"}})
    with pytest.raises(StatusError, match="no params found"):
        made.create("configmaps", {"metadata": {"name": "d"}, "data": {"n": "1"}}, "bare")


@pytest.mark.parametrize(
    ("match", "is_bound"),
    [
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"resourceRules": [{**ON_MAPS, "resourceNames": ["c"]}]}, True),
        ({"resourceRules": [{**ON_MAPS, "resourceNames": ["d"]}]}, False),
        ({"excludeResourceRules": [ON_MAPS]}, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
    ],
)
def test_a_binding_may_narrow_where_a_policy_applies(match: Object, is_bound: bool) -> None:
    made = store()
    validating(made, {"expression": "false"}, binding={"matchResources": match})
    if not is_bound:
        config_map(made)
        return
    with pytest.raises(StatusError, match="failed expression: false"):
        config_map(made)


def test_a_mutating_policy_patches_and_applies() -> None:
    made = store()
    patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, "
    patch += "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"
    applied = "Object{data: Object.data{seen: object.metadata.labels['a/b']}}"
    mutating(
        made,
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": applied}},
        matchConditions=[{"name": "c", "expression": "object.metadata.name != 'spared'"}],
    )
    changed = config_map(made, k="v")
    assert (changed["data"], changed["metadata"]["labels"]) == ({"k": "v", "seen": "x"}, {"a/b": "x"})
    assert config_map(made, "spared", k="v")["data"] == {"k": "v"}


def test_a_mutation_that_cannot_be_made_refuses_the_write() -> None:
    made = store()
    mutating(made, {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/none'}]"}})
    with pytest.raises(StatusError, match="MutatingAdmissionPolicy 'm' with binding 'b' denied request"):
        config_map(made)


def test_the_types_of_expressions_are_checked_for_the_kinds_that_a_policy_names() -> None:
    made = store()
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
    right, wrong = {"expression": "object.spec.replicas > 1"}, {"expression": "object.spec.replica > 1"}
    policy = validating(made, right, wrong, matchConstraints={"resourceRules": [rule]})
    (warning,) = policy["status"]["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[1].expression"
    assert warning["warning"].startswith("apps/v1, Kind=Deployment: ERROR: undefined field 'replica'")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"validations": [{"expression": "object."}]}, "compilation failed"),
        ({"validations": [{"expression": "'x'"}]}, "must evaluate to bool"),
        ({"validations": []}, "must be specified"),
        ({"validations": [{"expression": "true"}], "matchConstraints": {}}, "resourceRules: Required value"),
        ({"validations": [{"expression": "true"}], "failurePolicy": "Perhaps"}, "Unsupported value"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(spec: Object, why: str) -> None:
    with pytest.raises(StatusError, match=why):
        body = {"matchConstraints": {"resourceRules": [ON_MAPS]}, **spec}
        store().create(f"validatingadmissionpolicies.{GROUP}", {"metadata": {"name": "p"}, "spec": body})


def test_a_pod_gets_the_overhead_of_its_runtime_class() -> None:
    made = store()
    scheduling = {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}
    body = {"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": scheduling}
    made.create("runtimeclasses.node.k8s.io", body)
    spec = made.create("pods", pod("p", runtimeClassName="vm"), "default")["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"vm": "yes"}) and scheduling["tolerations"][0] in spec[
        "tolerations"
    ]
    with pytest.raises(StatusError, match='RuntimeClass "none" not found'):
        made.create("pods", pod("q", runtimeClassName="none"), "default")
    with pytest.raises(StatusError, match="Overhead doesn't match"):
        made.create("pods", pod("q", runtimeClassName="vm", overhead={"cpu": "1"}), "default")
