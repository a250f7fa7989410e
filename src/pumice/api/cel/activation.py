"""The state of one evaluation, which its steps share, and what it may still spend."""

from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.cel.cost import CostBudget


class Activation:
    """One evaluation: the current values of names, and what it may still spend."""

    __slots__ = ("budget", "names")

    def __init__(self, names: Mapping[str, Any], budget: CostBudget) -> None:
        self.names = dict(names)
        self.budget = budget


Step = Callable[[Activation], Any]
