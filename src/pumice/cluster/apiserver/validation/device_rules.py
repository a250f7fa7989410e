"""What names, expressions and operations of devices may be."""

from collections.abc import Iterator, Sequence

from pumice.api import Object
from pumice.cluster.apiserver.validation.declared_rules import plain
from pumice.cluster.apiserver.validation.field_rules import Causes, invalid, required
from pumice.cluster.apiserver.validation.name_rules import misnamed, named

LONGEST = 10 * 1024  #: bytes of an expression, and of parameters
_OWN = "kubernetes.io/"
_WHERE = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def qualified(name: str, place: str, words: tuple[str, str] = ("the domain", "the name")) -> Causes:
    """The causes for refusing the name of an attribute or capacity. `words`: what its parts are called where a domain is a must."""
    is_full, parts, found = words[0] == "prefix", name.split("/"), Causes()
    if len(parts) == 2:
        found += [(place, f'Invalid value: "": {word} must not be empty') for word, part in zip(words, parts, strict=True) if not part]
        found += list(plain(("format=anycase", "bytes=63"), parts[0], place)) if parts[0] else []
    if len(parts) == 1 or (len(parts) == 2 and parts[1]):
        found += list(plain(("format=identifier", "bytes=32"), parts[-1], place))
    if is_full and len(parts) == 1:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        found.append(invalid(place, name, text))
    return found


def pool_causes(name: str, place: str) -> Causes:
    if not name:
        return [required(place)]
    too_long = list(plain(("bytes=253",), name, place))
    return too_long + [cause for part in name.split("/") for cause in named("long", part, place)]


def skipping_causes(operations: Sequence[str], place: str) -> Causes:
    if "NodePrepareResources" not in operations or {"NodeUnprepareResources", "*"} & set(operations):
        return []
    text = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
    return [invalid(place, operations, text)]


def no_extended_resource(name: str) -> Iterator[str]:
    if "/" not in name:
        yield "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    elif _OWN in name:
        yield f'must not have "{_OWN}" domain'
    if name.startswith("requests."):
        yield 'must not have "requests." prefix'
    yield from misnamed("label", f"requests.{name}")


def expression_causes(text: str, place: str, *, is_derived: bool = False) -> Causes:
    from pumice.api import device_expressions  # it takes 0.1 s; most clusters have no devices

    if len(text.encode()) > LONGEST:
        return [(place, f"Too long: may not be more than {LONGEST} bytes")]
    fault = device_expressions.derivation(text) if is_derived else device_expressions.selection(text)
    if not isinstance(fault, str):
        return []
    return [invalid(place, text, fault if fault.startswith("must evaluate") else f"compilation failed: {fault}")]


def chosen(owner: Object | None) -> list[str]:
    """By which fields a slice or a device says which nodes have it."""
    return [f"`{field}`" for field in _WHERE if owner and (owner.get(field) or (field == "nodeSelector" and field in owner))]
