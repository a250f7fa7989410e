"""Selectors of devices as claims and classes state them. What they mean is said by `facts.py`, loaded only where there are devices."""

from __future__ import annotations

from typing import NamedTuple


class Failed(Exception):
    """A claim that cannot be judged on a node: the pod's attempt ends with this text."""


class Selector(NamedTuple):
    whose: str  #: "class NAME" or "claim NAMESPACE/NAME"
    number: int
    expression: str

    @property
    def name(self) -> str:
        return f"{self.whose}: selector #{self.number}"
