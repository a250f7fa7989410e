"""Answers about waiting jobs: why they wait, what would help, when they start. Each comes from rehearsed cycles, never from guesses.

    from pumice.answers import why
    print(why(cluster, policy, now, "job/train").line)

All answers are structs; `answer_text.py` writes them for people, msgspec as JSON. The state is afterwards as it was. When a job starts is
answered by `pumice.answers.eta`, which uses the simulator.
"""

from pumice.answers.answer import Because, ChainLink, Headline, Near, Why
from pumice.answers.can_ever_run import Fit, fits
from pumice.answers.difference import Difference, compare
from pumice.answers.trial_cluster import TrialCluster
from pumice.answers.whatif import Option, WhatIf, whatif
from pumice.answers.why import why

__all__ = [
    "Because",
    "ChainLink",
    "Difference",
    "Fit",
    "Headline",
    "Near",
    "Option",
    "TrialCluster",
    "WhatIf",
    "Why",
    "compare",
    "fits",
    "whatif",
    "why",
]
