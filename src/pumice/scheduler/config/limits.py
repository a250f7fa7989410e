"""How large a configuration may be: many times what anybody has written, and so little that it is read, or refused, at once."""

from typing import Any

from pumice.api import InputError
from pumice.api.yaml import Document

LARGEST_TEXT = 256 * 1024
MOST_VALUES = 5000  #: fields and entries of lists
MOST_ACTIONS = MOST_TIERS = MOST_PROFILES = MOST_EXTENDERS = 100


def check_text(text: str, where: str) -> None:
    """Raises InputError."""
    if len(text) > LARGEST_TEXT:
        raise InputError(f"has {len(text)} characters; a configuration may have {LARGEST_TEXT}", where=where)


def check_document(document: Document) -> None:
    """Raises InputError."""
    count = _values(document.value)
    if count > MOST_VALUES:
        raise document.error(f"there are {count} fields and entries of lists; write at most {MOST_VALUES}")


def check_list(document: Document, listed: Any, name: str, most: int) -> None:
    """Raises InputError."""
    if isinstance(listed, list) and len(listed) > most:
        raise document.error(f"there are {len(listed)} {name}; write at most {most}", (name,))


def _values(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(inside) + sum(map(_values, inside))
