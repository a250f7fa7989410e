"""What an evaluation may still spend. Costs are counted as Kubernetes counts them, and what grows is paid for before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.cel.tree import CostError

EACH_EXPRESSION = 1_000_000  #: of one evaluation, at most


class Purse:
    __slots__ = ("left",)

    def __init__(self, left: int = EACH_EXPRESSION) -> None:
        self.left = left

    def pay(self, cost: int) -> None:
        """Raises CostError."""
        self.left -= cost
        if self.left < 0:
            raise CostError


# One evaluation, as its steps see it.

LIST = 10  #: what making a list costs
PASSED_OVER = 3  #: what an error costs that does not count in the end; upstream it costs nothing, here more than a value


class Activation:
    """One evaluation: what names stand for now, and what may still be spent."""

    __slots__ = ("names", "purse")

    def __init__(self, names: Mapping[str, Any], purse: Purse) -> None:
        self.names = dict(names)
        self.purse = purse


Step = Callable[[Activation], Any]
