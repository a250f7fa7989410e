"""Bringing scores to 0..100 as most of kube-scheduler's scorers do (NormalizeScore)."""

from __future__ import annotations

import numpy as np

from pumice.scheduler.engine.view import Numbers, Scores

MAX_SCORE = 100.0  #: the highest score of one scorer, before its weight


def weighted(scores: Numbers, weight: float) -> Numbers:
    """The scores times a weight, which is 1 for most scorers."""
    return scores if weight == 1 else scores * weight


def to_hundred(scores: Scores, *, reverse: bool = False) -> Scores:
    """The scores scaled so that the greatest is 100, rounded down. `reverse`: 100 less that. If all are 0, they stay 0 (reversed: 100)."""
    greatest = scores.max(initial=0.0)
    if greatest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: Scores = np.floor(scores * MAX_SCORE / greatest)
    return MAX_SCORE - scaled if reverse else scaled
