"""Objects as kubectl prints them with -o yaml and -o json: keys sorted, the server's bookkeeping of managers left out."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


# What other readers of YAML take for a truth value or a number must be quoted to stay a text.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+\Z"), list("-+.0123456789"))


def without_bookkeeping(subject: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in subject["metadata"].items() if key != "managedFields"}
    return {**subject, "metadata": metadata}


def as_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=True, allow_unicode=True, width=1_000_000)
    return text


def as_json(value: Any) -> str:
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False) + "\n"
