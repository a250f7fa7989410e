"""Resource vectors: one float64 per dimension, integers in value, so that sums are exact.

A `Dimensions` maps resource names to fixed columns. CPU and extended resources count in thousandths, memory and other byte
amounts in bytes, pods in pods. Vectors are wider than the names in use, so that a new name seldom changes their shape.

Amounts that users write are bounded when they become numbers here: a pod's and a node's by MOST_OF_ONE; those of queues and PodGroups,
which are for many pods, by MOST_OF_MANY; none is below zero. An amount that reaches its bound never fits anywhere, and enters no kept sum.
All smaller amounts do, exactly: a `Sum` holds the low and the high half of each amount, so that no number of pods is too great for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pumice.api.quantity import Quantity, format_amount, format_bytes, format_milli

Scalar = TypeVar("Scalar", bound=np.generic)
NDArray: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Scalar]]
Vector: TypeAlias = NDArray[np.float64]
Sum: TypeAlias = NDArray[np.int64]  #: [low and high, r] a sum kept from cycle to cycle, by additions and subtractions
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]

CPU, MEMORY, PODS = 0, 1, 2
EPSILON = 0.1  #: amounts that differ by less are equal, as in Volcano
WIDTH = 8
Array = TypeVar("Array", Vector, Sum)
MOST_SHARED = 512
one_text = lru_cache(maxsize=MOST_SHARED)(str)  #: one object for equal texts that come soon after each other; `intern` keeps a table of all
FEW_READ = 128  #: so many of what is kept as bytes are not read again
MOST_NAMES = 128  #: with so many columns, names that no node offers get none: each would widen all vectors
HALF = 2**32  #: the amount for which 1 in the high half of a sum stands
HALVES = np.array((1.0, HALF))  #: the amounts for which 1 in the low and in the high half stands
MOST_OF_ONE = 2**46  #: 64Ti bytes, 70 billion CPUs, cards or pods: no pod that requests so much fits anywhere
MOST_OF_MANY = 2**52  #: the bound of minResources, and of a queue's amounts
DEVICE_SHARES = frozenset(["volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"])
#: what pods request of a single card: a sum over a node would mean nothing, and no node offers it


def is_scalar(name: str) -> bool:
    """Whether Kubernetes schedules this name as a scalar resource: extended, huge pages, attachable volumes, native with a prefix."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or name == "ephemeral-storage":
        return True
    return "/" in name and not name.startswith(("requests.", "count/"))


def in_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def in_units(name: str) -> bool:
    """Whether amounts of the resource are counted in whole units, not in thousandths."""
    return in_bytes(name) or name == "pods"


def bounded(amount: int, most: int = MOST_OF_ONE) -> float:
    """A written amount, limited to 0..most."""
    return float(min(max(amount, 0), most))


def beyond(resources: Mapping[str, Quantity] | None, most: int, dimensions: Dimensions) -> str:
    """The first amount that reaches the bound, or is of a resource that no node has, written as `cpu 1e30`; empty if there is none."""
    for name, quantity in (resources or {}).items():
        if (quantity.whole if in_units(name) else quantity.milli) >= most or dimensions.leaves_out(name, quantity.milli):
            return f"{name} {quantity.text}"
    return ""


