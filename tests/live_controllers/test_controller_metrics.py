"""What the controllers measure of jobs, under Volcano's names."""

from __future__ import annotations

import re

from pumice.live.controllers.metrics import ControllerMetrics
from tests.live_controllers.scene import JOBS, Scene, play, until, working

TO_POD = "volcano_controller_job_to_pod_creation_latency_milliseconds"


def test_how_jobs_end_and_how_soon_they_have_their_pods() -> None:
    async def story(stage: Scene) -> None:
        metrics = ControllerMetrics()
        async with working(stage.client, made=metrics.note_made) as controllers:
            for name, phase in (("well", "Succeeded"), ("ill", "Failed")):
                stage.job(name, replicas=2, maxRetry=1)
                await until(lambda name=name: stage.enqueue(name) and len(stage.pods(name)) == 2)
                stage.pods_become("Running", name)
                await until(lambda name=name: stage.phase(name) == "Running")
                stage.pods_become(phase, name)
                await until(lambda name=name: stage.phase(name) in ("Completed", "Failed"))
            ended = re.compile(r"^volcano_job_(\w+)_phase_count(.*)$", re.MULTILINE)
            labels = '{job_name="default/%s",queue_name="default"} 1'
            expected = [("completed", labels % "well"), ("failed", labels % "ill")]
            await until(lambda: ended.findall(metrics.page(controllers)) == expected)
            assert f"{TO_POD}_count 4\n" in metrics.page(controllers)
            stage.store.delete(JOBS, "well", "default")
            await until(lambda: ended.findall(metrics.page(controllers)) == expected[1:])

    play(story)
