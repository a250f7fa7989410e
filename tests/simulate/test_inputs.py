"""What is read of each format, and what is said of files that cannot be read."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.api.annotations import ESTIMATE, GPU_INDEX, USER
from pumice.api.core import Node
from pumice.api.errors import InputError
from pumice.api.structs import convert
from pumice.api.volcano import NetworkTopology
from pumice.simulate.inputs import Source, nodes_of_pools, source
from pumice.simulate.workload import group_of
from tests.simulate.playing import played

POD = "spec: {schedulerName: volcano, containers: [{name: m, image: m, resources: {requests: {cpu: 2}}}]}\n"
OBJECTS = f"""\
apiVersion: v1
kind: Node
metadata: {{name: n1}}
status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 110}}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: train, creationTimestamp: "2026-01-01T00:00:10Z", annotations: {{pumice.io/run-time: 10m}}}}
spec: {{minMember: 2}}
---
apiVersion: v1
kind: Pod
metadata: {{name: a, annotations: {{scheduling.k8s.io/group-name: train}}}}
{POD}---
apiVersion: v1
kind: Pod
metadata: {{name: b, annotations: {{scheduling.k8s.io/group-name: train}}}}
{POD}---
apiVersion: v1
kind: Pod
metadata: {{name: solo, creationTimestamp: "2026-01-01T00:00:00Z", annotations: {{pumice.io/run-time: 1m}}}}
spec: {{nodeName: n1, schedulerName: volcano, containers: [{{name: m, image: m, resources: {{requests: {{cpu: 2}}}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: unknown}}
{POD}"""
PAGE = """\
duration: 2h
nodes: 1x8gpu
queues: {team-a: {weight: 2}}
jobs:
- name: train
  arrivals: {poisson: 30/h}
  pods: {choice: {1: 3, 4: 1}}
  run: {lognormal: 10m, sigma: 0.5}
  estimate: 2
  request: {nvidia.com/gpu: 1}
  queue: {team-a: 1, team-b: 1}
- name: nightly
  arrivals: {at: [1h]}
  run: 5m
  request: {nvidia.com/gpu: 2}
  user: cron
  checkpoint: 1m
- name: swing
  arrivals: {diurnal: 10/h, peak: 4}
  run: {exponential: 1m}
  request: {cpu: 1}
- name: class
  arrivals: {bursts: 1/h, size: 3}
  run: {uniform: [1m, 2m]}
  request: {cpu: 1}
- name: tick
  arrivals: {every: 30m}
  count: 3
  run: 1s
  request: {cpu: 1}
"""


def jobs(path: Path, text: str, format: str, nodes: str | None = "4x8gpu", seed: int = 0) -> list[Any]:
    path.write_text(text)
    return list(Source(format, str(path)).read(nodes_of_pools(nodes) if nodes else None, seed).jobs)


def test_objects_of_kubernetes_come_when_they_were_created(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text(OBJECTS)
    summary, rows = played(Source("kubernetes", str(path)), "FIFO")
    assert [(row["job"], row["submit"], row["start"], row["pods"]) for row in rows] == [("solo", 0, 0, 1), ("train", 10, 60, 2)]
    assert summary["left_out"] == {"no annotation pumice.io/run-time": 1}
    assert summary["began"] == "2026-01-01T00:00:00Z"


def test_a_run_time_may_be_0_but_not_below(tmp_path: Path) -> None:
    text = OBJECTS.replace("run-time: 10m", "run-time: 0s")
    assert [work.run for work in jobs(tmp_path / "dump.yaml", text, "kubernetes", nodes=None) if work.name == "train"] == [0]
    with pytest.raises(InputError, match=r'PodGroup train, metadata.annotations\[pumice.io/run-time\]: "-10m" is out of range'):
        jobs(tmp_path / "dump.yaml", text.replace("0s", "-10m"), "kubernetes", nodes=None)


TWO_NAMESPACES = """
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {rack: r1}}, status: {allocatable: {cpu: 4, pods: 10}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b, labels: {rack: r2}}, status: {allocatable: {cpu: 4, pods: 10}}}
""" + "".join(
    f"""---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: train, namespace: {space}, annotations: {{pumice.io/user: ann, volcano.sh/job-allocated-hypernode: gone}}}}
spec: {{minMember: 1, networkTopology: {{mode: hard, highestTierAllowed: 1}}}}
status: {{phase: Running}}
---
apiVersion: v1
kind: Pod
metadata:
  name: train-0
  namespace: {space}
  annotations: {{scheduling.k8s.io/group-name: train, pumice.io/run-time: {run}, volcano.sh/gpu-index: "3"}}
