"""What expressions may cost, in the units of Kubernetes' CEL cost limits."""

from pumice.api.cel.errors import CostError

EACH_EXPRESSION = 1_000_000  #: the most that one evaluation may cost
LIST = 10  #: what making a list costs
PASSED_OVER = 3  #: what an ignored error costs; upstream it is free, but here it takes longer than a value


class CostBudget:
    """What one evaluation, or several that share it, may still spend."""

    __slots__ = ("left",)

    def __init__(self, left: int = EACH_EXPRESSION) -> None:
        self.left = left

    def pay(self, cost: int) -> None:
        """Take the cost from the budget. Raises CostError if too little is left."""
        self.left -= cost
        if self.left < 0:
            raise CostError
