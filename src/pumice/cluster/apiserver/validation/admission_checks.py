"""What is refused in admission policies and their bindings."""

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Causes, missing


def policy_causes(policy: Object, old: Object | None) -> Causes:
    """What is wrong with a policy: pairs of a field's path and a sentence."""
    from pumice.cluster.apiserver.admission.conditions import EXPRESSIONS, TEXT, condition_causes, expression_causes

    spec = policy.get("spec") or {}
    causes = missing("spec.matchConstraints", spec.get("matchConstraints") or {}, "resourceRules")
    causes += condition_causes("spec.matchConditions", spec.get("matchConditions") or (), EXPRESSIONS)
    for index, one in enumerate(spec.get("variables") or ()):
        causes += expression_causes(f"spec.variables[{index}].expression", one, EXPRESSIONS, ())
    for index, one in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        causes += expression_causes(f"{path}.expression", one, EXPRESSIONS)
        if one.get("messageExpression"):
            causes += expression_causes(f"{path}.messageExpression", {"expression": one["messageExpression"]}, EXPRESSIONS, TEXT)
    for index, one in enumerate(spec.get("auditAnnotations") or ()):
        causes += expression_causes(
            f"spec.auditAnnotations[{index}].valueExpression", {"expression": one["valueExpression"]}, EXPRESSIONS, ()
        )
    for index, one in enumerate(spec.get("mutations") or ()):
        field = "jsonPatch" if one.get("patchType") == "JSONPatch" else "applyConfiguration"
        causes += expression_causes(f"spec.mutations[{index}].{field}.expression", one.get(field) or {}, EXPRESSIONS, ())
    if not any(spec.get(field) for field in ("validations", "auditAnnotations", "mutations")):
        causes.append(("spec", "Required value: validations, auditAnnotations or mutations must be specified"))
    return causes


def binding_causes(binding: Object, old: Object | None) -> Causes:
    spec = binding.get("spec") or {}
    actions = spec.get("validationActions") or ()
    causes = missing("spec", spec, "validationActions") if binding.get("kind") == "ValidatingAdmissionPolicyBinding" else []
    if {"Deny", "Warn"} <= set(actions):
        text = "Invalid value: must not contain both Deny and Warn (repeating the same validation failure)"
        causes.append(("spec.validationActions", text))
    return causes
