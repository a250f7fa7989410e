"""Which plugins and actions there are: those of this package, of installed packages (entry points), of a folder.

Entry-point group: `pumice.plugins`. A folder's `*.py` files are loaded, every Plugin subclass with a name in them is taken.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TypeVar

import pumice.plugins as package
from pumice.api.errors import InputError
from pumice.framework.catalogue import Catalogue, classes_of
from pumice.framework.plugin import Plugin

GROUP = "pumice.plugins"
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
    return Catalogue(package, Plugin, installed(Plugin, GROUP) | (of_folder(folder, Plugin) if folder else {}))
