"""A cluster that is stopped and begun again from what it kept: ten days, a restart a day, at the worst moment."""

from __future__ import annotations

from typing import Any

from pumice.cluster.apiserver import Server, export_cluster, import_cluster
from pumice.cluster.clock import VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.stage import read_stages
from tests.embedded.cluster import START, moved

DAY_S, HOUR_S = 86_400.0, 3600.0
DAYS, RUNS_A_DAY = 10, 4


def begun(now: float, kept: bytes) -> tuple[ControlPlane, VirtualClock]:
    clock = VirtualClock(now)
    server = Server(clock=clock.now, plain=True)
    if kept:
        import_cluster(server.store, kept)
    plane = ControlPlane(clock, server, read_stages())
    plane.quiet()
    return plane, clock


def cron(**spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    job = {"spec": {"template": {"spec": pod}}}
    return {"metadata": {"name": "often"}, "spec": {"schedule": "0 */6 * * *", "jobTemplate": job, **spec}}


def test_ten_days_with_a_restart_a_day_miss_no_run_of_a_cron_job_and_have_none_twice() -> None:
    plane, clock = begun(START, b"")
    plane.store.create("cronjobs.batch", cron(), "default")
    for day in range(DAYS):
        stops = START + day * DAY_S + 4 * HOUR_S - 1  # a second before a run is due, which is START + 4 h
        moved(plane, clock, stops)
        kept = b"".join(export_cluster(plane.store))
        plane, clock = begun(stops + 2 + 60 * day, kept)
    moved(plane, clock, START + DAYS * DAY_S)
    runs = [job["metadata"]["creationTimestamp"] for job in plane.store.all("jobs.batch", "default")]
    pods = list(plane.store.all("pods", "default"))
    assert len(runs) == len(set(runs)) == len(pods) == DAYS * RUNS_A_DAY
