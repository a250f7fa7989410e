"""The reasons for which the API server refuses what drivers publish of devices, and the claims for them; and their defaults."""

from collections.abc import Callable, Iterable, Iterator

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.cluster.apiserver.declared_rules import _plain, compact
from pumice.cluster.apiserver.field_rules import Causes, missing, unsupported

_WHERE = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_MODES = ("All", "ExactCount")
_EFFECTS = ("NoExecute", "NoSchedule", "None")


def default_claim(claim: Object) -> None:
    for request in _requests(_spec(claim).get("devices") or {}):
        if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
            request.setdefault("count", 1)


def default_claim_template(template: Object) -> None:
    default_claim(_spec(template))


def _requests(devices: Object) -> Iterator[Object]:
    for request in devices.get("requests") or ():
        yield from [*([request["exactly"]] if request.get("exactly") else []), *(request.get("firstAvailable") or ())]


def claim_causes(claim: Object, old: Object | None) -> Causes:
    if old is not None:
        return _immutable(claim, old)
    return _claim(_spec(claim).get("devices") or {}, "spec.devices")


def claim_template_causes(template: Object, old: Object | None) -> Causes:
    if old is not None:
        return _immutable(template, old)
    return _claim(_spec(_spec(template)).get("devices") or {}, "spec.spec.devices")


def _immutable(obj: Object, old: Object) -> Causes:
    return [] if _spec(obj) == _spec(old) else [("spec", f"Invalid value: {compact(_spec(obj))}: field is immutable")]


def _spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def _claim(devices: Object, place: str) -> Causes:
    requests, found = devices.get("requests") or (), Causes()
    found += _doubled(requests, f"{place}.requests")
    names = {request.get("name") for request in requests}
    names |= {f"{one.get('name')}/{way.get('name')}" for one in requests for way in one.get("firstAvailable") or ()}
    for index, request in enumerate(requests):
        found += _request(request, f"{place}.requests[{index}]")
    for index, constraint in enumerate(devices.get("constraints") or ()):
        at = f"{place}.constraints[{index}]"
        for number, name in enumerate(constraint.get("requests") or ()):
            if name not in names:
                text = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
                found.append((f"{at}.requests[{number}]", f'Invalid value: "{name}": {text}'))
        if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
            text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
            found.append((at, f"Required value: {text}"))
    return found


def _request(request: Object, place: str) -> Causes:
    found, ways = _name(request, place), [each for each in ("exactly", "firstAvailable") if request.get(each)]
    if not ways:
        return [*found, (place, "Required value: exactly one of `exactly` or `firstAvailable` is required")]
    if len(ways) > 1:
        text = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        return [*found, (place, f"Invalid value: null: {text}")]
    if "exactly" in ways:
        return found + _way(request["exactly"], f"{place}.exactly")
    found += _doubled(request["firstAvailable"], f"{place}.firstAvailable")
    for index, way in enumerate(request["firstAvailable"]):
        found += _name(way, f"{place}.firstAvailable[{index}]") + _way(way, f"{place}.firstAvailable[{index}]")
    return found


