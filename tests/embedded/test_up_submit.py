"""What is submitted to a cluster of our own, and what is said of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pumice.cli.cluster_file import read_cluster_file
from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.cli.up_submit import submit
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

JOB = Path(__file__).parents[2] / "examples" / "job.yaml"


def test_a_job_that_does_not_run_is_shown_with_the_reason() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        async with running(UpRequest(policy_of(), read_stages(), list(nodes_of(pools_of("3x8gpu"))), plain=True)) as cluster:
            no_longer = asyncio.Event()
            submitting = asyncio.create_task(submit(cluster.plane, read_cluster_file(str(JOB)).objects, said.append, no_longer))
            while not any("overused" in event["message"] for event in cluster.plane.store.all("events")):
                await asyncio.sleep(0.05)
            no_longer.set()
            assert await submitting == 1
        return said

    said = asyncio.run(asyncio.wait_for(story(), 30))
    assert said[-1].startswith("\n$ kubectl get events\n")
    assert "resource in cluster is overused: overused nvidia.com/gpu" in said[-1]
