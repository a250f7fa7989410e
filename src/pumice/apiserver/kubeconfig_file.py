"""The kubeconfig of a server: where it is, whom to trust, and the administrator's token. Only its owner may read it."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from pumice.apiserver.tls import write_private


def write_kubeconfig(path: Path, url: str, token: str, authority: bytes | None, name: str = "pumice") -> None:
    cluster = {"server": url} | ({"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())
