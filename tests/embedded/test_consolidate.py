"""Room by moves in a whole cluster: Volcano's controllers make the pods anew, and the kubelets let evicted ones end in their own time."""

from __future__ import annotations

from pumice.extensions import plugins
from pumice.scheduler.config.volcano_conf import read_policy
from tests.embedded.cluster import GROUPS, JOBS, PODS, Api, cluster, until
from tests.embedded.test_stories import running, vcjob

CONFIGURATION = """
actions: "enqueue, allocate, consolidate, backfill"
configurations:
- name: consolidate
  arguments: {minimumRunTime: 0s}
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def places(api: Api, *jobs: str) -> list[str]:
    return [pod["spec"]["nodeName"] for job in jobs for pod in running(api.pods_of(job))]


def test_gangs_move_together_and_everybody_runs_in_the_end() -> None:
    with cluster("4x8cpu", policy=read_policy(CONFIGURATION, plugins())[0]) as api:
        for name in ("a", "b"):
            api.create(JOBS, vcjob(name, 2))
            until(lambda name=name: len(places(api, name)) == 2)
        assert len(set(places(api, "a", "b"))) == 4, "every node holds a pod"
        before = {pod["metadata"]["uid"] for pod in api.items(PODS)}
        large = vcjob("large", 2)
        container = large["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "8"}}
        api.create(JOBS, large)
        until(lambda: len(places(api, "large")) == 2 and len(places(api, "a", "b")) == 4)
        assert not set(places(api, "large")) & set(places(api, "a", "b"))
        assert len({pod["metadata"]["uid"] for pod in api.items(PODS)} & before) == 2, "one gang has moved, the other has not"
        until(lambda: not any("pumice.io/held-places" in (group["metadata"].get("annotations") or {}) for group in api.items(GROUPS)))
