"""Which plugins and actions there are: those of this package, of installed packages (entry points), of a folder.

Entry-point group: `pumice.plugins`. A folder's `*.py` files are loaded, every Plugin subclass with a name in them is taken.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from pumice.api.errors import InputError
from pumice.framework.plugin import Plugin

GROUP = "pumice.plugins"


@lru_cache(maxsize=1)
def built_in() -> dict[str, type[Plugin]]:
    """Plugins of this package by name."""
    import pumice.plugins as package

    found: dict[str, type[Plugin]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name != "registry" and not info.ispkg:
            found |= _of_module(importlib.import_module(f"{package.__name__}.{info.name}"))
    return found


def installed() -> dict[str, type[Plugin]]:
    """Plugins of installed packages. One that cannot be loaded is an error that names it."""
    found: dict[str, type[Plugin]] = {}
    for entry in entry_points(group=GROUP):
        try:
            plugin = entry.load()
        except Exception as error:
            raise InputError(f"entry point {entry.name!r} cannot be loaded: {error}", where=str(entry.dist and entry.dist.name)) from error
        if isinstance(plugin, type) and issubclass(plugin, Plugin):
            found[plugin.name or entry.name] = plugin
    return found


def of_folder(folder: str) -> dict[str, type[Plugin]]:
    """Plugins of the Python files in a folder."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError("is not a folder", where=folder)
    found: dict[str, type[Plugin]] = {}
    for file in sorted(path.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"pumice_plugins_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(f"cannot be loaded: {type(error).__name__}: {error}", where=str(file)) from error
        found |= _of_module(module)
    return found


def plugins(folder: str | None = None) -> dict[str, type[Plugin]]:
    """All plugins by name. Later sources replace earlier ones: own, installed, folder."""
    return built_in() | installed() | (of_folder(folder) if folder else {})


def _of_module(module: ModuleType) -> dict[str, type[Plugin]]:
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Plugin))
    return {plugin.name: plugin for plugin in classes if plugin.__module__ == module.__name__ and plugin.__dict__.get("name")}
