"""What an evaluation may still spend. Costs are counted as Kubernetes counts them, and what grows is paid for before it is made."""

from __future__ import annotations

from pumice.api.cel.errors import CostError

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
