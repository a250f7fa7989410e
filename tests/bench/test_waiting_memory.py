"""A job that waits takes less than 3 KiB, also if it is like no other. Bytes are counted as they are allocated, whatever the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.waiting import all_different, four_shapes, memory


@pytest.mark.parametrize(("size", "shape"), [(1, four_shapes), (1, all_different), (4, four_shapes)])
def test_a_job_that_waits_takes_less_than_3_kib(size: int, shape: Callable[[int], dict[str, str]]) -> None:
    assert memory(size, "", shape).cpu < 3
