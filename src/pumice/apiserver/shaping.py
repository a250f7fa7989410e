"""The first step of every write: an object is brought into the shape of its kind, or refused.

Unknown fields are dropped; `fieldValidation` says whether that is an error, a warning, or nobody's business.
"""

from __future__ import annotations

from pumice.apiserver.admission import Options
from pumice.apiserver.conform import WrongType, conformed
from pumice.apiserver.custom_rules import rule_causes
from pumice.apiserver.kinds import Kind
from pumice.apiserver.shapes import Object
from pumice.apiserver.status import ApiError, bad_request
from pumice.apiserver.structural import Findings, settle
from pumice.apiserver.wire_types import shape_of


def shaped(kind: Kind, obj: Object, options: Options) -> Object:
    """The object without what its kind does not know, custom kinds with their defaults. Raises ApiError."""
    try:
        obj, unknown = _custom(kind, obj) if kind.custom else conformed(kind.shape, obj, kind.kind)
    except WrongType as wrong:
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {wrong}') from None
    tell(kind, [f'unknown field "{path}"' for path in unknown], options)
    return obj


def tell(kind: Kind, problems: list[str], options: Options) -> None:
    """Treat fields that are unknown or stand twice as the request wishes."""
    if not problems or options.validation == "Ignore":
        return
    if options.validation == "Strict":
        problem = f"strict decoding error: {', '.join(problems)}"
        raise ApiError(400, "BadRequest", f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')
    options.warnings.extend(problems)


def _custom(kind: Kind, obj: Object) -> tuple[Object, list[str]]:
    metadata, unknown = conformed(shape_of("meta.v1.ObjectMeta"), obj["metadata"], "ObjectMeta")
    if kind.schema is None:
        return obj | {"metadata": metadata}, [f"metadata.{path}" for path in unknown]
    found = Findings()
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    body = settle(kind.schema, {key: value for key, value in obj.items() if key not in head}, "", found)
    if found.wrong_types:
        raise kind.invalid(str(metadata.get("name") or ""), found.wrong_types)
    return head | body, [f"metadata.{path}" for path in unknown] + found.unknown


def schema_causes(kind: Kind, obj: Object, old: Object | None) -> list[tuple[str, str]]:
    """What the schema of a kind has against an object; asked after admission had its chance to mend it. Of built-in kinds only the fields
    that an object and its spec must have: what is further inside has checks of its own where it matters."""
    if kind.custom:
        return _custom_causes(kind, obj, old)
    if kind.to_stored is not None:  # the object is in another form already
        return []
    spec, spec_shape = obj.get("spec"), kind.shape.fields.get("spec")
    causes = [(field, "Required value") for field in kind.shape.required if field not in obj]
    if isinstance(spec, dict) and spec_shape is not None:
        causes += [(f"spec.{field}", "Required value") for field in spec_shape.required if field not in spec]
    return causes


def _custom_causes(kind: Kind, obj: Object, old: Object | None) -> list[tuple[str, str]]:
    if kind.schema is None:
        return []
    found = Findings()
    settle(kind.schema, {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}, "", found)
    causes = found.wrong_types + found.causes
    return rule_causes(kind.rules, obj, old) if kind.rules is not None and not causes else causes
