"""Objects as plain JSON: reading, copying, merging and comparing them, and names for new ones. Absent and null fields mean the same.

These functions never change their arguments. An object from a lister is shared, so it is only read; `copied` makes a copy to change.

Names for new objects: they look random, yet the same cause always gives the same name.

A controller that decides twice on the same objects requests the same name twice, and the second create finds the first object. So
controllers need not remember what they have sent already.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from pumice.api.times import instant

Object = dict[str, Any]
_sorted = msgspec.json.Encoder(order="sorted").encode


class Key(NamedTuple):
    """Identifies an object among the objects of its kind. `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str


def name_of(subject: Object) -> str:
    return str(subject["metadata"]["name"])


def namespace_of(subject: Object) -> str:
    return subject["metadata"].get("namespace") or ""


def key_of(subject: Object) -> Key:
    return Key(namespace_of(subject), name_of(subject))


def uid_of(subject: Object) -> str:
    return subject["metadata"].get("uid") or ""


def labels_of(subject: Object) -> Mapping[str, str]:
    return subject["metadata"].get("labels") or {}


def annotations_of(subject: Object) -> Mapping[str, str]:
    return subject["metadata"].get("annotations") or {}


def finalizers_of(subject: Object) -> list[str]:
    return subject["metadata"].get("finalizers") or []


def spec_of(subject: Object) -> Object:
    return subject.get("spec") or {}


def status_of(subject: Object) -> Object:
    return subject.get("status") or {}


def terminating(subject: Object) -> bool:
    return bool(subject["metadata"].get("deletionTimestamp"))


def created_at(subject: Object) -> float:
    """The creation time in seconds since 1970; 0 if the object was never stored."""
    stamp = subject["metadata"].get("creationTimestamp")
    return instant(stamp) if stamp else 0.0


def owners_of(subject: Object) -> list[Object]:
    return subject["metadata"].get("ownerReferences") or []


def controller_of(subject: Object) -> Object | None:
    """The owner reference of the object's controller; None if it has no controller."""
    for owner in owners_of(subject):
        if owner.get("controller"):
            return owner
    return None


def controlled_by(owner: Object) -> Object:
    """The owner reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(subject: Object, type_: str) -> Object | None:
    return next((entry for entry in status_of(subject).get("conditions") or [] if entry.get("type") == type_), None)


def is_true(subject: Object, type_: str) -> bool:
    """Whether the condition of this type is there and true."""
    return (condition(subject, type_) or {}).get("status") == "True"


def field(subject: Object, path: str) -> Any:
    """The value at a dotted path such as "spec.nodeName"; None if it is absent."""
    value: Any = subject
    for step in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def copied(value: Any) -> Any:
    """A copy of a JSON value that shares no dict and no list with it."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


def clone(value: Any) -> Any:
    """The same for a value that came from JSON: quicker."""
    return msgspec.json.decode(msgspec.json.encode(value))


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON. In Python 1 equals true."""
    return one is other or (one == other and (isinstance(one, str) or _sorted(one) == _sorted(other)))


def merged(target: Any, patch: Any) -> Any:
    """The result of a JSON merge patch (RFC 7386) on `target`: objects are merged, null removes a field, any other value replaces it."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def difference(old: Object, new: Object) -> Object:
    """The smallest JSON merge patch from `old` to `new`; empty if they are equal. Null and absent are the same."""
    found: Object = {}
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            if inner := difference(before, after):
                found[key] = inner
        elif before != after:
            found[key] = copied(after)
    return found


ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  #: the characters of Kubernetes' own suffixes: no vowels, none that looks like another


def suffix(*cause: object, length: int = 5) -> str:
    """A suffix of `length` characters that is always the same for the same cause."""
    import hashlib  # loads OpenSSL, which a process that makes no names does not need

    number = int.from_bytes(hashlib.sha256("\0".join(map(str, cause)).encode()).digest()[:16], "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[digit])
    return "".join(letters)
