"""What Pumice's programs change in Python: they collect cyclic garbage rarely, and import NumPy without the parts that only people and type
checkers read.

There is little garbage, and most of what a program keeps, it keeps for long. Imports make hardly any garbage: a program collects none until
its command is imported.

NumPy makes its documentation texts and its types for checkers when it is imported, which takes a quarter of that time. During the import,
stand-in modules replace them, in which every name is a type. Afterwards, code that needs one of them imports the real module. Only programs
do this: as a library, Pumice leaves NumPy as it is. It also leaves NumPy versions with which this was not tried.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


def collect_nothing() -> None:
    """Collect no garbage until `imported` is called."""
    gc.disable()


def imported() -> None:
    """Collect garbage rarely from now on: all modules are imported. If collections are on, others control them: nothing changes."""
    if not gc.isenabled():
        collect_seldom()


def reads() -> None:
    """Collect ten times more rarely until `collect_seldom` is called: all that is now imported, or read of a cluster, stays."""
    gc.set_threshold(500_000, 20, 100)


def collect_seldom() -> None:
    settle()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def settle() -> None:
    """Exclude all present objects from collections. For a process that has read its data: they stay, so no collection need examine them."""
    gc.freeze()


TRIED = (b'version = "2.3.', b'version = "2.4.')  #: as NumPy's version.py writes them
UNREAD = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._typing")


def install() -> None:
    """Prepare the import of NumPy. If it is already imported, nothing happens."""
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
