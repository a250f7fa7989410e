"""Runs of the simulator from the present state of the cluster, under a configuration that a user tries out: running pods go on, waiting
pods wait.

Each run is a process of its own, one at a time and for a minute at most; the last few are kept. A run begins with the objects that the API
server lets the user export. Running pods come first, and run for the rest of the time that their annotations or else the request states.
"""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pumice.api import Object, duration, instant, rfc3339
from pumice.api.annotations import GROUP_NAME, RUN_SECONDS, RUN_TIME
from pumice.api.integers import integer
from pumice.cluster.apiserver import Server
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response, Stream
from pumice.page.command import output_of
from pumice.page.files import UNCACHED

LONGEST_S = 60.0
KEPT = 8
SHOWN = ("wait", "turnaround", "utilisation", "evictions", "makespan", "jobs")
AS_THEY_ARE = ("Node", "Queue", "PriorityClass", "PodGroup")
#: A report has scripts and styles of its own, whose hash it names. It is shown in a sandbox, from which it cannot reach the page.
AS_A_STRANGER = (("Content-Security-Policy", "sandbox allow-scripts"), ("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"))


class RunRequest(msgspec.Struct):
    configuration: str
    seconds: float = 600.0  #: how long a pod runs if its annotations do not say it


class SimulationRun(msgspec.Struct):
    """One run, as the page shows it."""

    number: int
    at: float
    state: str = "runs"  #: then "ended", or "failed"
    error: str = ""
    configuration: str = ""
    measures: Object = {}


class Simulations:
    """Simulations that were begun from the page."""

    def __init__(self, api: Server) -> None:
        self._api = api
        self._runs: dict[int, SimulationRun] = {}
        self._reports: dict[int, bytes] = {}
        self._under_way: asyncio.Task[None] | None = None

    @property
    def routes(self) -> dict[str, Handler]:
        return {"/api/simulations": self._list, "/api/report": self._report}

    async def begin(self, request: Request) -> Response | Stream:
        """Begin a run. The answer has its number, or the reason why there is no run."""
        exported = await self._api.answer(Request("GET", ARCHIVE_PATH, request.headers))
        if isinstance(exported, Response):  # a refusal
            return exported
        try:
            wanted = msgspec.json.decode(request.body, type=RunRequest)
        except msgspec.DecodeError as error:
            return Response.json({"message": str(error)}, 400, headers=UNCACHED)
        if self._under_way is not None and not self._under_way.done():
            return Response.json({"message": "another run is under way"}, 409, headers=UNCACHED)
        run = SimulationRun(max(self._runs, default=0) + 1, self._api.store.now(), configuration=wanted.configuration)
        self._runs[run.number] = run
        for old in sorted(self._runs)[:-KEPT]:
            del self._runs[old]
            self._reports.pop(old, None)
        present = [obj for _, obj in self._api.store.storage.everything()]
        self._under_way = asyncio.ensure_future(self._play(run, present, wanted.seconds))
        return Response.json({"number": run.number}, 201, headers=UNCACHED)

    async def end(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)

    def _list(self, request: Request) -> Response:
        return Response.json(list(self._runs.values()), headers=UNCACHED)

    def _report(self, request: Request) -> Response:
        report = self._reports.get(integer(request.query.get("number", ""), -1))
        if report is None:
            return Response.text("this run is not kept", 404)
        return Response(report, content_type="text/html; charset=utf-8", headers=AS_A_STRANGER)

    async def _play(self, run: SimulationRun, present: list[Object], seconds: float) -> None:
        with tempfile.TemporaryDirectory(prefix="pumice-") as name:
            folder = Path(name)
            await asyncio.to_thread(_write, folder / "present.json", present, run.at, seconds)
            (folder / "scheduler.conf").write_text(run.configuration, encoding="utf-8")
            try:
                run.measures = await _simulated(folder)
                self._reports[run.number] = (folder / "report.html").read_bytes()
                run.state = "ended"
            except (RuntimeError, TimeoutError) as error:
                run.state, run.error = "failed", str(error).replace(f"{folder}/", "") or f"it took longer than {LONGEST_S:g} s"


def _write(path: Path, present: list[Object], now: float, seconds: float) -> None:
    """Write what a run begins with, one object at a time, so that other threads have their turn."""
    with path.open("wb") as file:
        file.write(b'{"apiVersion":"v1","kind":"List","items":[')
        for number, obj in enumerate(beginning(present, now, seconds)):
            file.write(b"," * bool(number) + msgspec.json.encode(obj))
        file.write(b"]}")


async def _simulated(folder: Path) -> Object:
    """The measures of a run whose input is in `folder`. Raises RuntimeError with the error output of the simulator, or TimeoutError."""
    inputs = ("--workload", f"kubernetes:{folder}/present.json", "--policy", f"{folder}/scheduler.conf", "--out", str(folder))
    await output_of("simulate", *inputs, within_s=LONGEST_S)
    measures: Object = msgspec.json.decode((folder / "summary.json").read_bytes())["measures"]
    return {name: measures[name] for name in SHOWN}


def beginning(objects: list[Object], now: float, seconds: float) -> list[Object]:
    """The objects that the simulator begins with. Of the pods, only those that have not ended, running pods first. All are created now."""
    pods = [obj for obj in objects if obj["kind"] == "Pod" and _phase(obj) not in ("Succeeded", "Failed")]
    pods.sort(key=lambda pod: (_phase(pod) != "Running", pod["metadata"]["creationTimestamp"]))
    groups = {(pod["metadata"].get("annotations") or {}).get(GROUP_NAME) for pod in pods}
    others = [obj for obj in objects if obj["kind"] in AS_THEY_ARE and (obj["kind"] != "PodGroup" or obj["metadata"]["name"] in groups)]
    return [*map(_come_now(now), others), *(_come_now(now)(_with_run_time(pod, now, seconds)) for pod in pods)]


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _come_now(now: float) -> Any:
    return lambda obj: {**obj, "metadata": {**obj["metadata"], "creationTimestamp": rfc3339(now)}}


def _with_run_time(pod: Object, now: float, seconds: float) -> Object:
    annotations = pod["metadata"].get("annotations") or {}
    started = (pod.get("status") or {}).get("startTime")
    left_s = max(1.0, _runs_s(annotations.get(RUN_SECONDS, ""), seconds) - (now - instant(started) if started else 0.0))
    return {**pod, "metadata": {**pod["metadata"], "annotations": {**annotations, RUN_TIME: f"{left_s:.0f}s"}}}


def _runs_s(text: str, otherwise: float) -> float:
    """How long a pod runs that says `60` or `5m`; any other pod runs as long as the request says."""
    for read in (float, duration):
        with suppress(ValueError):
            return read(text)
    return otherwise
