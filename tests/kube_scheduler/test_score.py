"""`pumice score`: the table at the pod's turn, by either scheduler's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from pumice.api.structs import encode
from pumice.cli.main import cli
from pumice.testing.builders import Builder, podgroup, queue
from tests.kube_scheduler.stage import existing, machine, waiting
from tests.kube_scheduler.test_schedule import VOLCANO

KINDS = {"PodGroup": "scheduling.volcano.sh/v1beta1", "Queue": "scheduling.volcano.sh/v1beta1"}


def asked(folder: Path, name: str, *objects: Builder, conf: str = "", output: str = "json") -> Any:
    documents = []
    for builder in objects:
        kind, item = builder.build()
        documents.append(json.dumps({"apiVersion": KINDS.get(kind, "v1"), "kind": kind} | json.loads(encode(item))))
    (folder / "in.yaml").write_text("\n---\n".join(documents))
    (folder / "conf").write_text(conf)
    more = ["--conf", str(folder / "conf")] if conf else []
    result = CliRunner().invoke(cli, ["score", "-f", str(folder / "in.yaml"), "--pod", name, "-o", output, *more], catch_exceptions=False)
    assert result.exit_code == 0
    return (json.loads(result.stdout), result.stderr) if output == "json" else result.stdout


def test_earlier_pods_stand_already_and_later_ones_do_not(tmp_path: Path) -> None:
    pods = [waiting(name, 1, priority) for name, priority in (("last", 0), ("first", 9), ("mid", 5))]
    table, _ = asked(tmp_path, "default/mid", machine("a", 4), machine("b", 2), machine("tiny", "500m"), *pods)
    assert table["feasible"] == ["a", "b"]
    assert table["scores"]["NodeResourcesFit"] == {"a": 73, "b": 74}  # `first` went to a
    assert table["rejected"] == {"tiny": "Insufficient cpu (needs 1, free 500m)"}
    assert table["scores"]["total"] == {
        node: sum(table["scores"][plugin][node] * weight for plugin, weight in table["weights"].items()) for node in ("a", "b")
    }


def test_raw_scores_are_shown_beside_normalized_ones(tmp_path: Path) -> None:
    table, _ = asked(tmp_path, "p", machine("a").taint("t", effect="PreferNoSchedule"), machine("b"), waiting("p"))
    assert table["raw"]["TaintToleration"] == {"a": 1, "b": 0}
    assert table["scores"]["TaintToleration"] == {"a": 0, "b": 100}
    assert table["weights"]["TaintToleration"] == 3


def test_volcanos_plugins_are_shown_within_the_gang(tmp_path: Path) -> None:
    gang = waiting("w").scheduler("volcano").gang("g").times(2)
    objects = (queue("default"), machine("a", 4), machine("b", 4), machine("small", "1500m"), podgroup("g", 2), *gang)
    table, _ = asked(tmp_path, "w-1", *objects, conf=VOLCANO % "")
    assert set(table["feasible"]) == {"a", "b", "small"}
    fit = table["scores"]["NodeResourcesFit"]
    assert fit["a"] < fit["b"]  # w-0 stands on a


def test_shortages_under_volcano_tell_need_and_room(tmp_path: Path) -> None:
    objects = (queue("default"), machine("a", 2), existing("x", "a", 1), podgroup("g", 1), waiting("w", 2).scheduler("volcano").gang("g"))
    table, _ = asked(tmp_path, "w", *objects, conf=VOLCANO % "")
    assert table["rejected"] == {"a": "Insufficient cpu (needs 2, free 1)"}


def test_a_pod_that_has_no_turn_is_shown_with_the_reason(tmp_path: Path) -> None:
    for pod, why in (
        (waiting("p").having("spec", "schedulingGates", value=[{"name": "g"}]), "scheduling gates hold it back"),
        (waiting("p").scheduler("somebody"), "its schedulerName is somebody"),
        (existing("p", "a"), "it is Running"),
    ):
        table, said = asked(tmp_path, "p", machine("a", 4), pod, waiting("other"))
        assert table["feasible"] == ["a"]
        assert why in said
    table, said = asked(tmp_path, "p", queue("default"), machine("a"), waiting("p").scheduler("volcano"), conf=VOLCANO % "")
    assert "no PodGroup has it" in said
    table, said = asked(
        tmp_path, "w", queue("default"), machine("a"), podgroup("g", 5), waiting("w").scheduler("volcano").gang("g"), conf=VOLCANO % ""
    )
    assert "no turn" in said


def test_a_pod_refused_before_any_node_is_asked(tmp_path: Path) -> None:
    pod = waiting("p").having("spec", "volumes", value=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])
    table, _ = asked(tmp_path, "p", machine("a"), pod)
    assert table["rejected"] == {"a": 'persistentvolumeclaim "none" not found'}


def test_a_person_gets_nodes_by_total(tmp_path: Path) -> None:
    text = asked(tmp_path, "p", machine("a", 2), machine("b", 8), machine("c").cordoned(), waiting("p"), output="table")
    lines = text.splitlines()
    assert lines[0].startswith("NODE   TOTAL   TaintToleration x3")
    assert [line.split()[0] for line in lines[1:3]] == ["b", "a"]
    assert "c          node(s) were unschedulable" in text
    assert asked(tmp_path, "p", waiting("p"), output="table").startswith("no node will do for default/p")
    assert "NodeResourcesFit" in asked(tmp_path, "p", machine("a"), waiting("p"), output="yaml")


def test_an_unknown_pod_is_refused_with_the_nearest(tmp_path: Path) -> None:
    from pumice.api.errors import InputError

    try:
        asked(tmp_path, "worker-11", machine("a"), waiting("worker-1"))
    except InputError as error:
        assert 'did you mean "default/worker-1"?' in str(error)
    else:
        raise AssertionError("it should be refused")
