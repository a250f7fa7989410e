"""Selectors of devices as claims and classes state them, and taints of devices. What selectors mean is said by `facts.py`, loaded only
where there are devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pumice.api.devices import DeviceTaint, DeviceTaintRule, DeviceToleration


class Failed(Exception):
    """A claim that cannot be judged on a node: the pod's attempt ends with this text."""


class Selector(NamedTuple):
    whose: str  #: "class NAME" or "claim NAMESPACE/NAME"
    number: int
    expression: str

    @property
    def name(self) -> str:
        return f"{self.whose}: selector #{self.number}"


# Taints: who may not have a device unless they tolerate it. Slices tell them, and rules of administrators add to them.

HARD = ("NoSchedule", "NoExecute")  #: effects that keep a device from being given away; others are for people to read


def taints_by_rules(rules: Iterable[DeviceTaintRule], driver: str, pool: str, device: str) -> list[DeviceTaint]:
    found = []
    for rule in rules:
        means = rule.spec.device_selector
        if means is not None and all(
            wanted in (None, is_) for wanted, is_ in ((means.driver, driver), (means.pool, pool), (means.device, device))
        ):
            found.append(rule.spec.taint)
    return found


def prevented(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Whether a request with these tolerations may not have a device with these taints."""
    return any(taint.effect in HARD and not any(tolerates(each, taint) for each in tolerations) for taint in taints)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (taint.value or "")
