"""What a program here asks of Python: that it looks seldom for cyclic garbage, and that NumPy comes without what only people and checkers
read.

There is little garbage, and most of what a program keeps it keeps for long. Modules that are imported make none that would be worth a look:
a program looks for none until its command is there.

The texts of NumPy's documentation and its types for checkers are made when NumPy is imported, and take a quarter of that time. While it is
imported, modules stand in for them in which every name is a type; afterwards whoever asks for one of them imports the real one. Programs
alone do so: as a library we leave NumPy as it is. So we leave versions with which this was not tried.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


def collect_nothing() -> None:
    """Until `imported`."""
    gc.disable()


def imported() -> None:
    """Modules are there to stay. Nothing happens where others say when to collect."""
    if not gc.isenabled():
        collect_seldom()


def reads() -> None:
    """All that is read of a cluster stays: until `collect_seldom` a look is worth it ten times as seldom."""
    gc.set_threshold(500_000, 20, 100)


def collect_seldom() -> None:
    settle()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def settle() -> None:
    """For a process that has read what it works on: that stays, so no collection need look at it again."""
    gc.freeze()


TRIED = (b'version = "2.3.', b'version = "2.4.')  #: as they stand in version.py
UNREAD = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._typing")


def install() -> None:
    """Before NumPy is imported."""
    if "numpy" not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and _was_tried(spec.loader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _was_tried(numpy: SourceFileLoader) -> bool:
    version = numpy.get_data(numpy.path.removesuffix("__init__.py") + "version.py")
    return any(tried in version for tried in TRIED)


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        for name in UNREAD:
            stand_in = sys.modules[name] = ModuleType(name)
            vars(stand_in)["__getattr__"] = lambda _: list
        try:
            super().exec_module(module)
        finally:
            for name in UNREAD:
                del sys.modules[name]
