"""The first step of every write: an object is brought into the shape of its kind, or refused.

Unknown fields are dropped; `fieldValidation` says whether that is an error, a warning, or ignored. `conforms` answers yes or no as fast
as Python can, as nearly every object is well-formed. Only if it answers no does `conformed` walk through the value again, with paths. It
drops unknown fields, nulls, and values that are zero or empty where Kubernetes does not write those, writes quantities in their canonical
form, returns the paths of the unknown fields, and raises an error for a wrong type in the words of the API server.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pumice.api import Object
from pumice.api.cel.cost import CostBudget
from pumice.api.quantity import QuantityError, canonical
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.crd_rules import rule_causes
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.scheme.structural_schema import ABSENT, Findings, settle
from pumice.cluster.apiserver.status import StatusError, bad_request
from pumice.cluster.apiserver.validation.field_rules import Causes

Test = Callable[[Any], bool]

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
_GO_NAMES = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}


class WrongType(ValueError):
    """A value cannot be read as the type of its field. `patched` says so in the words that are used for the result of a patch."""

    def __init__(self, text: str, patched: str = "") -> None:
        super().__init__(text)
        self.patched = patched or text


class Misshaped(StatusError):
    """The refusal of an object with a value of a wrong type, or with fields that its kind does not have: `text`, and of the result of a
    strategic patch `patched`."""

    def __init__(self, kind: ServedKind, text: str, patched: str = "") -> None:
        super().__init__(400, "BadRequest", f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {text}')
        self.text, self.patched = text, patched or text


def _is_canonical(value: Any) -> bool:
    try:
        return type(value) is str and canonical(value) == value
    except QuantityError:
        return False


def _is_quantity(value: Any) -> bool:
    if type(value) not in (str, int, float):
        return False
    try:
        canonical(value)
    except QuantityError:
        return False
    return True


_SCALAR_TESTS: dict[str, Test] = {
    "string": lambda value: type(value) is str,
    "int32": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "int64": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "number": lambda value: type(value) in (int, float),
    "bool": lambda value: type(value) is bool,
    "bytes": lambda value: type(value) is str,
    "Quantity": _is_canonical,
    "IntOrString": lambda value: type(value) in (int, str),
    "Time": lambda value: type(value) is str and _INSTANT.match(value) is not None,
    "MicroTime": lambda value: type(value) is str and _INSTANT.match(value) is not None,
    "any": lambda value: True,
}


def conforms(shape: Shape, value: Any) -> bool:
    """Whether the value is well-formed: without unknown fields and nulls, and with quantities in the canonical form that is stored."""
    return (shape.test or _test_of(shape))(value)


def _test_of(shape: Shape) -> Test:
    """The test of a shape, which is made once and then kept in the shape."""
    if shape.test is None:
        match shape.kind:
            case "struct":
                _make_struct_test(shape)
            case "list" | "map":
                assert shape.element is not None
                shape.test = (_list_test if shape.kind == "list" else _map_test)(_test_of(shape.element))
            case scalar:
                shape.test = _SCALAR_TESTS[scalar]
    assert shape.test is not None
    return shape.test


def _make_struct_test(shape: Shape) -> None:
    """Make the test of a struct. It checks fields of plain types itself; other fields have tests of their own. The test is set before those
    of the fields are made, as a struct may contain itself."""
    plain: dict[str, type] = {}
    tests: dict[str, Test] = {}
    preserve, omitted = shape.preserve, shape.omitted

    def test(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            wanted = plain.get(key)
            if wanted is not None:
                if type(item) is not wanted or (not item and key in omitted):
                    return False
                continue
            inner = tests.get(key)
            if inner is None:
                if preserve:
                    continue
                return False
            if not inner(item) or (not item and key in omitted):
                return False
        return True

    shape.test = test
    for name, field in shape.fields.items():
        if field.kind in ("string", "bytes", "bool"):
            plain[name] = bool if field.kind == "bool" else str
        else:
            tests[name] = _test_of(field)


def _list_test(inner: Test) -> Test:
    def test(value: Any) -> bool:
        if type(value) is not list:
            return False
        for item in value:  # noqa: SIM110 - a loop is twice as fast as all() over a generator
            if not inner(item):
                return False
        return True

    return test


def _map_test(inner: Test) -> Test:
    def test(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for item in value.values():  # noqa: SIM110
            if not inner(item):
                return False
        return True

    return test


_NOTHING: Object = {}
_ZEROS: dict[str, Any] = {"string": "", "bool": False, "bytes": "", "Quantity": "0", "struct": {}, "map": {}, "list": [], "any": None}


class _Walk(NamedTuple):
    """How a value is walked through, and the paths of unknown fields that were found."""

    unknown: list[str]
    keeps_zeros: bool


def conformed(
    shape: Shape, value: Any, kind_name: str = "", stored: Object = _NOTHING, *, keeps_zeros: bool = False
) -> tuple[Any, list[str]]:
    """The value without unknown fields and nulls, and the paths of the unknown fields that were dropped. Raises WrongType.

    Fields that equal those of `stored`, which was checked before, are not checked again. An apply keeps what is zero or empty."""
    if not stored and conforms(shape, value):
        return value, []
    walk = _Walk([], keeps_zeros)
    return _clean(shape, value, "", kind_name, walk, stored), walk.unknown


def _clean(shape: Shape, value: Any, path: str, owner: str, walk: _Walk, stored: Object = _NOTHING) -> Any:
    """The value without unknown fields and nulls. Well-formed parts are returned as they are: mostly only a null or two are wrong."""
    match shape.kind:
        case "struct":
            return _clean_struct(shape, value, path, owner, walk, stored)
        case "map":
            if type(value) is not dict:
                raise _wrong_type(shape, value, path, owner)
            assert shape.element is not None
            return {key: _clean_item(shape.element, item, path, owner, walk) for key, item in value.items()}
        case "list":
            if type(value) is not list:
                raise _wrong_type(shape, value, path, owner)
            assert shape.element is not None
            return [_clean_item(shape.element, item, f"{path}[{index}]", owner, walk) for index, item in enumerate(value)]
        case "Quantity" if _is_quantity(value):
            return canonical(value)
        case _:
            raise _wrong_type(shape, value, path, owner)


def _clean_item(shape: Shape, item: Any, path: str, owner: str, walk: _Walk) -> Any:
    """An item of a list or a value of a map, of which null is the zero value."""
    item = _ZEROS.get(shape.kind, 0) if item is None else item
    return item if conforms(shape, item) else _clean(shape, item, path, owner, walk)


def _clean_struct(shape: Shape, value: Any, path: str, owner: str, walk: _Walk, stored: Object) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong_type(shape, value, path, owner)
    result = {}
    for key, item in value.items():
        field = shape.fields.get(key)
        if field is None:
            if shape.preserve:
                result[key] = item
            else:
                walk.unknown.append(f"{path}.{key}" if path else key)
        elif item is not None:
            clean = item
            if not (key in stored and stored[key] == item) and not (field.test or _test_of(field))(item):
                clean = _clean(field, item, f"{path}.{key}" if path else key, shape.name.rpartition(".")[2] or owner, walk)
            if clean or walk.keeps_zeros or key not in shape.omitted:
                result[key] = clean
    return result


def _wrong_type(shape: Shape, value: Any, path: str, owner: str) -> WrongType:
    wanted = _go_type(shape)
    if wanted == "resource.Quantity" and isinstance(value, str | int | float) and not isinstance(value, bool):
        return WrongType(f"{path}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    if wanted == "v1.Time" and isinstance(value, str):
        return WrongType(f'{path}: "{value}" is not an instant; write one such as "2026-01-01T00:00:00Z"')
    found = _GO_NAMES.get(type(value), "null")
    shown = f"number {value}" if type(value) in (int, float) and wanted.startswith("int") else found
    field = re.sub(r"\[\d+\]", "", path)
    sort = "map" if wanted.startswith("map[") else "slice" if wanted.startswith("[]") else ""
    patched = f"cannot restore {sort} from {found}" if sort else ""
    return WrongType(f"json: cannot unmarshal {shown} into Go struct field {owner}.{field} of type {wanted}", patched)


def _go_type(shape: Shape | None) -> str:
    if shape is None:
        return ""
    match shape.kind:
        case "list":
            return "[]" + _go_type(shape.element)
        case "map":
            return "map[string]" + _go_type(shape.element)
        case "struct":
            return shape.name.split(".", 1)[1] if shape.name else "object"
        case "Quantity":
            return "resource.Quantity"
        case "IntOrString":
            return "intstr.IntOrString"
        case "Time" | "MicroTime":
            return "v1.Time"
        case other:
            return other


def shaped(kind: ServedKind, obj: Object, options: WriteOptions, stored: Object = _NOTHING) -> Object:
    """The object without the fields that its kind does not know; for custom kinds, with the schema's defaults. Raises StatusError."""
    try:
        obj, unknown = _custom(kind, obj, stored) if kind.custom else conformed(kind.shape, obj, kind.kind, stored)
    except WrongType as wrong:
        raise Misshaped(kind, str(wrong), wrong.patched) from None
    if unknown or options.doubled:
        _tell(kind, [f'unknown field "{path}"' for path in unknown] + [f'duplicate field "{path}"' for path in options.doubled], options)
        options.doubled.clear()
    return obj