def _way(way: Object, place: str) -> Causes:
    found, count, mode = missing(place, way, "deviceClassName"), way.get("count", 0), way.get("allocationMode", "")
    found = found or list(_plain(("format=long",), way["deviceClassName"], f"{place}.deviceClassName"))
    if mode not in _MODES:
        return found + unsupported(f"{place}.allocationMode", mode, _MODES)
    if mode == "All" and count:
        found.append((f"{place}.count", f"Invalid value: {count}: must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        found.append((f"{place}.count", f"Invalid value: {count}: must be greater than zero"))
    return found


def slice_causes(published: Object, old: Object | None) -> Causes:
    spec, found = _spec(published), Causes()
    found += missing("spec", spec, "driver") or list(_plain(("format=long",), spec["driver"].lower(), "spec.driver"))
    found += _pool(spec.get("pool") or {})
    for field, before in (("driver", spec.get("driver")), ("nodeName", spec.get("nodeName"))):
        if old is not None and _spec(old).get(field) != before:
            found.append((f"spec.{field}", f"Invalid value: {compact(before)}: field is immutable"))
    found += _selection(spec)
    if "sharedCounters" in spec and "devices" in spec:
        found.append(("spec", 'Invalid value: "": only one of `sharedCounters` or `devices` is allowed'))
    devices = spec.get("devices") or ()
    found += _doubled(devices, "spec.devices", by_name=True)
    for index, device in enumerate(devices):
        found += _device(device, f"spec.devices[{index}]", each_by_itself=bool(spec.get("perDeviceNodeSelection")))
    return found


def _pool(pool: Object) -> Causes:
    found = missing("spec.pool", pool, "name")
    for part in pool.get("name", "").split("/") if not found else ():
        found += _plain(("format=long",), part, "spec.pool.name")
    if (count := pool.get("resourceSliceCount", 0)) <= 0:
        found.append(("spec.pool.resourceSliceCount", f"Invalid value: {count}: must be greater than zero"))
    if (generation := pool.get("generation", 0)) < 0:
        found.append(("spec.pool.generation", f"Invalid value: {generation}: must be greater than or equal to zero"))
    return found


def _selection(spec: Object) -> Causes:
    found: Causes = []
    if spec.get("nodeName") == "":
        found.append(("spec.nodeName", 'Invalid value: "": must be either unset or set to a non-empty string'))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field) is False:
            found.append((f"spec.{field}", "Invalid value: false: must be either unset or set to true"))
    chosen, which = [field for field in _WHERE if spec.get(field)], ", ".join(f"`{field}`" for field in _WHERE)
    if not chosen:
        found.append(("spec", f"Required value: exactly one of {which} is required"))
    elif len(chosen) > 1:
        found.append(("spec", f"{_among(*chosen)}: exactly one of {which} is required, but multiple fields are set"))
    return found


def _among(*chosen: str) -> str:
    return f'Invalid value: "{{{", ".join(f"`{each}`" for each in chosen)}}}"'


def _device(device: Object, place: str, *, each_by_itself: bool) -> Causes:
    found = _name(device, place)
    for index, taint in enumerate(device.get("taints") or ()):
        at = f"{place}.taints[{index}]"
        found += missing(at, taint, "effect") or unsupported(f"{at}.effect", taint["effect"], _EFFECTS)
    chosen = [field for field in _WHERE[:3] if device.get(field)]
    rule = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    if each_by_itself and len(chosen) != 1:
        text = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {rule}"
        found.append((place, f"{_among(*chosen)}: {text}" if chosen else f"Required value: {text}"))
    elif not each_by_itself and chosen:
        only = "`nodeName`, `nodeSelector` and `allNodes` can only be set"
        found.append((place, f"Invalid value: null: {only} if {rule}"))
    for name, taken in sorted((device.get("nodeAllocatableResources") or {}).items()):
        found += _taken(name, taken, device.get("capacity") or {}, f"{place}.nodeAllocatableResources[{name}]")
    return found


def _taken(name: str, taken: Object, capacity: Object, place: str) -> Causes:
    """The causes for refusing what a device takes of its node's own resources."""
    found: Causes = []
    if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
        found.append((place, f'Invalid value: "{name}": must be a node allocatable resource name'))
    mapping, overhead = taken.get("mapping"), taken.get("overhead")
    if mapping is None and overhead is None:
        found.append((place, "Required value: at least one of mapping or overhead must be set"))
    if mapping is not None:
        found += _mapping(mapping, capacity, f"{place}.mapping")
    if overhead is not None:
        at = f"{place}.overhead"
        if not overhead:
            found.append((at, 'Invalid value: "": at least one of perPod or perContainer must be set'))
        found += _amounts(overhead, at, "must be non-negative", lambda milli: milli < 0)
    return found


def _mapping(mapping: Object, capacity: Object, place: str) -> Causes:
    found, key = _amounts(mapping, place, "must be positive", lambda milli: milli <= 0), mapping.get("capacityKey")
    members, both = [each for each in ("capacityKey", "deviceMultiplier") if each in mapping], "of: `capacityKey`, `deviceMultiplier`"
    if not members:
        found.append((place, f'Invalid value: "": must specify one {both}'))
    elif len(members) > 1:
        found.append((place, f'Invalid value: "{{{", ".join(members)}}}": must specify exactly one {both}'))
    if key == "":
        found.append((f"{place}.capacityKey", 'Invalid value: "": capacityKey must not be an empty string'))
    elif key is not None and key not in capacity:
        found.append((f"{place}.capacityKey", f'Not found: "{key}"'))
    if key is not None and "capacityMultiplier" not in mapping:
        found.append((f"{place}.capacityMultiplier", "Required value: capacityMultiplier is required when capacityKey is set"))
    if key is None and "capacityMultiplier" in mapping:
        found.append((f"{place}.capacityKey", "Required value: capacityKey is required when capacityMultiplier is set"))
    return found


def _amounts(amounts: Object, place: str, text: str, is_wrong: Callable[[int], bool]) -> Causes:
    stated = ((field, value) for field, value in amounts.items() if field != "capacityKey")
    return [(f"{place}.{field}", f'Invalid value: "{value}": {text}') for field, value in stated if is_wrong(quantity(value).milli)]


def _name(obj: Object, place: str) -> Causes:
    return list(_plain(("format=short",), obj.get("name", ""), f"{place}.name"))


def _doubled(items: Iterable[Object], place: str, *, by_name: bool = False) -> Causes:
    """The causes for refusing items with a name that another one has."""
    seen, found = set[str](), Causes()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if name in seen:
            found.append((f"{place}[{index}]", f"Duplicate value: {compact(name if by_name else item)}"))
        seen.add(name)
    return found
