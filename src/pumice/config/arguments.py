"""Arguments from a configuration into a plugin's or an action's typed struct.

What Volcano goes on after (an unknown key, a value of the wrong type), we go on after too, with a warning that has the line and
the nearest right name; the default applies then.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

import msgspec
from msgspec import structs

from pumice.api.errors import did_you_mean
from pumice.api.yaml import Document
from pumice.framework.plugin import SWITCHES
from pumice.model.task import TRUE_WORDS

Path = tuple[str | int, ...]

FALSE_WORDS = frozenset(["0", "f", "F", "false", "FALSE", "False"])
REST = "named"  #: the field that takes arguments with a free name


class Warnings:
    """What was odd but accepted. With `strict` the first one is an error."""

    def __init__(self, *, strict: bool = False, shift: int = 0, where: str = "") -> None:
        self.strict = strict
        self.texts: list[str] = []
        self._shift, self._where = shift, where

    def add(self, document: Document, path: Path, message: str) -> None:
        error = document.error(message, path)
        error.line += self._shift
        error.where = self._where or error.where
        error.document = 0
        error.field = ""
        if self.strict:
            raise error
        self.texts.append(str(error).replace(": ", ": warning: ", 1))


def bind(
    args: type[msgspec.Struct], given: Any, owner: str, wildcards: tuple[str, ...], document: Document, path: Path, warnings: Warnings
) -> Any:
    """The struct, from a mapping of arguments. `owner` is how messages call the plugin or action."""
    if given is None:
        return args()
    if not isinstance(given, dict):
        raise document.error(f"arguments of {owner} must be a mapping", path)
    fields = {field.encode_name: field for field in structs.fields(args)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        prefix = next((prefix for prefix in wildcards if str(key).startswith(prefix) and key not in fields), None)
        if prefix is not None and REST in fields:
            _take(
                values.setdefault(REST, {}),
                str(key) if len(wildcards) > 1 else str(key)[len(prefix) :],
                _element(fields[REST].type),
                value,
                key,
                owner,
                document,
                path,
                warnings,
            )
        elif key in fields and key != REST:
            _take(values, fields[key].name, fields[key].type, value, key, owner, document, path, warnings)
        else:
            near = did_you_mean(str(key), fields) or _switch_meant(str(key))
            warnings.add(document, (*path, str(key)), f'{owner} has no argument "{key}" (ignored, as Volcano does){near}')
    return args(**values)


def _take(
    into: dict[str, Any], name: str, kind: Any, value: Any, key: Any, owner: str, document: Document, path: Path, warnings: Warnings
) -> None:
    if kind is bool and isinstance(value, str) and value in TRUE_WORDS | FALSE_WORDS:
        value = value in TRUE_WORDS
    try:
        into[name] = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        wanted = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}.get(kind, "of another form")
        warnings.add(
            document,
            (*path, str(key)),
            f'argument "{key}" of {owner} is {value!r}, which is not {wanted} (the default applies, as in Volcano)',
        )


def _element(kind: Any) -> Any:
    return get_args(kind)[1] if get_origin(kind) is dict else kind


def _switch_meant(key: str) -> str:
    near = did_you_mean(key, SWITCHES)
    return near.replace("did you mean", "did you mean the switch") if near else ""
