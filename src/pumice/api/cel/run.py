"""One evaluation, as its steps see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.cel.purse import Purse

LIST = 10  #: what making a list costs
PASSED_OVER = 3  #: what an error costs that does not count in the end; upstream it costs nothing, here more than a value


class Run:
    """One evaluation: what names stand for now, and what may still be spent."""

    __slots__ = ("names", "purse")

    def __init__(self, names: Mapping[str, Any], purse: Purse) -> None:
        self.names = dict(names)
        self.purse = purse


Step = Callable[[Run], Any]