def as_applied(kind: ServedKind, obj: Object) -> Object:
    """An object that is applied, as `shaped` would make it, but with what is zero or empty. Raises StatusError, also for unknown fields."""
    try:
        found, unknown = _custom(kind, obj, _NOTHING) if kind.custom else conformed(kind.shape, obj, kind.kind, keeps_zeros=True)
    except WrongType as wrong:
        raise Misshaped(kind, str(wrong), wrong.patched) from None
    if unknown:
        raise untyped(kind, obj, [f".{path}: field not declared in schema" for path in unknown])
    return obj if kind.custom else found


def untyped(kind: ServedKind, obj: Object, causes: list[str]) -> StatusError:
    """The refusal of an object that is applied and does not suit the schema of its kind."""
    metadata = obj["metadata"]
    subject = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind.api_version}, Kind={kind.kind}"
    message = causes[0] if len(causes) == 1 else "errors:\n" + "\n".join(f"  {cause}" for cause in causes)
    return bad_request(f"failed to create typed patch object ({subject}): {message}")


def _tell(kind: ServedKind, problems: list[str], options: WriteOptions) -> None:
    """Treat unknown and duplicate fields as the request's fieldValidation says: refuse, warn or ignore. Raises StatusError."""
    if options.validation == "Strict":
        raise Misshaped(kind, f"strict decoding error: {', '.join(problems)}")
    if options.validation == "Warn":
        options.warnings.extend(problems)


