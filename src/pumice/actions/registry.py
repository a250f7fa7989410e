"""All actions by name."""

from __future__ import annotations

import importlib
import pkgutil

import pumice.actions as package
from pumice.framework.policy import Action


def _find() -> dict[str, type[Action]]:
    found: dict[str, type[Action]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name == "registry":
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        classes = (v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Action))
        found |= {action.name: action for action in classes if action.__module__ == module.__name__ and action.name}
    return found


ACTIONS = _find()
