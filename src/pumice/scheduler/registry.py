"""Plugins and actions by name. Each is in the file or folder of its name (with _ for -), which is loaded when the name is first used."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, TypeVar

from pumice.scheduler import actions
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.plugins import volcano

T = TypeVar("T")


class Catalogue(Mapping[str, type[T]]):
    """The named subclasses of `kind` in a package, by name. A class in `others` replaces the package's class of the same name."""

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
        """The names of all classes. This loads all modules of the package."""
        names = dict.fromkeys(self._others)
        for info in pkgutil.iter_modules(self._package.__path__):
            names |= dict.fromkeys(classes_of(importlib.import_module(f"{self._package.__name__}.{info.name}"), self._kind))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def classes_of(module: ModuleType, kind: type[Any]) -> dict[str, type[Any]]:
    """The subclasses of `kind` with a name that are defined in the module, by name."""
    own = (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)
    return {each.__dict__["name"]: each for each in own if issubclass(each, kind) and each.__dict__.get("name")}


PLUGINS: Catalogue[Plugin] = Catalogue(volcano, Plugin)
ACTIONS: Catalogue[Action] = Catalogue(actions, Action)
