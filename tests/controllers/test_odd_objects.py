"""Objects that somebody wrote by hand, past all rules: controllers look after the rest as if nothing were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import Object
from pumice.controllers.registry import volcano_controllers
from tests.controllers.stage import Stage, fixed_key_pair, plain_pod, queue, vcjob
from tests.samples import times

JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
KEYS = sorted(value for name, value in vars(key).items() if name.isupper() and "/" in value)


def command(name: str, **more: Any) -> Object:
    return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": name, "namespace": "default"}, **more}


@pytest.mark.parametrize(
    "odd",
    [
        command("of-nothing"),
        command("of-nobody", target=JOB, action="AbortJob"),
        command("of-no-kind", target={"name": "train"}, action="AbortJob"),
        command("of-no-action", target={**JOB, "name": "train"}),
        plain_pod("p", {**JOB, "metadata": {"name": "train", "uid": "uid-train"}}, {key.JOB_VERSION: "four", key.TASK_SPEC: "none"}),
        plain_pod("p", {**JOB, "metadata": {"name": "gone", "uid": "uid-gone"}}),
    ],
    ids=lambda odd: odd["metadata"]["name"],
)
def test_a_job_runs_beside_odd_objects(odd: Object) -> None:
    stage = Stage(odd, queue(), vcjob(policies=[{"event": "*", "action": "RestartJob"}]), controllers=volcano_controllers(fixed_key_pair))
    stage.let_in()
    stage.bind("train-w-0")
    stage.pods("Running", "train-w-0")
    assert stage.get(kinds.JOB, "train")["status"]["state"]["phase"] == "Running"


texts = st.sampled_from(["", "0", "-1", "x", "1e9", "true", "50%", "\u0661"])


@settings(max_examples=times(25), deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), texts), st.dictionaries(st.sampled_from(KEYS), texts))
def test_whatever_annotations_and_labels_say_nobody_stumbles(notes: dict[str, str], labels: dict[str, str]) -> None:
    owned = plain_pod("owned", {**JOB, "metadata": {"name": "train", "uid": "uid-train"}})
    objects = [queue(), vcjob(policies=[{"event": "PodFailed", "action": "RestartTask"}]), plain_pod("own"), owned]
    for each in objects:
        each["metadata"] |= {"annotations": notes, "labels": labels}
    stage = Stage(*objects, controllers=volcano_controllers(fixed_key_pair))
    stage.let_in()
    if stage.lister.get(kinds.POD, "default", "owned") is not None:
        stage.change(kinds.POD, "owned", {"status": {"phase": "Failed"}})
    assert {"default", "train"} <= {*stage.names(kinds.QUEUE), *stage.names(kinds.JOB)}
