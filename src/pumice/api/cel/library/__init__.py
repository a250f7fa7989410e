"""CEL's functions by area; each module registers its own in the table of `functions`."""

from pumice.api.cel.library import authorization, format, formats, lists, networks, operators, optional, quantities, text, times

__all__ = ["authorization", "format", "formats", "lists", "networks", "operators", "optional", "quantities", "text", "times"]
