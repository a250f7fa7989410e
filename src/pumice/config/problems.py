"""What is wrong with a configuration, all of it, in Kubernetes' words: field path, kind of fault, value, rule."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pumice.api.errors import InputError, raise_all
from pumice.api.yaml import Document

Path = tuple[str | int, ...]


class Problems:
    """Collects faults of one document; `check` raises them together."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.errors: list[InputError] = []

    def add(self, path: Path, message: str) -> None:
        self.errors.append(self.document.error(message, path, str(self.document.value.get("kind", ""))))

    def invalid(self, path: Path, value: Any, rule: str) -> None:
        self.add(path, f"Invalid value: {json.dumps(value)}: {rule}")

    def required(self, path: Path, rule: str) -> None:
        self.add(path, f"Required value: {rule}")

    def forbidden(self, path: Path, rule: str) -> None:
        self.add(path, f"Forbidden: {rule}")

    def duplicate(self, path: Path, value: Any) -> None:
        self.add(path, f"Duplicate value: {json.dumps(value)}")

    def unsupported(self, path: Path, value: Any, known: Iterable[str]) -> None:
        self.add(path, f"Unsupported value: {json.dumps(value)}: supported values: {', '.join(json.dumps(k) for k in known)}")

    def within(self, path: Path, value: int, low: int, high: int) -> None:
        if not low <= value <= high:
            self.invalid(path, value, f"not in valid range [{low}, {high}]")

    def check(self) -> None:
        raise_all(self.errors)
