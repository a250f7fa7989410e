"""The functions by area; each module enters its own into the table."""

from pumice.api.cel.library import formats, lists, networks, operators, quantities, text, times

__all__ = ["formats", "lists", "networks", "operators", "quantities", "text", "times"]
