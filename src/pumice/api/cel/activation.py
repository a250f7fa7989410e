"""The state of one evaluation, which its steps share, and what it may still spend."""

from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.cel.errors import CostError

EACH_EXPRESSION = 1_000_000  #: the most that one evaluation may cost
LIST = 10  #: what making a list costs
PASSED_OVER = 3  #: what an ignored error costs; upstream it is free, but here it takes longer than a value


class Purse:
    __slots__ = ("left",)

    def __init__(self, left: int = EACH_EXPRESSION) -> None:
        self.left = left

    def pay(self, cost: int) -> None:
        """Take the cost out of the purse. Raises CostError if too little is left."""
        self.left -= cost
        if self.left < 0:
            raise CostError


class Activation:
    """One evaluation: the current values of names, and what it may still spend."""

    __slots__ = ("names", "purse")

    def __init__(self, names: Mapping[str, Any], purse: Purse) -> None:
        self.names = dict(names)
        self.purse = purse


Step = Callable[[Activation], Any]
