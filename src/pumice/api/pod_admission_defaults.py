"""What LimitRanges and RuntimeClasses give to a pod, whether it is an object or a struct."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
Some = Mapping[str, T] | None


def limits_and_requests(most: Some[T], limit: Some[T], least: Some[T], request: Some[T]) -> tuple[dict[str, T], dict[str, T]]:
    """What containers have that state none, by the `max`, `default`, `min` and `defaultRequest` of a LimitRange."""
    limits = {**(most or {}), **(limit or {})}
    return limits, {**(least or {}), **limits, **(request or {})}


def selector_and_tolerations(
    selector: Some[str], tolerations: Iterable[T] | None, own_selector: Some[str], own: Iterable[T] | None
) -> tuple[dict[str, str], list[T]]:
    """Those of a RuntimeClass with the pod's own."""
    kept = list(own or ())
    return {**(selector or {}), **(own_selector or {})}, [*kept, *(each for each in tolerations or () if each not in kept)]
