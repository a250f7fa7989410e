"""`pumice defrag`: a plan that empties nodes, and with --apply its execution, a node at a time."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from pumice.answers.answer_text import defragmentation
from pumice.answers.defrag import Defrag, EmptiedNode, defrag as plan_of
from pumice.api import InputError, did_you_mean, duration
from pumice.api.kinds import NODES, PODS, ObjectRef
from pumice.api.plural import counted
from pumice.api.times import Duration
from pumice.cli.inputs import Inputs, input_options, load
from pumice.cli.live_cluster import Remote
from pumice.cli.tables import json_text, say
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, PatchType, as_dict
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.eviction.movable_pods import MoveRules
from pumice.scheduler.model import Cluster

POLL_S = 0.5
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


def _duration(context: click.Context, option: click.Parameter, text: str) -> Duration:
    try:
        found = Duration(duration(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if found < 0:
        raise click.BadParameter(f'"{text}" is out of range')
    return found


@click.command()
@input_options
@click.option("--most", default=0, type=click.IntRange(0), help="Move at most so many pods. Default: any number.")
@click.option("--minimum-run-time", default="5m", show_default=True, callback=_duration, help="Pods that have run for less are not moved.")
@click.option(
    "--maximum-lost-work", default="0s", callback=_duration, help="Pods that would have to repeat more work are not moved, such as 30m."
)
@click.option("--protect-queue", "queues", multiple=True, metavar="QUEUE", help="Pods of this queue are not moved. May be repeated.")
@click.option("--protect-namespace", "namespaces", multiple=True, metavar="NAME", help="Nor those of this namespace. May be repeated.")
@click.option("--now", help="The instant of the plan, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("--apply", "is_applied", is_flag=True, help="Carry the plan out on the live cluster, a node at a time, by evictions.")
@click.option("--patience", default=300, show_default=True, type=click.IntRange(1), help="With --apply: how many seconds a node may take.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def defrag(
    inputs: Inputs,
    most: int,
    minimum_run_time: Duration,
    maximum_lost_work: Duration,
    queues: tuple[str, ...],
    namespaces: tuple[str, ...],
    now: str | None,
    is_applied: bool,
    patience: int,
    output: str,
) -> None:
    """Which pods would move where, so that nodes become empty; what that gains, and what it costs.

    Reads files with -f, else a live cluster, to which nothing is written without --apply. With it, node after node is cordoned, its pods
    are evicted (so PodDisruptionBudgets hold), and the node is uncordoned when their successors run. It stops as soon as the cluster is
    not as planned.
    """
    moment = inputs.moment(now)
    given = inputs.or_cluster()
    if is_applied and not given.from_cluster:
        raise click.UsageError("--apply is for a live cluster, not for files or recordings")
    cluster, policy = load(given, moment)
    for queue in queues:
        if queue not in cluster.queues:
            raise InputError(f'there is no queue "{queue}"{did_you_mean(queue, cluster.queues)}', where="--protect-queue")
    rules = MoveRules(
        moves_per_cycle=most,
        minimum_run_time=minimum_run_time,
        maximum_lost_work=maximum_lost_work,
        protected_queues=[*queues],
        protected_namespaces=[*namespaces],
    )
    plan = plan_of(cluster, policy, moment, rules, HttpWorld())
    say(json_text(plan) if output == "json" else defragmentation(plan))
    if is_applied:
        remote = given.remote or Remote(given.kubeconfig, given.context, "")
        remote.run(lambda client: _Execution(client, plan, cluster, patience).run())


class _Stopped(Exception):
    """The cluster is not as planned."""


class _Execution:
    """The plan, carried out node by node. Emptied nodes stay cordoned until the end, so that nobody comes back to them."""

    def __init__(self, client: Client, plan: Defrag, cluster: Cluster, patience_s: float) -> None:
        self._client = client
        self._plan = plan
        self._uids = {move.pod: cluster.tasks[move.pod].uid for step in plan.steps for move in step.moves}
        self._patience_s = patience_s
        self._cordoned: list[str] = []
        self._empty = {*plan.idle}  #: nodes on which no pod is to be

    async def run(self) -> None:
        steps = self._plan.steps
        try:
            for number, step in enumerate(steps, 1):
                where = f"node {step.node} ({number} of {len(steps)})"
                try:
                    await self._carry_out(step)
                except _Stopped as stopped:
                    raise click.ClickException(f"stopped at {where}: {stopped}") from None
                say(f"emptied {where}: {counted(len(step.moves), 'pod runs', 'pods run')} elsewhere")
        finally:
            for name in self._cordoned:
                await self._cordon(name, False)

    async def _carry_out(self, step: EmptiedNode) -> None:
        uids = {move.pod: self._uids[move.pod] for move in step.moves}
        pods = await _pods(self._client, uids)
        self._look_at(step, uids, {pod["metadata"]["uid"]: pod for pod in pods})
        for name in dict.fromkeys(move.node for move in step.moves):
            if (await self._node(name))["spec"].get("unschedulable"):
                raise _Stopped(f"node {name}, to which pods would go, is cordoned")
        before = _running(pods, {_owner(pod) for pod in pods if pod["metadata"]["uid"] in uids.values()})
        known = {pod["metadata"]["uid"] for pod in pods}
        if not (await self._node(step.node))["spec"].get("unschedulable"):
            self._cordoned.append(step.node)
            await self._cordon(step.node, True)
        self._empty.add(step.node)
        for name, uid in uids.items():
            await self._evict(name, uid)
        await self._until_all_run(uids, known, before)

    @staticmethod
    def _look_at(step: EmptiedNode, uids: dict[str, str], there: dict[str, Any]) -> None:
        """Whether the pods to be moved are where they were."""
        for name, uid in uids.items():
            pod = there.get(uid)
            if pod is None or pod["spec"].get("nodeName") != step.node or pod["metadata"].get("deletionTimestamp"):
                raise _Stopped(f"pod {name} is not on {step.node} any more")

    async def _evict(self, name: str, uid: str) -> None:
        namespace, _, pod = name.partition("/")
        body = {"metadata": {"name": pod, "namespace": namespace}, "deleteOptions": {"preconditions": {"uid": uid}}}
        try:
            await self._client.create(PODS, EVICTION | body, namespace, name=pod, subresource="eviction")
        except ApiError as error:
            raise _Stopped(f"pod {name} is not evicted: {error.message}") from None

    async def _until_all_run(self, uids: dict[str, str], known: set[str], before: Counter[str]) -> None:
        """Wait until the pods are gone, and as many of their owners run as before, on nodes that are in use."""
        for _ in range(int(self._patience_s / POLL_S) + 1):
            pods = await _pods(self._client, uids)
            for pod in pods:
                node = pod["spec"].get("nodeName", "")
                if _owner(pod) in before and pod["metadata"]["uid"] not in known and node in self._empty:
                    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                    raise _Stopped(f"pod {name} went to node {node}, which was to stay empty (does the configuration spread pods?)")
            running = _running(pods, before)
            if not any(pod["metadata"]["uid"] in uids.values() for pod in pods) and all(running[each] >= before[each] for each in before):
                return
            await asyncio.sleep(POLL_S)
        raise _Stopped(f"after {self._patience_s:g} s not all of its pods run elsewhere")

    async def _node(self, name: str) -> dict[str, Any]:
        try:
            return as_dict(await self._client.get(NODES, ObjectRef(name)))
        except ApiError as error:
            raise _Stopped(f"node {name}: {error.message}") from None

    async def _cordon(self, name: str, unschedulable: bool) -> None:
        await self._client.patch(NODES, ObjectRef(name), {"spec": {"unschedulable": unschedulable or None}}, PatchType.MERGE)


async def _pods(client: Client, names: Iterable[str]) -> list[dict[str, Any]]:
    found = []
    for namespace in sorted({name.partition("/")[0] for name in names}):
        async for page in client.pages(ListScope(PODS, namespace)):
            found += [msgspec.json.decode(item) for item in page.items]
    return found


def _owner(pod: dict[str, Any]) -> str:
    """The uid of the pod's controller; that of the pod if it has none."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), str(pod["metadata"]["uid"]))


def _running(pods: Iterable[dict[str, Any]], owners: Iterable[str]) -> Counter[str]:
    """How many pods of each of these owners run and are not on their way out."""
    of = set(owners)
    return Counter(
        owner
        for pod in pods
        if (owner := _owner(pod)) in of and pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    )
