"""Plugins and actions from outside: installed packages' entry points (`pumice.plugins`, `pumice.actions`), and a folder's `*.py` files."""

import importlib.util
import sys
from pathlib import Path
from typing import TypeVar

from pumice.api import InputError
from pumice.scheduler import actions as actions_package
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.plugins import volcano
from pumice.scheduler.registry import Catalogue, classes_of

PLUGIN_GROUP = "pumice.plugins"
ACTION_GROUP = "pumice.actions"
T = TypeVar("T")

#: The present places of modules of the first release, for plugins with `from pumice.framework.plugin import Plugin`.
_MOVED = {
    "pumice.framework": "pumice.scheduler",
    "pumice.engine": "pumice.scheduler",
    "pumice.model": "pumice.scheduler.model",
    "pumice.eviction": "pumice.scheduler.eviction",
    "pumice.config": "pumice.scheduler.config",
    "pumice.actions": "pumice.scheduler.actions",
    "pumice.plugins": "pumice.scheduler.plugins",
}
Given = tuple[str | type[Plugin] | type[Action], ...]  #: folders, and classes of a program that calls us


def plugins(folder: str | None = None, given: Given = ()) -> Catalogue[Plugin]:
    """All plugins by name. Later sources replace earlier ones: Pumice itself, installed packages, the folder, what is given."""
    return Catalogue(volcano, Plugin, installed(Plugin, PLUGIN_GROUP) | _of(Plugin, *([folder] if folder else []), *given))


def actions(folder: str | None = None, given: Given = ()) -> Catalogue[Action]:
    """All actions by name, from the same sources."""
    return Catalogue(actions_package, Action, installed(Action, ACTION_GROUP) | _of(Action, *([folder] if folder else []), *given))


def _of(kind: type[T], *given: str | type) -> dict[str, type[T]]:
    found: dict[str, type[T]] = {}
    for each in given:
        if isinstance(each, str):
            found |= of_folder(each, kind)
        elif issubclass(each, kind):
            found[getattr(each, "name", "") or each.__name__] = each
    return found


def installed(kind: type[T], group: str) -> dict[str, type[T]]:
    """The classes of this kind in installed packages, by their entry points. Raises InputError, which names an entry point that fails."""
    if not _is_named_somewhere(group):
        return {}
    from importlib.metadata import entry_points

    found: dict[str, type[T]] = {}
    for entry in entry_points(group=group):
        try:
            loaded = entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(
                f"entry point {entry.name!r} cannot be loaded: {_error_text(error)}", where=str(entry.dist and entry.dist.name)
            ) from error
        if isinstance(loaded, type) and issubclass(loaded, kind):
            found[getattr(loaded, "name", "") or entry.name] = loaded
    return found


def _is_named_somewhere(group: str) -> bool:
    """Whether any package has entry points of this group. If not, `importlib.metadata` is not imported, which would cost 5 MiB."""
    files = (file for folder in sys.path for file in Path(folder).glob("*.*-info/entry_points.txt"))
    return any(group in file.read_text(encoding="utf-8") for file in files)


def of_folder(folder: str, kind: type[T]) -> dict[str, type[T]]:
    """The classes of this kind in the Python files of a folder. Raises InputError."""
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
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin's `sys.exit` would end the program without a word
            raise InputError(f"cannot be loaded: {_error_text(error)}", where=str(file)) from error
        found |= classes_of(module, kind)
    return found


def _error_text(error: BaseException) -> str:
    """The error in words. If a module has moved, its present place."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        new = next((new for old, new in _MOVED.items() if (error.name + ".").startswith(old + ".")), None)
        if new:
            return f"{error.name} is now in {new}: write `from {new} import ...` (docs/plugins.md lists the names)"
    return f"{type(error).__name__}: {error}"
