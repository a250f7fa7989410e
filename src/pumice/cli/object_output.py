"""Objects as kubectl prints them: with -o yaml and -o json (keys sorted, without managedFields)."""

import json
import re
from functools import cache
from typing import Any

from pumice.escaped_text import shown


@cache
def _dumper() -> Any:
    """The YAML dumper. It quotes strings that other YAML readers would read as a boolean or a number, and those in which something must be
    escaped."""
    import yaml  # its import would take half of the start of every other command

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if shown(text) == text else '"')

    Dumper.add_representer(str, text)
    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+\Z"), list("-+.0123456789"))
    return Dumper


def without_bookkeeping(subject: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in subject["metadata"].items() if key != "managedFields"}
    return {**subject, "metadata": metadata}


def as_yaml(value: Any, *, sort_keys: bool = True) -> str:
    """What a terminal would obey is escaped. In strings in double quotes, the escapes mean the same to readers of YAML and of JSON."""
    import yaml

    return shown(yaml.dump(value, Dumper=_dumper(), default_flow_style=False, sort_keys=sort_keys, allow_unicode=True, width=1_000_000))


def as_json(value: Any) -> str:
    return shown(json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)) + "\n"
