"""How text of others is shown: names come from files and from other people's objects, and a terminal obeys what stands in them."""

import re

#: what a terminal obeys or does not show: control characters of both sets, marks of direction, joiners, line separators, half characters
_COMMANDS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
_IN_TEXT, _IN_LINE = re.compile(f"[{_COMMANDS}]"), re.compile(f"[{_COMMANDS}\t\n]")


def shown(text: str) -> str:
    """The text, which may have several lines, with \\u escapes for what a terminal would obey."""
    return text if text.isascii() and text.isprintable() else _IN_TEXT.sub(_escaped, text)


def shown_in_line(text: str) -> str:
    """The text with these escapes in one line."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
