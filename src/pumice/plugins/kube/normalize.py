"""Bringing scores to 0..100 as most of kube-scheduler's scorers do."""

from __future__ import annotations

import numpy as np

from pumice.engine.rules import MAX_SCORE
from pumice.engine.view import Scores


def to_hundred(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale by the maximum, truncating; `reverse` turns many into few. All zero stays zero (reversed: all 100)."""
    greatest = scores.max(initial=0.0)
    if greatest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: Scores = np.floor(scores * MAX_SCORE / greatest)
    return MAX_SCORE - scaled if reverse else scaled