spec: {{schedulerName: volcano, containers: [{{name: m, resources: {{requests: {{cpu: 2}}}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: train, namespace: {space}, annotations: {{pumice.io/run-time: 5s}}}}
spec: {{containers: [{{name: m, resources: {{requests: {{cpu: 1}}}}}}]}}
"""
    for space, run in (("one", "10s"), ("two", "20s"))
)


def test_equal_names_in_two_namespaces_and_of_a_podgroup_and_a_pod_are_different_jobs(tmp_path: Path) -> None:
    found = jobs(tmp_path / "dump.yaml", TWO_NAMESPACES, "kubernetes", nodes=None)
    assert [(work.namespace, work.name, work.run, work.pods, work.group is not None) for work in found] == [
        ("one", "train", 10, 1, True),
        ("one", "train-pod", 5, 1, False),
        ("two", "train", 20, 1, True),
        ("two", "train-pod", 5, 1, False),
    ]


def test_a_podgroup_of_a_dump_keeps_what_it_asks_for_and_forgets_where_it_was(tmp_path: Path) -> None:
    first = jobs(tmp_path / "dump.yaml", TWO_NAMESPACES, "kubernetes", nodes=None)[0]
    group = group_of(first, "2026-01-01T00:00:00Z")
    assert first.user == "ann" and group.metadata.annotations == {USER: "ann"}
    assert group.spec.network_topology == NetworkTopology("hard", 1) and group.status.phase == "Pending"
    assert GPU_INDEX not in (first.roles[0].annotations or {})
    wrong = group_of(replace(first, estimate=7.0), "2026-01-01T00:00:00Z").metadata.annotations or {}
    assert wrong[ESTIMATE] == "7.000000s", "what the scheduler is told may be wrong"


def test_a_page_draws_the_same_for_the_same_seed_and_its_kinds_are_independent(tmp_path: Path) -> None:
    found = jobs(tmp_path / "page.yaml", PAGE, "yaml", nodes=None)
    assert found == jobs(tmp_path / "page.yaml", PAGE, "yaml", nodes=None)
    assert [work.submit for work in found] == sorted(work.submit for work in found)
    by_kind = {name: [work for work in found if work.name.startswith(name)] for name in ("train", "nightly", "swing", "class", "tick")}
    assert [work.submit for work in by_kind["tick"]] == [0, 1800, 3600]
    assert by_kind["nightly"][0].checkpoint == 60 and by_kind["nightly"][0].user == "cron"
    assert {work.pods for work in by_kind["train"]} == {1, 4} and {work.queue for work in by_kind["train"]} == {"team-a", "team-b"}
    assert all(work.estimate == 2 * work.run for work in by_kind["train"])
    assert all(60 <= work.run <= 120 for work in by_kind["class"])
    other = jobs(tmp_path / "page.yaml", PAGE, "yaml", nodes=None, seed=1)
    assert [work.submit for work in other] != [work.submit for work in found]
    shorter = PAGE.replace("- name: nightly", "- name: other", 1)
    again = [work.submit for work in jobs(tmp_path / "page.yaml", shorter, "yaml", nodes=None) if work.name.startswith("train")]
    assert again == [work.submit for work in by_kind["train"]]


def test_jobs_with_fewer_pods_than_their_minimum_are_left_out(tmp_path: Path) -> None:
    text = "jobs:\n- {count: 20, arrivals: {every: 1m}, pods: {choice: {1: 1, 4: 1}}, minimum: 2, run: 1, request: {cpu: 1}}\n"
    path = tmp_path / "page.yaml"
    path.write_text(text)
    workload = Source("yaml", str(path)).read(nodes_of_pools("1x8cpu"))
    found = list(workload.jobs)
    assert {work.pods for work in found} == {4} and workload.left_out == {"fewer pods than the minimum": 20 - len(found)}


SWF = "1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 -1 1 -1 -1 -1\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


@pytest.mark.parametrize(("format", "text"), [("swf", SWF), ("openb", OPENB + "p,4,1,0,0\n")])
def test_a_file_may_begin_with_a_byte_order_mark_and_is_not_compressed(tmp_path: Path, format: str, text: str) -> None:
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8-sig")
    assert len(list(Source(format, str(path)).read(nodes_of_pools("1x8cpu")).jobs)) == 1
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match="is compressed; unpack it first, with gunzip"):
        list(Source(format, str(path)).read(nodes_of_pools("1x8cpu")).jobs)


@pytest.mark.parametrize(
    "format, text, message",
    [
        ("swf", "; MaxProcs: 4\n1 2 3\n", "f:2: is no record of 18 numbers"),
        ("swf", "; MaxProcs: 4\n" + SWF.replace("10 2", "ten 2", 1), "f:2: is no record of 18 numbers"),
        ("swf", "; MaxProcs: 4\n" + SWF.replace("10 2", "nan 2", 1), "f:2: is no record of 18 numbers"),
        ("philly", PHILLY + "yesterday,1,1,1,a\n", 'f:2: timestamp: "yesterday" is not a time; write one such as 2017-10-09 07:01:55'),
        ("philly", PHILLY + "2017-10-09 07:01:55,1,0,1,a\n", "f:2: num_gpus: 0 is out of range; it must be at least 1"),
        ("philly", PHILLY + "2017-10-09 07:01:55,1,1\n", "f:2: 3 cells below 5 columns"),
        ("philly", "a,b\n", 'f:1: there is no column "timestamp"; the first line must name timestamp, duration, num_gpus, cluster'),
        ("openb", OPENB + "p,4x,1,0,0\n", 'f:2: cpu_milli: "4x" is not a number'),
        ("openb", OPENB + "p,4,1,1,0.5\n", "f:2: gpu_milli: 0.5 is not a whole number"),
        ("openb", OPENB + "p,4,1,2,500\n", "f:2: gpu_milli: 500 of each of 2 GPUs; a pod of several GPUs takes whole ones, 1000"),
        ("openb", OPENB + "p,4,1,1,1500\n", "f:2: gpu_milli: 1500 is more than a whole GPU, 1000"),
        ("yaml", "jobs:\n- {arival: 1}\n", 'f:2: document 1, jobs[0].arival: there is no setting "arival"; did you mean "arrivals"?'),
        *(
            ("yaml", f"jobs:\n- {{count: 2, arrivals: {come}, run: 1, request: {{cpu: 1}}{more}}}\n", message)
            for come, more, message in (
                ("{bursts: 1/h, size: 0}", "", "arrivals: size must be at least 1"),
                ("{poisson: inf/h}", "", 'arrivals: "inf/h" is no rate; write one such as 20/h, 3/m or 2/d'),
                ("{every: 1m}", ", pods: {choice: {1: 0}}", "pods: weights of a choice are numbers, none below 0 and not all 0"),
                ("{every: 1m}", ", pods: {choice: {1: -1, 2: 2}}", "pods: weights of a choice are numbers, none below 0 and not all 0"),
                (
                    "{every: 1m}",
                    "}\n- {arrivals: {at: [0]}, run: 1, request: {cpu: -1}",
                    "f:3: document 1, jobs[1].request: request: cpu: -1 is below 0",
                ),
                ("{every: 1m}", "}\nqueues: [a]  # {", "f:3: document 1, queues: queues: is a mapping, such as"),
                ("{every: 1m}", "}\nqueues: {a: 3", "queues.a: a: is a mapping, such as"),
                ("{every: 1m}", "}\nqueues: {a: {weigth: 3}", 'there is no setting "weigth"; did you mean "weight"?'),
                ("{every: 1m}", "}\nqueues: {a: {weight: 0}", "queues.a: a: weight: 0 is out of range; it must be at least 1"),
                ("{every: 1m}", ", estimate: -2", "estimate: -2 is out of range; write how many times as much, such as 1.5"),
                ("{every: 1m}", "}\nfaults: {stragglers: {share: 1, factor: -1}", "stragglers: -1 is out of range"),
                ("{every: 1m}", "}\nfaults: {estimates: {lognormal: -1, sigma: 1}", "estimates: -1 is out of range"),
                (
                    "{every: 1m}, name: a",
                    "}\n- {name: a, arrivals: {at: [0]}, run: 1, request: {cpu: 1}",
                    'two kinds of jobs are called "a"; give each a `name:` of its own',
                ),
            )
        ),
        ("yaml", "a: 1\n", "f: is no workload; write a mapping with `jobs:`, a list of kinds of jobs"),
        (
            "yaml",
            "duration: 1h\njobs:\n- {arrivals: {poisson: 3}, run: 1, request: {cpu: 1}}\n",
            'f:3: document 1, jobs[0].arrivals: arrivals: "3" is no rate',
        ),
        ("yaml", "jobs:\n- {arrivals: {poisson: 3/h}, run: {normal: 1}, request: {cpu: 1}}\n", "these jobs come without end"),
        (
            "yaml",
            "jobs:\n- {count: 1, arrivals: {poisson: 3/h}, run: {normal: 1}, request: {cpu: 1}}\n",
            "is no distribution; write one of",
        ),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        jobs(Path("f"), text, format)
    assert message in str(raised.value)


@pytest.mark.parametrize("format", ["swf", "philly"])
def test_a_file_may_be_packed_or_come_from_windows(tmp_path: Path, format: str) -> None:
    text = {"swf": "; MaxProcs: 4\n" + SWF, "philly": PHILLY + "2017-10-09 07:01:55,1,1,1,a\n"}[format]
    data = text.replace("\n", "\r\n").encode("utf-8-sig")
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "f.gz").write_bytes(gzip.compress(data))
    plain, packed = ([*Source(format, str(tmp_path / name)).read(nodes_of_pools("1x4gpu:4cpu")).jobs] for name in ("f", "f.gz"))
    assert len(plain) == 1 and [(work.name, work.run) for work in plain] == [(work.name, work.run) for work in packed]


@pytest.mark.parametrize(
    ("data", "message"), [(gzip.compress(b"; MaxProcs: 4\n", mtime=0)[:-9], "its end is missing"), (SWF.encode(), "Not a gzipped file")]
)
def test_a_packed_file_that_is_not_whole_is_told(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "f.swf.gz").write_bytes(data)
    with pytest.raises(InputError, match=f"f.swf.gz: .*{message}"):
        Source("swf", str(tmp_path / "f.swf.gz")).read(None)


def test_jobs_that_cannot_run_are_counted(tmp_path: Path) -> None:
    text = (
        "; MaxProcs: 4\n"
        + SWF
        + SWF.replace(" 2 10 -1 1", " 5 10 -1 1").replace("1 0", "2 0", 1)
        + "3 5 -1 -1 2 -1 -1 2 10 -1 5 1 1 -1 1 -1 -1 -1\n"
    )
    path = tmp_path / "f.swf"
    path.write_text(text)
    summary, rows = played(Source("swf", str(path)), "FIFO")
    assert [row["job"] for row in rows] == ["1"]
    assert summary["left_out"] == {"more processors than there are": 1, "cancelled before it ran": 1}


def test_lines_about_parts_of_a_job_are_no_jobs(tmp_path: Path) -> None:
    path = tmp_path / "f.swf"
    path.write_text("; MaxProcs: 4\n" + SWF + SWF.replace("10 -1 1", "10 -1 2") + SWF.replace("10 -1 1", "10 -1 3"))
    summary, rows = played(Source("swf", str(path)), "FIFO")
    assert [row["job"] for row in rows] == ["1"] and summary["left_out"] == {"a part of a job": 2}


def test_machines_beside_a_log_are_its_cluster_and_calendar_times_count_from_the_first(tmp_path: Path) -> None:
    path = tmp_path / "f.swf"
    path.write_text(SWF.replace("1 0", "1 1357000000", 1))
    (tmp_path / "f.swf.machines").write_text("0\tbig\t2\t3\t1\t1048576\n")
    workload = Source("swf", str(path)).read(None)
    assert [node.status.allocatable["cpu"].whole for node in workload.nodes] == [6]
    assert workload.began == 1357000000 and [work.submit for work in workload.jobs] == [0]
    assert [node.metadata.name for node in Source("swf", str(path) + ".machines").nodes()] == ["big-0000", "big-0001"]


def test_sources_are_named_with_their_format() -> None:
    assert source("swf:a:b.swf", "--workload") == ("swf", "a:b.swf")
    for text, message in [("a.swf", "names no format"), ("swfx:a", 'did you mean "swf"?'), ("swf:", "names no format")]:
        with pytest.raises(InputError, match="--workload"):
            try:
                source(text, "--workload")
            except InputError as error:
                assert message in str(error)
                raise InputError(str(error)) from None


def test_a_time_with_an_offset_from_utc_is_read_as_it_stands(tmp_path: Path) -> None:
    found = jobs(tmp_path / "f.csv", PHILLY + "2017-10-09 07:00:00,1,1,1,a\n2017-10-09T09:00:10+02:00,1,1,1,a\n", "philly")
    assert [work.submit for work in found] == [0, 10]


def test_jobs_of_a_log_run_on_nodes_that_have_processors(tmp_path: Path) -> None:
    (tmp_path / "f.swf").write_text(SWF)
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}, "status": {"allocatable": {"memory": "1Gi"}}}
    workload = Source("swf", str(tmp_path / "f.swf")).read([convert(bare, Node), *nodes_of_pools("1x4cpu")])
    assert [work.pods for work in workload.jobs] == [2] and not workload.left_out


def test_jobs_out_of_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.swf"
    path.write_text("; MaxProcs: 4\n" + SWF.replace("1 0", "1 9", 1) + SWF.replace("1 0", "2 5", 1))
    with pytest.raises(InputError, match="sort the jobs by submission"):
        played(Source("swf", str(path)), "FIFO")


def test_virtual_clusters_are_queues_and_large_jobs_are_gangs_of_whole_nodes(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(PHILLY + "2017-10-09 07:02:55,60,20,1,b\n2017-10-09 07:01:55,60,2,1,a\n2017-10-09 07:01:55,60,99,1,a\n")
    summary, rows = played(Source("philly", str(path)), "FIFO", "4x8gpu")
    assert [(row["queue"], row["submit"], row["start"], row["pods"], row["gpu"]) for row in rows] == [
        ("a", 0, 0, 1, 2),
        ("b", 60, 60, 3, 20),
    ]
    assert summary["left_out"] == {"more GPUs than there are": 1}
    assert summary["began"] == "2017-10-09T07:01:55Z"
