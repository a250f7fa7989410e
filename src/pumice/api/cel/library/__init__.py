"""CEL's functions by area; each module registers its own in the table of `functions`."""

from pumice.api.cel.library import formats, lists, networks, operators, quantities, text, times

__all__ = ["formats", "lists", "networks", "operators", "quantities", "text", "times"]
