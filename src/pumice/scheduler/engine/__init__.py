"""The engine, which works on arrays only: which nodes may take a task, how good each node is, where a run of equal tasks goes.

A `Filter` refuses nodes with reasons, a `Scorer` rates them; each says how far it looks (`Reach`). An `Evaluation` holds the
answers for one kind of task and brings them up to date from the log of changes, so that placing costs what changed.
"""

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.normalize_score import MAX_SCORE, to_hundred
from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused, Rejected, Rule, Scorer
from pumice.scheduler.engine.view import Scores, View

__all__ = ["MAX_SCORE", "Evaluation", "Filter", "Reach", "Reason", "Refused", "Rejected", "Rule", "Scorer", "Scores", "View"]
__all__ += ["to_hundred"]
