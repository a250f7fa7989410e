"""Ask rules about one pod, by the way a session asks them, and get plain answers by node name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import Filter, Scorer
from pumice.scheduler.engine.view import View
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import NodeBuilder, PodBuilder, node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def zoned(**zones: str) -> list[NodeBuilder]:
    """A node per name, in the zone given; "" for none."""
    return [node(name).cpu(100).label(ZONE, zone) if zone else node(name).cpu(100) for name, zone in zones.items()]


def app(name: str, label: str, on: str = "", namespace: str = "default") -> PodBuilder:
    made = pod(name, namespace).label("app", label)
    return made.on(on) if on else made


def evaluated(made: Cluster, key: str, filters: Sequence[Filter] = (), scorers: Sequence[Scorer] = ()) -> Evaluation:
    alike = [task for task in made.tasks.values() if task.template is made.tasks[key].template]
    for rule in (*filters, *scorers):
        assert len({rule.key(task) for task in alike}) == 1 or rule.tells_apart(alike[0].template), f"{rule.name} tells them apart"
    evaluation = Evaluations(made, filters, scorers).of(made.tasks[key])
    evaluation.refresh()
    return evaluation


def refusals(made: Cluster, key: str, *filters: Filter) -> dict[str, str]:
    """Node to the first reason that refuses the pod there; a reason that is final has an exclamation mark."""
    evaluation = evaluated(made, key, filters)
    if evaluation.rejected is not None:
        return dict.fromkeys(made.nodes.rows, evaluation.rejected.text + "!" * evaluation.rejected.final)
    found: dict[str, str] = {}
    for refused in evaluation.refusals():
        for row in np.flatnonzero(refused.where).tolist():
            found.setdefault(made.nodes.names[row], refused.reason.text + "!" * refused.reason.final)
    assert {made.nodes.names[row] for row in np.flatnonzero(~evaluation.admitted)} == set(found)
    return found


def admitted(made: Cluster, key: str, *filters: Filter) -> str:
    """Names of the nodes that may take the pod."""
    refused = refusals(made, key, *filters)
    return " ".join(name for name in made.nodes.rows if name not in refused)


def scores(made: Cluster, key: str, scorer: Scorer, among: str = "") -> list[int]:
    """The normalized scores of the candidates (all if none are named), in the order of the nodes. A rule that stays out gives none."""
    state = scorer.prepare(made.tasks[key])
    if state is None:
        return []
    rows = np.array([made.nodes.rows[name] for name in among.split()] if among else list(made.nodes), np.intp)
    raw = scorer.score(state, View(made.nodes, rows))
    return [int(score) for score in (scorer.normalize(raw) if scorer.normalizes else raw)]
