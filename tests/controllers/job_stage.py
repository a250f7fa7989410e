"""A stage with one job on it, as stories of jobs begin."""

from __future__ import annotations

from pumice.api import kinds
from pumice.api.json_objects import Object
from tests.controllers.stage import Stage, queue


def play(job: Object, *others: Object) -> Stage:
    return Stage(queue(), job, *others)


def phase(stage: Stage, name: str = "train") -> str:
    return str(stage.get(kinds.JOB, name)["status"]["state"]["phase"])


def status(stage: Stage, name: str = "train") -> Object:
    found: Object = stage.get(kinds.JOB, name)["status"]
    return found


def running(job: Object, *others: Object) -> Stage:
    stage = play(job, *others)
    stage.let_in()
    stage.bind()
    stage.pods("Running")
    return stage
