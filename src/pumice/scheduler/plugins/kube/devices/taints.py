"""Taints of devices, which claims must tolerate. Slices publish them, and DeviceTaintRules of administrators add to them."""

from collections.abc import Iterable, Sequence

from pumice.api.devices import DeviceTaint, DeviceTaintRule, DeviceToleration

HARD = ("NoSchedule", "NoExecute")  #: the effects that keep a device from being allocated; others only inform people


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
    """Whether the taints keep a request with these tolerations from getting the device."""
    return any(taint.effect in HARD and not any(tolerates(each, taint) for each in tolerations) for taint in taints)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (taint.value or "")
