"""What a simulated container sees: its environment, and the files that are mounted into it."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from pumice.api import Object, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.json_objects import annotations_of, labels_of

Find = Callable[[str, str, str], Object | None]  #: an object by resource, namespace and name
Issue = Callable[[Object], str]  #: a token of the pod's ServiceAccount, as a volume asks for it
_REFERENCE = re.compile(r"\$(\$|\([A-Za-z_][A-Za-z0-9_.-]*\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]\Z")


def environment(pod: Object, container: Object, find: Find) -> dict[str, str]:
    """The variables of a container, in order."""
    found = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": hostname(pod), "HOME": "/root"}
    found |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    namespace = namespace_of(pod)
    for source in container.get("envFrom") or ():
        for kind in ("configMapRef", "secretRef"):
            if kind in source:
                texts = _content(find, kind.removesuffix("Ref"), namespace, source[kind].get("name", ""))
                found |= {source.get("prefix", "") + key: value.decode(errors="replace") for key, value in texts.items()}
    for variable in container.get("env") or ():
        value = _value(pod, container, variable, find)
        found[variable["name"]] = _REFERENCE.sub(lambda match: _expanded(match[1], found), value)
    return found


def _expanded(reference: str, known: dict[str, str]) -> str:
    return "$" if reference == "$" else known.get(reference[1:-1], f"${reference}")


def hostname(pod: Object) -> str:
    return str(spec_of(pod).get("hostname") or name_of(pod))[:63]


def _value(pod: Object, container: Object, variable: Object, find: Find) -> str:
    source = variable.get("valueFrom") or {}
    for kind in ("configMap", "secret"):
        if reference := source.get(f"{kind}KeyRef"):
            return _content(find, kind, namespace_of(pod), reference.get("name", "")).get(reference["key"], b"").decode(errors="replace")
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return _amount(pod, container, source["resourceFieldRef"])
    return str(variable.get("value") or "")


def _content(find: Find, kind: str, namespace: str, name: str) -> dict[str, bytes]:
    """The texts of a ConfigMap or Secret by their keys; empty if there is none."""
    found = find("configmaps" if kind == "configMap" else "secrets", namespace, name) or {}
    if kind == "secret":
        return {key: b64decode(value) for key, value in (found.get("data") or {}).items()}
    texts = {key: value.encode() for key, value in (found.get("data") or {}).items()}
    return texts | {key: b64decode(value) for key, value in (found.get("binaryData") or {}).items()}


def _field(pod: Object, path: str) -> str:
    if match := _KEYED.match(path):
        return (labels_of(pod) if match[1] == "labels" else annotations_of(pod)).get(match[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = labels_of(pod) if path.endswith("labels") else annotations_of(pod)
        return "\n".join(f'{key}="{value}"' for key, value in sorted(pairs.items()))
    known = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec_of(pod).get("nodeName"),
        "spec.serviceAccountName": spec_of(pod).get("serviceAccountName"),
        "status.podIP": status_of(pod).get("podIP"),
        "status.podIPs": status_of(pod).get("podIP"),
        "status.hostIP": status_of(pod).get("hostIP"),
    }
    return str(known.get(path) or "")


def _amount(pod: Object, container: Object, reference: Object) -> str:
    wanted = reference.get("containerName") or container["name"]
    whole: Object = next((each for each in spec_of(pod)["containers"] if each["name"] == wanted), {})
    part, _, resource = reference["resource"].partition(".")
    return str(((whole.get("resources") or {}).get(part) or {}).get(resource, "0"))


def mounted(pod: Object, container: Object, find: Find, issue: Issue) -> dict[str, bytes]:
    """The files of the container's volumes by their paths. Empty volumes are directories, whose names end with a slash."""
    volumes = {each["name"]: each for each in spec_of(pod).get("volumes") or ()}
    files: dict[str, bytes] = {}
    for mount in container.get("volumeMounts") or ():
        place = "/" + mount["mountPath"].strip("/")
        content = dict(_volume(pod, container, volumes.get(mount["name"]) or {}, find, issue))
        inside = (mount.get("subPath") or "").strip("/")
        if inside in content:
            files[place] = content[inside]
            continue
        files[f"{place}/"] = b""
        files |= {f"{place}/{path}": text for path, text in content.items() if path.startswith(inside)}
    return files


def _volume(pod: Object, container: Object, volume: Object, find: Find, issue: Issue) -> Iterator[tuple[str, bytes]]:
    """The files of a volume, by their paths in it."""
    for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
        for kind in ("configMap", "secret"):
            if kind in source:
                stated = source[kind]
                texts = _content(find, kind, namespace_of(pod), stated.get("name") or stated.get("secretName") or "")
                yield from _chosen(texts, stated.get("items"))
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            text = _field(pod, item["fieldRef"]["fieldPath"]) if "fieldRef" in item else _amount(pod, container, item["resourceFieldRef"])
            yield item["path"], text.encode()
        if "serviceAccountToken" in source:
            yield source["serviceAccountToken"].get("path", "token"), issue(source["serviceAccountToken"]).encode()


def _chosen(texts: dict[str, bytes], items: list[Any] | None) -> Iterator[tuple[str, bytes]]:
    if items is None:
        yield from texts.items()
    for item in items or ():
        if item["key"] in texts:
            yield item["path"], texts[item["key"]]


def system_files(pod: Object) -> dict[str, bytes]:
    """What the node puts into every container."""
    name = hostname(pod)
    return {"/etc/hostname": f"{name}\n".encode(), "/etc/hosts": f"127.0.0.1 localhost\n127.0.0.1 {name}\n".encode(), "/tmp/": b""}
