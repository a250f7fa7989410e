"""What equal pods share is one object, for as long as any of them is there."""

from __future__ import annotations

import gc

from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.shared_templates import FEW, Pairs, Shared


def test_equal_labels_are_one_object_and_those_that_nobody_has_any_longer_are_forgotten() -> None:
    before, shared = _pairs(), Shared(Dimensions(frozenset()))
    kept = [shared.pairs({"number": str(number)}) for number in range(FEW)]
    for number in range(10 * FEW):
        shared.pairs({"number": f"gone-{number}"})
    assert _pairs() - before <= 4 * FEW
    assert all(shared.pairs({"number": str(number)}) is each for number, each in enumerate(kept))


def _pairs() -> int:
    return sum(type(each) is Pairs for each in gc.get_objects())
