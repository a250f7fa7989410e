"""The errors of expressions."""

from pumice.api.errors import in_line

LONGEST_MESSAGE = 1000  #: characters


class CelError(Exception):
    """The base of the errors below. Its message is one line, whatever texts of the expression stand in it."""

    def __init__(self, message: str) -> None:
        super().__init__(in_line(message[:LONGEST_MESSAGE]))


class CompileError(CelError):
    """The text is no expression, or its types do not agree: it can never have a value."""


class EvaluationError(CelError):
    """The expression has no value for these names."""


class CostError(EvaluationError):
    """The evaluation was ended because it costs more than allowed. No operator ignores this error."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
