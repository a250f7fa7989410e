"""The reasons for which the API server refuses what drivers publish of devices. What concerns a single field is declared in the tables of
types; here are the rules between fields."""

from collections.abc import Iterator, Sequence

from pumice.api import Object
from pumice.api.quantity import MOST, Quantity, format_bytes, format_milli, quantity
from pumice.cluster.apiserver.validation.device_checks import amounts, binding_causes, declared, node_resource_causes
from pumice.cluster.apiserver.validation.device_rules import chosen, qualified
from pumice.cluster.apiserver.validation.field_rules import Causes, duplicates, forbidden, invalid, required
from pumice.cluster.apiserver.validation.name_rules import named

_LISTS = ("ints", "bools", "strings", "versions")
_MOST_DEVICES, _MOST_ADVANCED = 128, 64  #: devices of a slice, also if one has a taint, consumes counters or has a list
_MOST_NAMES, _MOST_VALUES = 32, 48  #: attributes and capacities of a device, and values of its attributes
_MOST_OPTIONS = 10  #: values of a request policy


def slice_causes(published: Object, old: Object | None) -> Causes:
    spec, before = published.get("spec") or {}, (old or {}).get("spec") or {}
    found = declared("ResourceSlice", published, old, "spec")
    devices = spec.get("devices") or ()
    most = _MOST_ADVANCED if any(map(_is_advanced, devices)) else _MOST_DEVICES
    if len(devices) > most:
        return [*found, ("spec.devices", f"Too many: {len(devices)}: must have at most {most} items")]
    found += duplicates([device.get("name", "") for device in devices], "spec.devices") + _partition_type(spec, devices)
    kept = before.get("devices") or ()
    for index, device in enumerate(devices):
        if device not in kept:
            found += _device(device, f"spec.devices[{index}]", each_by_itself=bool(spec.get("perDeviceNodeSelection")))
    return found


def _is_advanced(device: Object) -> bool:
    lists = any(part in attribute for attribute in (device.get("attributes") or {}).values() for part in _LISTS)
    return bool(device.get("taints") or device.get("consumesCounters")) or lists


def _partition_type(spec: Object, devices: Sequence[Object]) -> Causes:
    name, place, found = spec.get("partitionTypeAttribute"), "spec.partitionTypeAttribute", Causes()
    if name is None:
        return found
    if not any(device.get("consumesCounters") for device in devices):
        text = "may only be set on a slice which declares devices that consume counters"
        found.append(invalid(place, name, text))
    if found or (wrong := qualified(name, place, ("prefix", "name"))):
        return found or wrong
    for index, device in enumerate(devices):
        at, attributes = f"spec.devices[{index}].attributes[{name}]", device.get("attributes") or {}
        attribute = attributes.get(name, attributes.get(name.removeprefix(f"{spec.get('driver')}/")))
        if not device.get("consumesCounters"):
            continue
        if attribute is None:
            text = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            found.append((at, f"Required value: {text}"))
        elif "string" not in attribute:
            text = "must be a string value because `partitionTypeAttribute` names this attribute"
            found.append(invalid(at, dict(_in_go(attribute)), text))
    return found


def _in_go(attribute: Object) -> Iterator[tuple[str, object]]:
    for field in ("int", "bool", "string", "version", *_LISTS):
        yield f"{field.capitalize().removesuffix('s')}Value{'s' if field in _LISTS else ''}", attribute.get(field)


def _device(device: Object, place: str, *, each_by_itself: bool) -> Causes:
    attributes, capacity, found = device.get("attributes") or {}, device.get("capacity") or {}, Causes()
    values = sum(max(sum(len(attribute.get(part) or ()) for part in _LISTS), 1) for attribute in attributes.values())
    counts = (len(attributes) + len(capacity), "attributes and capacities", _MOST_NAMES), (values, "attribute values", _MOST_VALUES)
    for count, what, most in counts:
        if count > most:
            found.append(invalid(place, count, f"the total number of {what} must not exceed {most}"))
    for name, attribute in sorted(attributes.items()):
        at = f"{place}.attributes[{name}]"
        found += qualified(name, f"{place}.attributes")
        found += [(f"{at}.{part}", "Invalid value: []: must not be empty if specified") for part in _LISTS if attribute.get(part) == []]
    for name, each in sorted(capacity.items()):
        found += qualified(name, f"{place}.capacity")
        at, policy = f"{place}.capacity[{name}].requestPolicy", each.get("requestPolicy")
        if policy is not None and not device.get("allowMultipleAllocations"):
            found.append(forbidden(at, "allowMultipleAllocations must be true"))
        elif policy is not None:
            found += _policy(quantity(each["value"]), policy, at)
    for name, taken in sorted((device.get("nodeAllocatableResources") or {}).items()):
        found += _taken(name, taken, capacity, f"{place}.nodeAllocatableResources[{name}]")
    return found + binding_causes(device, place) + _node_of(device, place, each_by_itself)


