"""What a package has one file a thing of, by name: its actions, its plugins.

A thing stands in the file of its name, with _ for -, so one that is asked for is loaded alone: a scheduler holds only what it uses.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pumice.actions as package
import pumice.plugins as package
from pumice.api.errors import InputError
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action

T = TypeVar("T")


class Catalogue(Mapping[str, type[T]]):
    """The classes of a package that are a `kind` and have a name; `others` go before those of the same name."""

    def __init__(self, package: ModuleType, kind: type[T], others: Mapping[str, type[T]] | None = None) -> None:
        self._package = package
        self._kind = kind
        self._others = dict(others or {})

    def __getitem__(self, name: str) -> type[T]:
        if name in self._others:
            return self._others[name]
        module = f"{self._package.__name__}.{name.replace('-', '_')}"
        if not name.replace("-", "").isalpha() or importlib.util.find_spec(module) is None:
            raise KeyError(name)
        return classes_of(importlib.import_module(module), self._kind)[name]

    def __iter__(self) -> Iterator[str]:
        """All of them, which loads all of them."""
        names = dict.fromkeys(self._others)
        for info in pkgutil.iter_modules(self._package.__path__):
            if not info.ispkg:
                names |= dict.fromkeys(classes_of(importlib.import_module(f"{self._package.__name__}.{info.name}"), self._kind))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def classes_of(module: ModuleType, kind: type[Any]) -> dict[str, type[Any]]:
    """Those that are defined in the module, by name."""
    own = (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)
    return {each.__dict__["name"]: each for each in own if issubclass(each, kind) and each.__dict__.get("name")}


# Which plugins and actions there are: those of this package, of installed packages (entry points), of a folder.
#
# Entry-point group: `pumice.plugins`. A folder's `*.py` files are loaded, every Plugin subclass with a name in them is taken.

PLUGIN_GROUP = "pumice.plugins"
T = TypeVar("T")


def built_in() -> dict[str, type[Plugin]]:
    """Plugins of this package by name."""
    return dict(Catalogue(package, Plugin))


def installed(kind: type[T], group: str) -> dict[str, type[T]]:
    """Those of installed packages, by their entry points. One that cannot be loaded is an error that names it."""
    if not _is_named_somewhere(group):
        return {}
    from importlib.metadata import entry_points

    found: dict[str, type[T]] = {}
    for entry in entry_points(group=group):
        try:
            loaded = entry.load()
        except Exception as error:
            raise InputError(f"entry point {entry.name!r} cannot be loaded: {error}", where=str(entry.dist and entry.dist.name)) from error
        if isinstance(loaded, type) and issubclass(loaded, kind):
            found[getattr(loaded, "name", "") or entry.name] = loaded
    return found


def _is_named_somewhere(group: str) -> bool:
    """Whether any package has such entry points: `importlib.metadata` costs 5 MiB, which a scheduler that has no use for it should save."""
    files = (file for folder in sys.path for file in Path(folder).glob("*.*-info/entry_points.txt"))
    return any(group in file.read_text(encoding="utf-8") for file in files)


def of_folder(folder: str, kind: type[T]) -> dict[str, type[T]]:
    """Those of the Python files in a folder."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError("is not a folder", where=folder)
    found: dict[str, type[T]] = {}
    for file in sorted(path.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"pumice_plugins_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(f"cannot be loaded: {type(error).__name__}: {error}", where=str(file)) from error
        found |= classes_of(module, kind)
    return found


def plugins(folder: str | None = None) -> Catalogue[Plugin]:
    """All plugins by name. Later sources replace earlier ones: own, installed, folder."""
    return Catalogue(package, Plugin, installed(Plugin, PLUGIN_GROUP) | (of_folder(folder, Plugin) if folder else {}))


# All actions by name: those of this package, of installed packages (entry-point group `pumice.actions`), of a folder.

ACTION_GROUP = "pumice.actions"
ACTIONS: Catalogue[Action] = Catalogue(package, Action)


def actions(folder: str | None = None) -> Catalogue[Action]:
    """Later sources replace earlier ones, as with plugins."""
    return Catalogue(package, Action, installed(Action, ACTION_GROUP) | (of_folder(folder, Action) if folder else {}))
