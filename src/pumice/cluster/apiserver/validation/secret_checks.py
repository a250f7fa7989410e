"""The reasons for which the API server refuses a Secret or a ConfigMap: its keys, its size, or a change although it is immutable."""

import base64
import binascii

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Causes, forbidden, invalid, required
from pumice.cluster.apiserver.validation.name_rules import named

_LARGEST = 2**20  #: bytes of all values together
#: the keys that Secrets of a type must have: all of these, or one of these
_ALL_OF = {"kubernetes.io/tls": ("tls.crt", "tls.key"), "kubernetes.io/dockercfg": (".dockercfg",)}
_ALL_OF |= {"kubernetes.io/dockerconfigjson": (".dockerconfigjson",), "kubernetes.io/ssh-auth": ("ssh-privatekey",)}
_ONE_OF = {"kubernetes.io/basic-auth": ("username", "password")}
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def secret_causes(secret: Object, old: Object | None) -> Causes:
    data, type_ = secret.get("data") or {}, secret.get("type", "")
    found = _key_causes(data, "data") + _kept_causes(secret, old, ("data",))
    size = 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            found.append((f"data[{key}]", "Invalid value: it is not base64"))
    if size > _LARGEST:
        found.append(("data", f"Too long: may not be more than {_LARGEST} bytes"))
    if old is not None and type_ != old.get("type"):
        found.append(("type", f'Invalid value: "{type_}": field is immutable'))
    found += [required(f"data[{key}]") for key in _ALL_OF.get(type_, ()) if key not in data]
    if type_ in _ONE_OF and not any(key in data for key in _ONE_OF[type_]):
        found += [required(f"data[{key}]") for key in _ONE_OF[type_]]
    if type_ == "kubernetes.io/service-account-token" and not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
        found.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    return found


def config_map_causes(config_map: Object, old: Object | None) -> Causes:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    found = _key_causes(data, "data") + _key_causes(binary, "binaryData") + _kept_causes(config_map, old, ("data", "binaryData"))
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary]
    if sum(len(value.encode()) for value in data.values()) + sum(len(value) * 3 // 4 for value in binary.values()) > _LARGEST:
        found.append(("", f"Too long: may not be more than {_LARGEST} bytes"))
    return found


def _key_causes(data: Object, field: str) -> Causes:
    found: Causes = []
    for key in data:
        found += named("key", key, f"{field}[{key}]")
    return found


def _kept_causes(obj: Object, old: Object | None, fields: tuple[str, ...]) -> Causes:
    """The causes for refusing a change to an object that is immutable: its data and its field `immutable` can never change again."""
    if old is None or not old.get("immutable"):
        return []
    found: Causes = []
    if not obj.get("immutable"):
        found.append(forbidden("immutable", "field is immutable when `immutable` is set"))
    found += [
        forbidden(field, "field is immutable when `immutable` is set")
        for field in fields
        if (obj.get(field) or {}) != (old.get(field) or {})
    ]
    return found