def _node_of(device: Object, place: str, each_by_itself: bool) -> Causes:
    found, rule = Causes(), "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    stated, which = [field for field in ("nodeName", "nodeSelector", "allNodes") if field in device], chosen(device)
    if not each_by_itself:
        only = "`nodeName`, `nodeSelector` and `allNodes` can only be set"
        return [(place, f"Invalid value: null: {only} if {rule}")] if stated else []
    if device.get("nodeName") == "":
        found.append((f"{place}.nodeName", 'Invalid value: "": must not be empty'))
    found += named("long", device["nodeName"], f"{place}.nodeName") if device.get("nodeName") else []
    if device.get("allNodes") is False:
        found.append((f"{place}.allNodes", "Invalid value: false: must be either unset or set to true"))
    if len(which) != 1:
        text = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {rule}"
        found.append((place, f'Invalid value: "{{{", ".join(which)}}}": {text}' if which else f"Required value: {text}"))
    return found


def _policy(has: Quantity, policy: Object, place: str) -> Causes:
    values, valid = policy.get("validValues") or (), policy.get("validRange")
    if values and valid is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(place, text)]
    if not values and valid is None:
        return []
    field = "validValues" if values else "validRange"
    if policy.get("default") is None:
        return [(f"{place}.default", f"Required value: required when {field} is defined")]
    default, at = quantity(policy["default"]), f"{place}.{field}"
    return _options(default, has, list(map(quantity, values)), at) if values else _range(default, has, valid or {}, at)


def _options(default: Quantity, has: Quantity, values: Sequence[Quantity], place: str) -> Causes:
    found: Causes = []
    for index, value in enumerate(values):
        if index and values[index - 1].milli > value.milli:
            found.append((f"{place}[{index}]", f'Invalid value: "{value.text}": values must be sorted in ascending order'))
    if len(values) > _MOST_OPTIONS:
        found.append((place, f"Too many: {len(values)}: must have at most {_MOST_OPTIONS} items"))
        values = ()
    for index, value in enumerate(values):
        if value.milli > has.milli:
            found.append((f"{place}[{index}]", f'Invalid value: "{value.text}": option is larger than capacity value: {has.text}'))
    found += duplicates([str(value.whole) for value in values], place)
    if default.milli not in {value.milli for value in values}:
        found.append((place, f'Invalid value: "{default.text}": default value is not valid according to the requestPolicy'))
    return found


def _range(default: Quantity, has: Quantity, valid: Object, place: str) -> Causes:
    if valid.get("min") is None:
        return [required(f"{place}.min", "required when validRange is defined")]
    low, high, step = (None if valid.get(field) is None else quantity(valid[field]) for field in ("min", "max", "step"))
    assert low is not None
    wrong = [
        ("min", low.milli > has.milli, low, f"min is larger than capacity value: {has.text}"),
        ("default", default.milli < low.milli, default, f"default is less than min: {low.text}"),
    ]
    if high is not None:
        wrong += [
            ("max", low.milli > high.milli, low, f"min is larger than max: {high.text}"),
            ("max", high.milli > has.milli, high, f"max is larger than capacity value: {has.text}"),
            ("default", default.milli > high.milli, default, f"default is more than max: {high.text}"),
        ]
    if step is not None and step.milli <= 0:
        wrong.append(("step", True, step, "must be greater than zero"))
    elif step is not None:
        both = low.milli + step.milli
        sum_ = format_bytes(both // 1000) if low.text.endswith("i") else format_milli(both)
        wrong.append(("step", both > has.milli, step, f"one step {sum_} is larger than capacity value: {has.text}"))
        stated = {"default": default, "min": low, "max": high, "step": step}
        odd = [(field, True, each, "must be greater than or equal to 0") for field, each in stated.items() if each and each.milli < 0]
        odd += [(field, True, each, f"must not be larger than {MOST}") for field, each in stated.items() if each and each.is_cut]
        text = f"value is not a multiple of a given step ({step.text}) from ({low.text})"
        wrong += odd or [("step", (each.whole - low.whole) % step.whole != 0, each, text) for each in (default, high) if each]
    return [(f"{place}.{field}", f'Invalid value: "{value.text}": {text}') for field, is_wrong, value, text in wrong if is_wrong]


def _taken(name: str, taken: Object, capacity: Object, place: str) -> Causes:
    """The causes for refusing what a device takes of its node's own resources."""
    found = node_resource_causes(name, place)
    mapping, overhead = taken.get("mapping"), taken.get("overhead")
    if mapping is None and overhead is None:
        found.append(required(place, "at least one of mapping or overhead must be set"))
    if mapping is not None:
        found += _mapping(mapping, capacity, f"{place}.mapping")
    if overhead is not None:
        at = f"{place}.overhead"
        if not overhead:
            found.append((at, 'Invalid value: "": at least one of perPod or perContainer must be set'))
        found += amounts(overhead, at, "must be non-negative")
    return found


def _mapping(mapping: Object, capacity: Object, place: str) -> Causes:
    key, text = mapping.get("capacityKey"), "must be positive"
    found = amounts({field: value for field, value in mapping.items() if field != "capacityKey"}, place, text, least=1)
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
        found.append(required(f"{place}.capacityMultiplier", "capacityMultiplier is required when capacityKey is set"))
    if key is None and "capacityMultiplier" in mapping:
        found.append(required(f"{place}.capacityKey", "capacityKey is required when capacityMultiplier is set"))
    return found