def _custom(kind: ServedKind, obj: Object, stored: Object) -> tuple[Object, list[str]]:
    metadata, unknown = conformed(shape_of("meta.v1.ObjectMeta"), obj["metadata"], "ObjectMeta")
    if kind.schema is None:
        return obj | {"metadata": metadata}, [f"metadata.{path}" for path in unknown]
    found = Findings(checks=False)
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    body = settle(kind.schema, _body(obj), "", found, stored or ABSENT)
    if found.has_wrong_types:
        raise kind.invalid(str(metadata.get("name") or ""), _causes_of_schema(kind, obj, stored or ABSENT))
    return head | body, [f"metadata.{path}" for path in unknown] + found.unknown


def schema_causes(kind: ServedKind, obj: Object, old: Object | None, budget: CostBudget | None = None) -> Causes:
    """The causes for refusing an object by its kind's schema, once admission has changed it. For built-in kinds, only the required fields
    of the object and its spec are checked: fields further inside have their own checks where it matters."""
    if kind.custom:
        return _custom_causes(kind, obj, old, budget)
    if kind.to_stored is not None:  # the object has been converted to the stored version already
        return []
    causes: Causes = []
    for field in kind.shape.required:
        if field not in obj:
            causes.append((field, "Required value"))
    spec, spec_shape = obj.get("spec"), kind.shape.fields.get("spec")
    if isinstance(spec, dict) and spec_shape is not None:
        for field in spec_shape.required:
            if field not in spec:
                causes.append((f"spec.{field}", "Required value"))
    return causes


def _custom_causes(kind: ServedKind, obj: Object, old: Object | None, budget: CostBudget | None) -> Causes:
    if kind.schema is None:
        return []
    causes = _causes_of_schema(kind, obj, ABSENT if old is None else _body(old))
    return rule_causes(kind.rules, obj, old, budget) if kind.rules is not None and not causes else causes


def _causes_of_schema(kind: ServedKind, obj: Object, stored: Any) -> Causes:
    """Everything that is wrong with an object by the schema of its kind, but for parts that equal those of `stored`."""
    assert kind.schema is not None
    found = Findings()
    settle(kind.schema, _body(obj), "", found, stored)
    return found.causes


def _body(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
