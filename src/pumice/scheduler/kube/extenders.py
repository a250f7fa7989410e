"""Extenders: services that filter nodes, score them, name victims, or bind. They are asked one after the other, over the world's HTTP.

An extender that fails is skipped if it is ignorable; else the pod's attempt ends in an error that names the extender and the reason. A
failure to score is never an error. Answers are not trusted: an unknown node, or something else where a list belongs, counts as a failure.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pumice.scheduler.engine import Scores
from pumice.scheduler.framework.profiles import ExtenderSpec
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.preemption_units import with_pods
from pumice.scheduler.model import Mask, Task
from pumice.scheduler.model.task import as_pod

SCALE = 10.0  #: extenders score 0..10, plugins 0..100


class AttemptFailed(Exception):
    """An attempt ends in an error: not because no node fits, but because something could not be asked or judged."""


Victims = dict[int, tuple[list[Task], int]]  #: by row: the pods that would go, and how many of them violate a budget


class Extender:
    """One extender: its questions and answers in the scheduler's own types."""

    def __init__(self, spec: ExtenderSpec, session: Session) -> None:
        self.spec = spec
        self._table = session.nodes
        self._client: Any = session.world.extender(spec.url, spec.timeout_s, dict(spec.options))

    def interested(self, task: Task) -> bool:
        """Whether the extender is asked about the pod: it manages a resource that the pod requests, or all resources."""
        if not self.spec.managed:
            return True
        names = self._table.dimensions.names
        return any(names[column] in self.spec.managed for column in task.template.columns)

    def _call(self, verb: str, arguments: dict[str, Any]) -> Any:
        if self._client is None:
            raise ValueError("there is no connection to extenders here")
        return self._client.call(verb, arguments)

    def _failure(self, error: Exception) -> AttemptFailed:
        return AttemptFailed(f"{self.spec.name}: {error}")

    def _about(self, task: Task, rows: Sequence[int]) -> dict[str, Any]:
        names = [self._table.names[row] for row in rows]
        if self.spec.names_only:
            return {"Pod": as_pod(task), "Nodes": None, "NodeNames": names}
        nodes = [self._table.wire[row] for row in rows]
        return {"Pod": as_pod(task), "Nodes": {"kind": "NodeList", "apiVersion": "v1", "items": nodes}, "NodeNames": None}

    # -- filter

    def filter(self, task: Task, feasible: Mask) -> tuple[Mask, dict[int, tuple[str, bool]]]:
        """The rows that the extender keeps; for other rows its reason and whether that is final. Raises AttemptFailed."""
        rows = np.flatnonzero(feasible).tolist()
        try:
            answer = self._call(self.spec.filter_verb, self._about(task, rows))
            return self._filtered(answer, rows)
        except (OSError, ValueError) as error:
            if self.spec.ignorable:
                return feasible, {}
            raise self._failure(error) from None

    def _filtered(self, answer: Any, rows: list[int]) -> tuple[Mask, dict[int, tuple[str, bool]]]:
        fields = fields_of(answer)
        if fields.get("error"):
            raise ValueError(str(fields["error"]))
        named = fields.get("nodenames") if self.spec.names_only else None
        if named is None:
            items = fields_of(fields.get("nodes") or {}).get("items") or []
            named = [fields_of(fields_of(item).get("metadata")).get("name") for item in _list(items)]
        asked = {self._table.names[row]: row for row in rows}
        kept = np.zeros(len(self._table), bool)
        for name in _list(named):
            if name not in asked:
                raise ValueError(f'claims a filtered node "{name}" which is not found in the input node list')
            kept[asked[name]] = True
        refusals: dict[int, tuple[str, bool]] = {}
        for field, final in (("failednodes", False), ("failedandunresolvablenodes", True)):
            failed = fields.get(field) or {}
            refusals |= {asked[name]: (str(text), final) for name, text in _mapping(failed).items() if name in asked}
        return kept, refusals

    # -- prioritize

    def prioritize(self, task: Task, feasible: Mask) -> Scores | None:
        """The extender's scores, 0..100 per row; None if it could not be asked."""
        rows = np.flatnonzero(feasible).tolist()
        scores = np.zeros(len(self._table))
        try:
            for entry in _list(self._call(self.spec.prioritize_verb, self._about(task, rows)) or []):
                fields = fields_of(entry)
                row = self._table.rows.get(str(fields.get("host")), -1)
                if row >= 0:
                    scores[row] = _number(fields.get("score")) * SCALE
        except (OSError, ValueError):
            return None
        return scores

    # -- preempt

    def preempt(self, task: Task, victims: Victims) -> Victims:
        """The rows that the extender accepts, with the victims that it names there. Raises AttemptFailed."""
        try:
            answer = fields_of(self._call(self.spec.preempt_verb, self._proposal(task, victims)))
            found = self._named(answer, victims)
        except (OSError, ValueError) as error:
            if self.spec.ignorable:
                return victims
            raise self._failure(error) from None
        for row in [row for row, (pods, _) in found.items() if not pods]:
            if not self.spec.ignorable:
                raise AttemptFailed(f'expected at least one victim pod on node "{self._table.names[row]}"')
            del found[row]
        return found

    def _proposal(self, task: Task, victims: Victims) -> dict[str, Any]:
        def victims_as(tell: Callable[[Task], Any]) -> dict[str, Any]:
            return {
                self._table.names[row]: {"Pods": [tell(pod) for pod in pods], "NumPDBViolations": violations}
                for row, (pods, violations) in victims.items()
            }

        if self.spec.names_only:
            return {"Pod": as_pod(task), "NodeNameToMetaVictims": victims_as(lambda pod: {"UID": pod.uid})}
        return {"Pod": as_pod(task), "NodeNameToVictims": victims_as(as_pod)}

    def _named(self, answer: dict[str, Any], asked: Victims) -> Victims:
        found: Victims = {}
        for name, its_victims in _mapping(answer.get("nodenametometavictims") or {}).items():
            row = self._table.rows.get(name, -1)
            if row not in asked:
                raise ValueError(f'names victims on node "{name}", which is no candidate')
            fields = fields_of(its_victims)
            there = {task.uid: task for task in with_pods(self._table.tasks[row].values())}
            pods: dict[str, Task] = {}
            for entry in _list(fields.get("pods") or []):
                uid = str(fields_of(entry).get("uid"))
                if uid not in there:
                    raise ValueError(f'names a victim "{uid}" that is not on node "{name}"')
                pods[uid] = there[uid]
            found[row] = (list(pods.values()), _number(fields.get("numpdbviolations")))
        return found


def fields_of(value: Any) -> dict[str, Any]:
    """A mapping with its keys in lower case: extenders write them as they like."""
    return {str(key).lower(): item for key, item in _mapping(value).items()}


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"answered {type(value).__name__} where an object belongs")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"answered {type(value).__name__} where a list belongs")
    return value


def _number(value: Any) -> int:
    """A whole number of 64 bits; 0 if there is none."""
    if value is None:
        return 0
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"answered {value!r:.40} where a whole number belongs")
    return value
