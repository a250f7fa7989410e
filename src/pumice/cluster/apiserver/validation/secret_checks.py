"""What is wrong with the keys of Secrets and ConfigMaps, and with the values of Secrets."""

import base64
import binascii

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Causes
from pumice.cluster.apiserver.validation.name_rules import named

_LARGEST = 2**20  #: bytes of all values together
#: the keys that Secrets of a type must have
SECRET_KEYS = {"kubernetes.io/tls": ("tls.crt", "tls.key"), "kubernetes.io/dockercfg": (".dockercfg",)}
SECRET_KEYS |= {"kubernetes.io/dockerconfigjson": (".dockerconfigjson",), "kubernetes.io/ssh-auth": ("ssh-privatekey",)}


def key_causes(data: Object, field: str) -> Causes:
    return [cause for key in data for cause in named("key", key, f"{field}[{key}]")]


def secret_value_causes(data: Object) -> Causes:
    found, size = Causes(), 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            found.append((f"data[{key}]", "Invalid value: it is not base64"))
    return found if size <= _LARGEST else [*found, ("data", f"Too long: may not be more than {_LARGEST} bytes")]
