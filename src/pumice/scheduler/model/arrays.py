"""The type of arrays, as `numpy.typing` has it: to import that takes a tenth of the time that NumPy takes."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

Scalar = TypeVar("Scalar", bound=np.generic)
NDArray: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Scalar]]
