"""`python -m bench` finds its parts by itself."""

from __future__ import annotations

import importlib

import pytest

from bench.__main__ import parts


@pytest.mark.parametrize("part", parts())
def test_each_part_gives_rows(part: str) -> None:
    assert callable(importlib.import_module(f"bench.{part}").run)
