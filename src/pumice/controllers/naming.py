"""Names for made objects: as unlike as random ones, yet the same for the same cause.

A controller that decides twice on the same state of its world asks for the same name twice, and the second creation finds
the first: no bookkeeping of what was sent already is needed.
"""

from __future__ import annotations

import hashlib

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  #: as Kubernetes draws them: no vowels, nothing that looks like another


def suffix(*cause: object, length: int = 5) -> str:
    """A few characters that stand for a cause."""
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, cause)).encode()).digest()[:16], "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[digit])
    return "".join(letters)
