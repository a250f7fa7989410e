"""An expression, compiled once and evaluated for many sets of names. This is all that others need to know of CEL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pumice.api.cel.library  # noqa: F401  (the functions enter themselves)
from pumice.api.cel.check import Environment, check
from pumice.api.cel.errors import CompileError, EvaluationError
from pumice.api.cel.evaluate import steps
from pumice.api.cel.fold import folded
from pumice.api.cel.kinds import BOOL, Kind
from pumice.api.cel.purse import Purse
from pumice.api.cel.run import Run
from pumice.api.cel.syntax import parse
from pumice.api.cel.tree import names_in


class Program:
    """Making one raises CompileError."""

    def __init__(self, text: str, environment: Environment) -> None:
        tree = parse(text)
        self.text = text
        self.kind: Kind = check(tree, environment)
        self.names = names_in(tree)  #: that it mentions
        self._step = steps(folded(tree))

    def value(self, names: Mapping[str, Any], purse: Purse | None = None) -> Any:
        """Raises EvaluationError."""
        return self._step(Run(names, purse or Purse()))

    def holds(self, names: Mapping[str, Any], purse: Purse | None = None) -> bool:
        """Raises EvaluationError, also for a value that is neither true nor false."""
        found = self.value(names, purse)
        if not isinstance(found, bool):
            raise EvaluationError("the expression is neither true nor false")
        return found


def condition(text: str, environment: Environment, unknown: Kind) -> Program:
    """A program that is true or false, as far as that can be told before there is a value. Raises CompileError."""
    program = Program(text, environment)
    if program.kind not in (BOOL, unknown):
        raise CompileError(f"must evaluate to {BOOL} or the unknown type, not {program.kind}")
    return program
