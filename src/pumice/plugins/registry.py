"""Which plugins and actions there are: those of this package, of installed packages (entry points), of a folder.

Entry-point group: `pumice.plugins`. A folder's `*.py` files are loaded, every Plugin subclass with a name in them is taken. Of this
package's own only those that are asked for are loaded: a plugin stands in the file of its name, with _ for -.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from pumice.api.errors import InputError
from pumice.framework.plugin import Plugin

GROUP = "pumice.plugins"


class Plugins(Mapping[str, type[Plugin]]):
    """Those of others, and those of this package, of which one that is asked for by its name is loaded alone."""

    def __init__(self, others: Mapping[str, type[Plugin]]) -> None:
        self._others = others

    def __getitem__(self, name: str) -> type[Plugin]:
        if name in self._others:
            return self._others[name]
        module = f"pumice.plugins.{name.replace('-', '_')}"
        if not name.replace("-", "").isalpha() or importlib.util.find_spec(module) is None:
            raise KeyError(name)
        return _of_module(importlib.import_module(module))[name]

    def __iter__(self) -> Iterator[str]:
        return iter(built_in() | dict(self._others))

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
    if not _is_named_somewhere():
        return {}
    from importlib.metadata import entry_points

    found: dict[str, type[Plugin]] = {}
    for entry in entry_points(group=GROUP):
        try:
            plugin = entry.load()
        except Exception as error:
            raise InputError(f"entry point {entry.name!r} cannot be loaded: {error}", where=str(entry.dist and entry.dist.name)) from error
        if isinstance(plugin, type) and issubclass(plugin, Plugin):
            found[plugin.name or entry.name] = plugin
    return found


def _is_named_somewhere() -> bool:
    """Whether any package has such entry points: `importlib.metadata` costs 5 MiB, which a scheduler that has no use for it should save."""
    files = (file for folder in sys.path for file in Path(folder).glob("*.*-info/entry_points.txt"))
    return any(GROUP in file.read_text(encoding="utf-8") for file in files)


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


def plugins(folder: str | None = None) -> Plugins:
    """All plugins by name. Later sources replace earlier ones: own, installed, folder."""
    return Plugins(installed() | (of_folder(folder) if folder else {}))


def _of_module(module: ModuleType) -> dict[str, type[Plugin]]:
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Plugin))
    return {plugin.name: plugin for plugin in classes if plugin.__module__ == module.__name__ and plugin.__dict__.get("name")}
