"""What Kubernetes' own API server answered to some requests (answers.yaml), and the same requests asked of another server.

A step names a method or a type of patch, with a path in the story's namespace or a whole path. `code` is the status of the answer, and
`says` are parts of it by their paths: null stands for what is not there. Instants are TIME, and versions are v1, v2 ... in the order in
which a story meets them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

Ask = Callable[..., tuple[int, Any]]  #: method, path, body, content type, further headers
STORIES: list[dict[str, Any]] = yaml.load((Path(__file__).parent / "answers.yaml").read_text(), Loader=yaml.CSafeLoader)
_PATCHES = {"merge": "merge-patch+json", "strategic": "strategic-merge-patch+json", "json": "json-patch+json", "apply": "apply-patch+yaml"}
_METHODS = ("GET", "POST", "PUT", "DELETE", *_PATCHES)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Story:
    """One story in a namespace of its own."""

    def __init__(self, ask: Ask, number: int, suffix: str = "") -> None:
        self._ask = ask
        self._namespace = f"story-{number}{suffix}"
        self._versions: dict[str, str] = {}
        ask("POST", "/api/v1/namespaces", {"metadata": {"name": self._namespace}})
        ask("POST", f"/api/v1/namespaces/{self._namespace}/serviceaccounts", {"metadata": {"name": "default"}})

    def step(self, step: dict[str, Any], wanted: list[str]) -> tuple[int, dict[str, Any]]:
        """The status of the answer, and the wanted parts of it."""
        verb = next(method for method in _METHODS if method in step)
        path = step[verb].replace("NS", self._namespace)
        if not path.startswith("/"):
            path = f"/api/v1/namespaces/{self._namespace}/{path}"
        body = json.dumps(step["body"]).replace("NS", self._namespace).encode() if "body" in step else None
        headers = {"Impersonate_User": step["as"]} if "as" in step else {}
        method, media = ("PATCH", f"application/{_PATCHES[verb]}") if verb in _PATCHES else (verb, "application/json")
        code, answer = self._ask(method, path, step.get("text", "").encode() or body, media, **headers)
        return code, {place: self._shown(_at(answer, place), place) for place in wanted}

    def _shown(self, value: Any, place: str) -> Any:
        if place.endswith("resourceVersion"):
            return self._versions.setdefault(value, f"v{len(self._versions) + 1}")
        return json.loads(_TIME.sub("TIME", json.dumps(value)).replace(self._namespace, "NS"))


def _at(value: Any, place: str) -> Any:
    for step in filter(None, place.split(".")):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
