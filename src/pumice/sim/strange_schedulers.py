"""Who creates pods, or jobs of them, for a scheduler that does not run here is warned: nothing else would ever say why they wait."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.apiserver import Refusal, Review, Rule, World
from pumice.controllers.admission import CREATE


def warn_of_strange_schedulers(ours: Sequence[str]) -> Rule:
    """For `Store.admission.add`. `ours` are the schedulerNames that somebody here serves."""

    def judge(review: Review, _: World) -> Refusal | None:
        asked = review.obj["spec"].get("schedulerName")
        if asked and asked not in ours:
            review.warnings.append(f'spec.schedulerName: no scheduler "{asked}" runs here unless you start one; {", ".join(ours)} do')
        return None

    return Rule(("pods", "jobs.batch.volcano.sh"), (CREATE,), validate=judge)