class Dimensions:
    """The columns of resource names. `width` is the length of all vectors; names in `ignored` never get a column.

    An object that keeps vectors puts a function into `widened`. It is called as soon as a new name has made `width` greater.
    """

    def __init__(self, ignored: Iterable[str] = ()) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self.columns: dict[str, int] = {name: column for column, name in enumerate(self.names)}
        self.width = WIDTH
        self.ignored = frozenset(ignored)
        self.widened: list[Callable[[], None]] = []
        self._packed: dict[tuple[object, ...], tuple[bytes, str]] = {}
        self._seen: dict[int, tuple[Mapping[str, Quantity], tuple[bytes, str]]] = {}  #: by identity; simulated PodGroups share them

    def column(self, name: str, *, offered: bool = False) -> int | None:
        """The column of a resource name; a new name gets one. None if the name is no resource of scheduling, or if there are too many
        names already. Resources that nodes offer always get a column."""
        column = self.columns.get(name)
        if column is None and self._counts(name) and (offered or len(self.names) < MOST_NAMES):
            column = self.columns[name] = len(self.names)
            self.names.append(name)
            self._seen.clear()
            if column >= self.width:
                self.width *= 2
                for tell in self.widened:
                    tell()
        return column

    def _counts(self, name: str) -> bool:
        return is_scalar(name) and name not in self.ignored

    def leaves_out(self, name: str, milli: int) -> bool:
        """Whether some of the resource is requested and it has no column, so that no node has any of it."""
        return milli > 0 and name not in self.columns and self._counts(name)

    def amounts(self, resources: Mapping[str, Quantity] | None, most: int = MOST_OF_MANY) -> dict[int, float]:
        found: dict[int, float] = {}
        for name, quantity in (resources or {}).items():
            column = self.column(name)
            if column is not None:
                found[column] = bounded(quantity.whole if in_units(name) else quantity.milli, most)
        return found

    def packed(self, resources: Mapping[str, Quantity] | None) -> tuple[bytes, str]:
        """The vector of these resources in less memory, and the first amount that is `beyond` its bound. As a rule equal resources give
        the same objects."""
        if not resources:
            return b"", ""
        seen = self._seen.get(id(resources))
        if seen is not None and seen[0] is resources:
            return seen[1]
        items = resources.items()
        found = self._packed.get((len(self.names), *items))
        if found is None:
            if len(self._packed) >= MOST_SHARED:
                self._packed.clear()
            found = packed(self.vector(resources)), beyond(resources, MOST_OF_MANY, self)
            self._packed[len(self.names), *items] = found
        if len(self._seen) >= MOST_SHARED:
            self._seen.clear()
        self._seen[id(resources)] = resources, found
        return found

    def vector(self, resources: Mapping[str, Quantity] | None, missing: float = 0.0, most: int = MOST_OF_MANY) -> Vector:
        """The vector of these resources. Columns that are not named get `missing`."""
        amounts = self.amounts(resources, most)
        vector = np.full(self.width, missing)
        for column, amount in amounts.items():
            vector[column] = amount
        return vector

    def zeros(self) -> Vector:
        return np.zeros(self.width)

    def nothing(self) -> Sum:
        return np.zeros((2, self.width), np.int64)

    def fitted(self, vector: Array, missing: float = 0.0) -> Array:
        """The vector or sum, lengthened to the present width."""
        more = self.width - vector.shape[-1]
        return np.pad(vector, [*[(0, 0)] * (vector.ndim - 1), (0, more)], constant_values=missing) if more else vector

    def format(self, column: int, amount: float) -> str:
        name = self.names[column]
        if in_bytes(name):
            return format_bytes(amount)
        return str(round(amount)) if name == "pods" else format_milli(amount)

    def format_amount(self, column: int, amount: float) -> str:
        """An amount for messages: exact if that is short, else rounded to few digits."""
        name = self.names[column]
        return self.format(column, amount) if name == "pods" else format_amount(amount, binary=in_bytes(name))

    def quantities(self, vector: Vector) -> dict[str, str]:
        """The amounts that are not zero, as Kubernetes writes them; cpu and memory always."""
        return {
            name: self.format(column, vector[column])
            for column, name in enumerate(self.names)
            if column <= MEMORY or vector[column] >= EPSILON
        }


def packed(vector: Vector) -> bytes:
    """A vector in less memory, of whichever width: zeros at its end are left out."""
    return vector.tobytes().rstrip(b"\0")


@lru_cache(maxsize=FEW_READ)
def unpacked(packed: bytes, width: int) -> Vector:
    """The vector that was packed, which is not to be changed."""
    return np.frombuffer(packed.ljust(8 * width, b"\0"))


@lru_cache(maxsize=FEW_READ)
def exactly(packed: bytes, width: int) -> Sum:
    """The packed vector as a sum, which is not to be changed."""
    return as_sum(unpacked(packed, width))


@cache
def no_sum(width: int) -> Sum:
    """The sum of nothing, one object for all who keep it without changing it."""
    total: Sum = np.zeros((2, width), np.int64)
    total.flags.writeable = False
    return total


def as_sum(amounts: Vector) -> Sum:
    total: Sum = np.empty((2, len(amounts)), np.int64)
    np.divmod(amounts, HALF, out=(total[1], total[0]), casting="unsafe")
    return total


def as_vector(total: Sum) -> Vector:
    """The sum as a vector of float64: exact up to 2**53, and close above."""
    vector: Vector = HALVES.dot(total)
    return vector


def as_vectors(totals: Iterable[Sum]) -> NDArray[np.float64]:
    """The vectors of many sums, one row for each."""
    many = np.array([*totals])
    vectors: NDArray[np.float64] = HALVES.dot(many) if len(many) else many
    return vectors


def fits(need: Vector, room: Vector) -> bool:
    """Whether need <= room in every dimension, up to EPSILON. For so few numbers a loop is quicker than arrays."""
    return not any(some >= much + EPSILON for some, much in zip(need.tolist(), room.tolist(), strict=True))


def dominant_share(part: Vector, whole: Vector) -> float:
    """The greatest share among the dimensions in which `whole` is not 0."""
    return max((some / all_ for some, all_ in zip(part.tolist(), whole.tolist(), strict=True) if all_ >= EPSILON), default=0.0)
