"""Clusters to look at."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from pumice.api.meta import Wire
from pumice.testing.builders import node, pod, podgroup, queue

Objects = Iterator[tuple[str, Wire]]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def ago(seconds: float) -> str:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def small() -> Objects:
    """Eight nodes in two racks; two gangs run, one cannot."""
    yield from (
        node(f"gpu-{n}").cpu(64).memory("512Gi").gpu(8).label("topology.kubernetes.io/rack", f"rack-{n // 4}").build() for n in range(8)
    )
    yield queue("research").weight(1).build()
    yield queue("vision").parent("research").weight(2).build()
    yield queue("prod").weight(3).build()
    yield from gang("train", "vision", pods=2, gpus=8)
    yield from gang("serve", "prod", pods=3, gpus=4)
    yield from gang("huge", "prod", pods=9, gpus=8)


def gang(name: str, of: str, pods: int, gpus: int, nodes: tuple[str, ...] = ()) -> Objects:
    """It waits, or runs on the nodes."""
    yield podgroup(name, pods).queue(of).phase("Running" if nodes else "Inqueue").created(ago(90)).build()
    for index in range(pods):
        made = pod(f"{name}-{index}").cpu(4).memory("16Gi").gpu(gpus).gang(name).created(ago(80))
        yield (made.on(nodes[index % len(nodes)]) if nodes else made).build()


def plain(nodes: int, pods_each: int, pending: int = 0) -> Objects:
    """Pods of a Deployment on nodes of CPUs, and one of nobody; a gang of two. The scheduler of most is not Volcano's."""
    yield from (node(f"node-{n}").cpu(16).memory("64Gi").build() for n in range(nodes))
    yield queue("default").build()
    made = (
        pod("web").cpu(2).created(ago(60)).scheduler("default-scheduler").owned("ReplicaSet", "web-5f7c").label("pod-template-hash", "5f7c")
    )
    for index, each in enumerate(made.times(nodes * pods_each + pending)):
        yield (each.on(f"node-{index // pods_each}") if index < nodes * pods_each else each).build()
    yield pod("alone").cpu(1).on("node-0").scheduler("default-scheduler").build()
    yield from gang("train", "default", 2, 0, ("node-0", "node-1"))


def pieces() -> Objects:
    """Four nodes of 8 GPUs, on each of which a pod of a Deployment has two, and whose CPUs hold three of them."""
    yield queue("default").build()
    yield podgroup("web", 1).queue("default").phase("Running").created(ago(900)).build()
    for number in range(4):
        yield node(f"gpu-{number}").cpu(64).memory("512Gi").gpu(8).build()
        made = pod(f"web-{number}").cpu(20).gpu(2).gang("web").created(ago(900)).owned("ReplicaSet", "web")
        yield made.on(f"gpu-{number}").build()


def large(nodes: int = 5000, pods_each: int = 4, queues: int = 6) -> Objects:
    """All nodes full of gangs of eight pods."""
    yield from (
        node(f"node-{n}").cpu(64).memory("512Gi").gpu(8).label("topology.kubernetes.io/rack", f"rack-{n // 40}").build()
        for n in range(nodes)
    )
    yield from (queue(f"team-{n}").build() for n in range(queues))
    for number in range(nodes * pods_each // 8):
        first = number * 8 // pods_each
        yield from gang(
            f"job-{number}", f"team-{number % queues}", 8, 8 // pods_each, tuple(f"node-{first + n // pods_each}" for n in range(8))
        )
