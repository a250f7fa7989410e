"""The reasons for which the API server refuses claims for devices and their templates, classes of devices, taints of them, and what pods
say of them; and the defaults of claims.

What concerns a single field is declared in the tables of types. Here are the rules between fields, and those of expressions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.api.structs import encode
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation import handwritten_rules
from pumice.cluster.apiserver.validation.declared_rules import causes, internal
from pumice.cluster.apiserver.validation.device_rules import LONGEST, expression_causes, pool_causes, qualified, skipping_causes
from pumice.cluster.apiserver.validation.field_rules import Causes, duplicates, forbidden, invalid, required
from pumice.cluster.apiserver.validation.label_rules import annotation_causes, label_causes
from pumice.cluster.apiserver.validation.name_rules import named

_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def default_claim(claim: Object) -> None:
    for request in _ways(_spec(claim).get("devices") or {}):
        if request["allocationMode"] == "ExactCount":
            request.setdefault("count", 1)


def default_claim_template(template: Object) -> None:
    default_claim(_spec(template))


def _ways(devices: Object) -> Iterator[Object]:
    for request in devices.get("requests") or ():
        yield from [*([request["exactly"]] if request.get("exactly") else []), *(request.get("firstAvailable") or ())]


def claim_causes(claim: Object, old: Object | None) -> Causes:
    if old is not None:
        return _immutable(claim, old) + _status(claim, old)
    return declared("ResourceClaim", claim, None, "spec") + _claim(_spec(claim).get("devices") or {}, "spec.devices")


def claim_template_causes(template: Object, old: Object | None) -> Causes:
    if old is not None:
        return _immutable(template, old)
    found = declared("ResourceClaimTemplate", template, None, "spec") + _given_metadata(_spec(template).get("metadata") or {})
    return found + _claim(_spec(_spec(template)).get("devices") or {}, "spec.spec.devices")


def _given_metadata(metadata: Object) -> Causes:
    """The causes for refusing what the claims of a template are to have in their metadata."""
    place, more = "spec.metadata", metadata.keys() - {"labels", "annotations"}
    found = label_causes(metadata.get("labels") or {}, f"{place}.labels")
    found += annotation_causes(metadata.get("annotations") or {}, f"{place}.annotations")
    return found + [forbidden(f"{place}.{field.replace('uid', 'uID')}", "cannot be set") for field in sorted(more) if metadata[field]]


def declared(struct: str, value: Object, old: Object | None, *fields: str) -> Causes:
    return causes(shape_of(f"resource.v1.{struct}"), value, old, "", frozenset(), *fields)


def _immutable(obj: Object, old: Object) -> Causes:
    return [] if _spec(obj) == _spec(old) else [invalid("spec", _spec(obj), "field is immutable")]


def _spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def _claim(devices: Object, place: str) -> Causes:
    names, found, constrained = _request_names(devices), Causes(), set[tuple[str, str]]()
    for index, constraint in enumerate(devices.get("constraints") or ()):
        found += _references(constraint, names, f"{place}.constraints[{index}]")
        for each in ("matchAttribute", "distinctAttribute"):
            constrained |= {(name, constraint[each]) for name in constraint.get("requests") or [""] if constraint.get(each)}
    for index, request in enumerate(devices.get("requests") or ()):
        found += _request(request, f"{place}.requests[{index}]", constrained)
    return found + _configurations(devices.get("config") or (), f"{place}.config", names)


def _request_names(devices: Object) -> set[str]:
    """The names of requests, and those of their alternatives."""
    requests = devices.get("requests") or ()
    alternatives = {f"{one.get('name')}/{way.get('name')}" for one in requests for way in one.get("firstAvailable") or ()}
    return {str(request.get("name")) for request in requests} | alternatives


def _references(obj: Object, names: Set[str], place: str) -> Causes:
    listed = enumerate(obj.get("requests") or ())
    return [cause for index, name in listed for cause in _reference(name, names, f"{place}.requests[{index}]")]


def _reference(name: str, names: Set[str], place: str) -> Causes:
    parts = name.split("/")
    found = [cause for part in parts if len(parts) < 3 for cause in named("short", part, place)]
    return found if name in names else [*found, invalid(place, name, _NO_REQUEST)]


def _request(request: Object, place: str, constrained: Set[tuple[str, str]]) -> Causes:
    """The causes for refusing the attributes that a request derives."""
    name, alternatives = str(request.get("name")), request.get("firstAvailable") or ()
    if ("exactly" in request) is bool(alternatives):
        return []
    ways = [(f"{place}.firstAvailable[{index}]", way, ("", name, f"{name}/{way.get('name')}")) for index, way in enumerate(alternatives)]
    ways = ways or [(f"{place}.exactly", request["exactly"], ("", name, name))]
    found: Causes = []
    for at, way, mine in ways:
        attributes = {attribute for of, attribute in constrained if of in mine}
        found += _derived(way.get("derivedAttributes") or (), f"{at}.derivedAttributes", attributes)
    return found


def _derived(attributes: Sequence[Object], place: str, constrained: Set[str]) -> Causes:
    found = duplicates([each.get("name") for each in attributes], place)
    for index, attribute in enumerate(attributes):
        at, name = f"{place}[{index}]", attribute.get("name")
        if name and name not in constrained:
            text = "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
            found.append(invalid(f"{at}.name", name, text))
        if name:
            found += qualified(name, f"{at}.name", ("prefix", "name"))
        if attribute.get("expression"):
            found += expression_causes(attribute["expression"], f"{at}.expression", is_derived=True)
    return found


def _configurations(stated: Iterable[Object], place: str, names: Set[str]) -> Causes:
    found: Causes = []
    for index, each in enumerate(stated):
        found += _references(each, names, f"{place}[{index}]")
        at, parameters = f"{place}[{index}].opaque.parameters", (each.get("opaque") or {}).get("parameters")
        if each.get("opaque") and parameters is None:
            found.append(required(at))
        elif len(encode(parameters)) > LONGEST:
            found.append((at, f"Too long: may not be more than {LONGEST} bytes"))
        elif each.get("opaque") and not isinstance(parameters, dict):
            found.append((at, 'Invalid value: "<value omitted>": must be a valid JSON object'))
    return found


def class_causes(device_class: Object, old: Object | None) -> Causes:
    spec, before = _spec(device_class), _spec(old or {})
    found = declared("DeviceClass", device_class, old, "spec")
    if spec.get("config") != before.get("config"):
        found += _configurations(spec.get("config") or (), "spec.config", set())
    return found


def taint_rule_causes(rule: Object, old: Object | None) -> Causes:
    pool = (_spec(rule).get("deviceSelector") or {}).get("pool")
    found = declared("DeviceTaintRule", rule, old, "spec", "status")
    return found if pool is None else found + pool_causes(pool, "spec.deviceSelector.pool")


def _status(claim: Object, old: Object) -> Causes:
    """The causes for refusing what is said of the devices that a claim got."""
    status, before = claim.get("status") or {}, old.get("status") or {}
    if status == before:
        return []
    found, allocation = declared("ResourceClaim", claim, old, "status"), status.get("allocation")
    if status.get("reservedFor") and not allocation:
        found.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    if allocation and not before.get("allocation"):
        found += _allocation(allocation, _request_names(_spec(claim).get("devices") or {}))
    elif allocation and allocation != before["allocation"]:
        shown = internal(shape_of("resource.v1.AllocationResult"), allocation)
        found.append(invalid("status.allocation", shown, "field is immutable"))
    taken = [_device_of(result) for result in ((allocation or {}).get("devices") or {}).get("results") or ()]
    for index, device in enumerate(status.get("devices") or ()):
        found += pool_causes(device.get("pool", ""), f"status.devices[{index}].pool")
        if (which := _device_of(device)) not in taken:
            found.append(invalid(f"status.devices[{index}]", which, "must be an allocated device in the claim"))
    return found


def _device_of(obj: Object) -> Mapping[str, str]:
    return {f"{field[0].upper()}{field[1:]}".replace("Id", "ID"): obj.get(field) or "" for field in ("driver", "pool", "device", "shareID")}


def _allocation(allocation: Object, names: Set[str]) -> Causes:
    found, devices, place = Causes(), allocation.get("devices") or {}, "status.allocation.devices"
    for index, result in enumerate(devices.get("results") or ()):
        at = f"{place}.results[{index}]"
        found += _reference(result.get("request", ""), names, f"{at}.request") + binding_causes(result, at)
        found += skipping_causes(result.get("skipNodeOperations") or (), f"{at}.skipNodeOperations")
    found += _configurations(devices.get("config") or (), f"{place}.config", names)
    at = "status.allocation.nodeSelector"
    by_node = (
        handwritten_rules.causes(shape_of("core.v1.NodeSelector"), allocation["nodeSelector"], None) if "nodeSelector" in allocation else []
    )
    return found + [(f"{at}.{place}", text) for place, text in by_node]


def charge_causes(pod: Object, old: Object | None) -> Causes:
    """The causes for refusing what a pod says that its devices take of their node."""
    status, before, field = pod.get("status") or {}, (old or pod).get("status") or {}, "nodeAllocatableResourceClaimStatuses"
    if status.get(field) == before.get(field):
        return []
    found = causes(shape_of("core.v1.PodStatus"), status, before, "status", frozenset(), field)
    stated = (*(_spec(pod).get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    claims = {each.get("resourceClaimName") for each in stated}
    for index, charge in enumerate(status.get(field) or ()):
        at, name = f"status.{field}[{index}]", charge.get("resourceClaimName")
        if name and name not in claims:
            found.append(invalid(f"{at}.resourceClaimName", name, "no mapping found in pod reference"))
        for part in ("mapping", "overhead") if name else ():
            for number, taken in enumerate(charge.get(part) or ()):
                inner = f"{at}.{part}[{number}]"
                found += node_resource_causes(taken.get("name", ""), f"{inner}.name")
                if part == "overhead" and not taken.keys() - {"name"}:
                    found.append((inner, 'Invalid value: "": at least one of perPod or perContainer must be set'))
                found += amounts({key: value for key, value in taken.items() if key != "name"}, inner, "must be non-negative")
    return found


def binding_causes(device: Object, place: str) -> Causes:
    fields = ("bindingConditions", "bindingFailureConditions")
    wanted, failing = (device.get(field) or [] for field in fields)
    found = duplicates(wanted, f"{place}.{fields[0]}") + duplicates(failing, f"{place}.{fields[1]}")
    for index, condition in enumerate(failing):
        if condition in wanted:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(invalid(f"{place}.{fields[1]}[{index}]", condition, text))
    for field, other, is_there, is_other in ((*fields, wanted, failing), (*reversed(fields), failing, wanted)):
        if is_other and not is_there:
            found.append((f"{place}.{field}", f"Invalid value: null: {field} are required to use {other}"))
    return found


def node_resource_causes(name: str, place: str) -> Causes:
    if name in ("cpu", "memory") or name.startswith("hugepages-"):
        return []
    return [invalid(place, name, "must be a node allocatable resource name")]


def amounts(stated: Object, place: str, text: str, least: int = 0) -> Causes:
    """The causes for refusing amounts below this one, in thousandths."""
    return [(f"{place}.{field}", f'Invalid value: "{value}": {text}') for field, value in stated.items() if quantity(value).milli < least]
