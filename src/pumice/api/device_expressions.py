"""The expressions of device selectors and of derived attributes, compiled: what they may name, and of which type their value must be."""

from functools import lru_cache

from pumice.api.cel.check import Environment
from pumice.api.cel.errors import CompileError
from pumice.api.cel.program import Program, condition
from pumice.api.cel.values import ANY, BOOL, DYN, INT, STRING, kind

_DEVICE = kind("kubernetes.DRADevice")
_FIELDS = {
    "driver": STRING,
    "attributes": kind("map<string, map<string, any>>"),
    "capacity": kind("map<string, map<string, kubernetes.Quantity>>"),
    "allowMultipleAllocations": BOOL,
}
SCALARS = (BOOL, INT, STRING, ANY, DYN, kind("kubernetes.Semver"))  #: what an attribute may be
_NAMES = Environment({"device": _DEVICE}, {_DEVICE.name: _FIELDS}, frozenset({"cel.bind", "includes"}))


@lru_cache(maxsize=1024)
def selection(expression: str) -> Program | str:
    """The compiled selector, or why there is none."""
    try:
        return condition(expression, _NAMES, ANY)
    except CompileError as error:
        return str(error)


@lru_cache(maxsize=1024)
def derivation(expression: str) -> Program | str:
    """The compiled expression of a derived attribute, or why there is none."""
    try:
        program = Program(expression, _NAMES)
    except CompileError as error:
        return str(error)
    if program.kind in SCALARS or (program.kind.name == "list" and program.kind.of[0] in SCALARS):
        return program
    return f"must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {program.kind}"
