"""YAML, read as kubectl reads it, with the line of every field.

This is PyYAML's C loader with three changes: dates stay strings, there are no numbers in base 60, and y/n/on/off are booleans as in
YAML 1.1 while `1e6` is a number. Hostile text (aliases that explode, deep nesting, bytes that are not UTF-8) is an error.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from pumice.api.errors import InputError, not_utf8

MAX_EXPANSION = 1_000_000  #: the most nodes that a document may have when its aliases are expanded
MAX_DEPTH = 200
MAX_DIGITS = 1000  #: the most digits of an integer


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping with its keys as strings, as in JSON: the key of `on: 1` becomes "true"."""
        mapping = super().construct_mapping(node, deep)
        if all(type(key) is str for key in mapping):
            return mapping
        return {key if isinstance(key, str) else str(key).lower(): value for key, value in mapping.items()}


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)\Z"),
    list("yYnNtTfFoO"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"),
    list("-+.0123456789"),
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), ["<"])


def _bool(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return str(node.value).lower() in ("y", "yes", "true", "on")


def _number(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    value = math.inf if node.value[-1] in "fFnN" else float(node.value)
    if math.isinf(value):
        raise yaml.constructor.ConstructorError(None, None, f"{node.value} is no number that can be used", node.start_mark)
    return int(value) if abs(value) < 2**63 and value == int(value) else value


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    digits = text.lstrip("+-")
    if len(digits) > MAX_DIGITS:
        raise yaml.constructor.ConstructorError(None, None, f"an integer of {len(digits)} digits", node.start_mark)
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    return int(text, 8) if octal else int(text, 0)


_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


class Document:
    """One YAML document: its plain value, and the line of each field."""

    __slots__ = ("_node", "number", "value", "where")

    def __init__(self, node: yaml.Node, value: Any, where: str, number: int) -> None:
        self._node = node
        self.value = value
        self.where = where
        self.number = number

    def line(self, path: tuple[str | int, ...] = ()) -> int:
        """The line (from 1) of the field at `path`, or of the nearest part of it that exists."""
        return int(self._at(path).start_mark.line) + 1

    def text(self, path: tuple[str | int, ...]) -> str | None:
        """The text of the scalar at `path` as it is written; None if the field is no scalar."""
        node = self._at(path)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None

    def _at(self, path: tuple[str | int, ...]) -> yaml.Node:
        node = self._node
        for step in path:
            if isinstance(node, yaml.MappingNode):
                found = [value for key, value in node.value if key.value == step]
                if not found:
                    break
                node = found[0]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            else:
                break
        return node

    def error(self, message: str, path: tuple[str | int, ...] = (), subject: str = "") -> InputError:
        return InputError(message, where=self.where, line=self.line(path), document=self.number, subject=subject, field=field_name(path))


def field_name(path: tuple[str | int, ...]) -> str:
    """A path as text: ("spec", "containers", 0) -> "spec.containers[0]"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


#: between JSON objects in a row, such as `kubectl get -o json` gives them several times, or `jq -c`
BETWEEN_OBJECTS = r"(?<=\})\s*\n(?=\{)"


def documents(text: str | bytes, where: str) -> Iterator[Document]:
    """The documents of a stream, without empty ones; JSON objects in a row are documents, too. Raises InputError."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise not_utf8(error, where) from None
    if text.lstrip().startswith("{"):
        text = re.sub(BETWEEN_OBJECTS, r"\g<0>--- ", text)
    aliases = "&" in text
    number = 0
    try:
        _refuse_depth(text, where)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            number += 1
            _measure(node, where, number, aliases)
            value = loader.construct_document(node)
            if value is not None:
                yield Document(node, value, where, number)
    except yaml.reader.ReaderError as error:
        line = text[: text.find(chr(error.character))].count("\n") + 1
        raise InputError(f"has the character U+{error.character:04X}, which no YAML may have; remove it", where=where, line=line) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else 0
        if "{{" in "".join(text.splitlines()[line - 1 : line]):
            problem += "; if this is a template, render it first, as with `helm template`"
        read = number if isinstance(error, yaml.constructor.ConstructorError) else number + 1
        raise InputError(f"not YAML: {problem}", where=where, line=line, document=read) from None
    except RecursionError:
        raise InputError(f"nested more than {MAX_DEPTH} levels deep", where=where, document=number + 1) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"not YAML: {error}", where=where, document=number) from None


_SUSPECT_INDENT = re.compile(r"^[ ?:-]{400}", re.MULTILINE)


def _refuse_depth(text: str, where: str) -> None:
    """Refuse nesting that would exhaust the C stack of the composer. Only text that may be that deep is parsed an extra time for this."""
    if text.count("[") + text.count("{") < 2000 and not _SUSPECT_INDENT.search(text):
        return
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise InputError(
                f"nested more than {MAX_DEPTH} levels deep", where=where, line=event.start_mark.line + 1 if event.start_mark else 0
            )


def _measure(root: yaml.Node, where: str, number: int, aliases: bool) -> None:
    """Refuse a document that is too deep, one whose aliases expand to too many nodes, and duplicate keys."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        if id(node) in sizes:
            return sizes[id(node)]
        if depth > MAX_DEPTH:
            raise InputError(f"nested more than {MAX_DEPTH} levels deep", where=where, line=node.start_mark.line + 1, document=number)
        sizes[id(node)] = MAX_EXPANSION  # an alias to a parent would expand without end
        if isinstance(node, yaml.MappingNode):
            _refuse_double_keys(node, where, number)
            children = [child for pair in node.value for child in pair]
        else:
            children = node.value
        total = 1 + sum(size(child, depth + 1) for child in children)
        sizes[id(node)] = total
        return total

    if size(root, 0) > MAX_EXPANSION and aliases:
        raise InputError("its aliases expand to more than a million nodes; write them out or split the file", where=where, document=number)


class DoubledKey(InputError):
    """A key stands twice in one mapping."""

    def __init__(self, key: str, where: str, line: int, document: int) -> None:
        super().__init__(f'key "{key}" stands twice; keep one', where=where, line=line, document=document)
        self.key = key


def _refuse_double_keys(node: yaml.MappingNode, where: str, number: int) -> None:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":
            if key.value in seen:
                raise DoubledKey(key.value, where, key.start_mark.line + 1, number)
            seen.add(key.value)
