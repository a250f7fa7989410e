"""Label selectors as objects of workloads and budgets have them."""

from __future__ import annotations

from pumice.api.selectors import Requirement, Selector
from pumice.controllers.objects import Object


def label_selector(stated: Object | None) -> Selector | None:
    """A LabelSelector; None if it is absent and matches nothing."""
    if stated is None:
        return None
    equal = [Requirement(name, "In", (value,)) for name, value in (stated.get("matchLabels") or {}).items()]
    more = [Requirement(each["key"], each["operator"], tuple(each.get("values") or ())) for each in stated.get("matchExpressions") or ()]
    return (*equal, *more)
