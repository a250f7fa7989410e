"""CEL's functions by area; each module registers its own in the table of `functions`."""

from pumice.api.cel.library import authorization, formats, lists, networks, operators, quantities, text, times

__all__ = ["authorization", "formats", "lists", "networks", "operators", "quantities", "text", "times"]
