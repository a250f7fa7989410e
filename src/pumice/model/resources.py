"""Resource vectors: one float64 per dimension, integers in value, so that sums are exact.

A `Dimensions` maps resource names to fixed columns. CPU and extended resources count in thousandths, memory and other byte
amounts in bytes, pods in pods. Vectors are wider than the names in use, so that a new name seldom changes their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pumice.api.quantity import Quantity, format_bytes, format_milli

Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]

CPU, MEMORY, PODS = 0, 1, 2
EPSILON = 0.1  #: amounts nearer than this are equal, as Volcano has it
WIDTH = 16
MOST_SHARED = 4096
DEVICE_SHARES = frozenset(["volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"])
#: what pods ask of a single card: no sum over a node means anything, and no node offers it


def is_scalar(name: str) -> bool:
    """Whether Kubernetes schedules this name as a scalar resource: extended, huge pages, attachable volumes, native with a prefix."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or name == "ephemeral-storage":
        return True
    return "/" in name and not name.startswith(("requests.", "count/"))


def in_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


class Dimensions:
    """Resource name to column. `width` is the length of all vectors; `ignored` names never enter one.

    Whoever keeps vectors puts a function into `widened`, which is called as soon as a new name made `width` greater.
    """

    def __init__(self, ignored: Iterable[str] = ()) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self.columns: dict[str, int] = {name: column for column, name in enumerate(self.names)}
        self.width = WIDTH
        self.ignored = frozenset(ignored)
        self.widened: list[Callable[[], None]] = []
        self._shared: dict[tuple[object, ...], tuple[dict[int, float], Vector]] = {}

    def column(self, name: str) -> int | None:
        """The column of a name, given one at first sight; None for what is no resource of scheduling."""
        column = self.columns.get(name)
        if column is None and is_scalar(name) and name not in self.ignored:
            column = self.columns[name] = len(self.names)
            self.names.append(name)
            if column >= self.width:
                self.width *= 2
                for tell in self.widened:
                    tell()
        return column

    def amount(self, name: str, quantity: Quantity) -> float:
        """In the unit of the column."""
        return float(quantity.whole if in_bytes(name) or name == "pods" else quantity.milli)

    def from_milli(self, name: str, milli: int) -> float:
        """An amount known in thousandths, in the unit of the column."""
        return float(-(-milli // 1000) if in_bytes(name) or name == "pods" else milli)

    def amounts(self, resources: Mapping[str, Quantity] | None) -> dict[int, float]:
        """Column to amount, for the names that count."""
        found: dict[int, float] = {}
        for name, quantity in (resources or {}).items():
            column = self.column(name)
            if column is not None:
                found[column] = self.amount(name, quantity)
        return found

    def shared(self, resources: Mapping[str, Quantity] | None) -> tuple[dict[int, float], Vector]:
        """The amounts and their vector, as a rule the same objects for equal ones: not to be changed."""
        amounts = self.amounts(resources)
        key = (self.width, *sorted(amounts.items()))
        found = self._shared.get(key)
        if found is None:
            if len(self._shared) >= MOST_SHARED:
                self._shared.clear()
            vector = self.zeros()
            for column, amount in amounts.items():
                vector[column] = amount
            found = self._shared[key] = amounts, vector
        return found

    def vector(self, resources: Mapping[str, Quantity] | None, missing: float = 0.0) -> Vector:
        """All columns; those not named get `missing`."""
        amounts = self.amounts(resources)
        vector = np.full(self.width, missing)
        for column, amount in amounts.items():
            vector[column] = amount
        return vector

    def zeros(self) -> Vector:
        return np.zeros(self.width)

    def fitted(self, vector: Vector, missing: float = 0.0) -> Vector:
        """The vector, lengthened to the present width."""
        return vector if len(vector) == self.width else np.pad(vector, (0, self.width - len(vector)), constant_values=missing)

    def format(self, column: int, amount: float) -> str:
        name = self.names[column]
        if in_bytes(name):
            return format_bytes(amount)
        return str(round(amount)) if name == "pods" else format_milli(amount)

    def quantities(self, vector: Vector) -> dict[str, str]:
        """What is not zero, as Kubernetes writes it; cpu and memory always."""
        return {
            name: self.format(column, vector[column])
            for column, name in enumerate(self.names)
            if column <= MEMORY or vector[column] >= EPSILON
        }


def fits(need: Vector, room: Vector) -> bool:
    """need <= room in every dimension, up to EPSILON."""
    return bool((need < room + EPSILON).all())


def share(part: float, whole: float) -> float:
    """part / whole, where nothing of nothing is 0 and something of nothing is 1."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def dominant_share(part: Vector, whole: Vector) -> float:
    """The greatest share over the dimensions that `whole` has. So few numbers are quicker one by one."""
    return max((some / all_ for some, all_ in zip(part.tolist(), whole.tolist(), strict=True) if all_ >= EPSILON), default=0.0)
