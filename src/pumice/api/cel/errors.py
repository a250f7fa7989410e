"""What can be wrong with an expression."""

from __future__ import annotations


class CelError(Exception):
    """Either of the two below."""


class CompileError(CelError):
    """The expression is none, or its types do not agree: no value will ever come of it."""


class EvaluationError(CelError):
    """The expression has no value for these names."""


class CostError(EvaluationError):
    """The evaluation was given up, since it costs more than is allowed. Nothing passes over this one."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
