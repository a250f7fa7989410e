"""`python -m bench.soak --pods 100000`: gangs come and go, everything fails now and then, nothing may be lost, doubled or kept.

The API server with its journal and two replicas of the scheduler run, each in a process of its own. Between them is the proxy of the tests,
which spoils some calls and watches of every kind. Ten times a replica is killed, five times the server; a process that ends is started
again. Gangs are created, seen bound, and deleted. Checked are: every gang is bound whole; no pod moves from one node to another; no node
holds more than it can; what the server has acknowledged survives its end; memory in the last third is about that of the second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pumice.api.kinds import NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.known_versions import Deleted
from pumice.client.reflector import Reflector, dict_metadata
from pumice.client.resolve_access import find
from pumice.client.transport import ListScope, PatchType, as_dict
from pumice.live.clock import WallClock
from pumice.live.scheduler.required_queues import make_queues
from tests.live.fault_proxy import FaultProxy
from tests.ports import free_port

PLACE = "soak"
NODE_COUNT, NODE_CPU = 40, 16
LARGEST_GANG = 20
AT_ONCE = 30  #: number of gangs at a time, enough that some of them wait for room
REPLICA_KILLS, SERVER_KILLS = 10, 5
STALLED_S = 300.0
EVENT_TTL_S = 15  #: much shorter than the run, so that the number of kept events does not grow
SHORT = ("--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s")


class Program:
    """A process that is started again whenever it ends."""

    def __init__(self, log: Path, *command: str) -> None:
        self.starts = 0
        self._command = command
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        try:
            while True:
                with self._log.open("ab") as out:
                    self._process = await asyncio.create_subprocess_exec(*self._command, stdout=out, stderr=out)
                self.starts += 1
                await self._process.wait()
                await asyncio.sleep(0.5)
        finally:
            if self._process is not None and self._process.returncode is None:
                self._process.terminate()
                await self._process.wait()

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    def untrue(self) -> list[str]:
        """What its log says of a kept state that differed from a recount."""
        return [line for line in self._log.read_text(errors="replace").splitlines() if line.startswith("AssertionError")]

    def mib(self) -> float:
        """The resident memory of the process at this moment, in MiB; 0 while the process is down."""
        with contextlib.suppress(OSError, StopIteration, AttributeError):
            lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()  # type: ignore[union-attr]
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
        return 0.0


class Watchman:
    """Checks every change of a pod, and collects the breaches of the rules that pods do not move and no node holds too much."""

    def __init__(self) -> None:
        self.breaches: list[str] = []
        self.placed: dict[str, str] = {}  #: the node of each pod, by the pod's name
        self._used: Counter[str] = Counter()
        self.news = asyncio.Event()

    def take(self, change: Any) -> None:
        if isinstance(change, Deleted):
            node = self.placed.pop(change.name, "")
            self._used[node] -= 1
            return
        name, node = change.object["metadata"]["name"], change.object["spec"].get("nodeName") or ""
        before = self.placed.get(name, "")
        if before and before != node:
            self.breaches.append(f"{name} went from {before} to {node or 'nowhere'}")
        if node and not before:
            self.placed[name] = node
            self._used[node] += 1
            if self._used[node] > NODE_CPU:
                self.breaches.append(f"{node} holds {self._used[node]} of {NODE_CPU}")
            self.news.set()


async def insist(call: Callable[[], Awaitable[Any]], done: int = 0) -> None:
    """Repeat the call until the server answers it. After a try without an answer, an error with the code `done` means that an earlier try
    succeeded; without such a try it is an error like any other. Raises ApiError if its code is below 429."""
    unsure = False
    while True:
        try:
            await call()
            return
        except NoAnswer:
            unsure = True
        except ApiError as error:
            if unsure and error.code == done:
                return
            if error.code < 429:
                raise
        await asyncio.sleep(0.2)


class Soak:
    """One run of the soak test: its programs, its gangs and what was measured. See the module docstring."""

    def __init__(self, pods: int, seed: int, rate: float) -> None:
        self.done = 0
        self.watchman = Watchman()
        self.memory: dict[str, list[tuple[int, float]]] = {"scheduler": [], "API server": []}
        self.faults: Counter[str] = Counter()
        self.started_at = time.monotonic()
        self._pods, self._seed, self._rate = pods, seed, rate
        self._chance = random.Random(seed)
        self._made = 0

    async def run(self, folder: Path) -> None:
        port = free_port()
        kubeconfig = folder / "kubeconfig"
        serving = ("-m", "pumice.cluster.apiserver", "--plain", f"--port={port}", f"--event-ttl={EVENT_TTL_S}")
        serving += (f"--data={folder / 'data'}", f"--kubeconfig={kubeconfig}")
        self.server = Program(folder / "server.log", sys.executable, *serving)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(self.server.run())]
            while not kubeconfig.exists():
                await asyncio.sleep(0.1)
            async with Client(find(str(kubeconfig))) as client, FaultProxy(f"http://127.0.0.1:{port}", self._seed, self._rate) as proxy:
                self.faults = proxy.done
                await self._set_up(client)
                flags = (
                    f"--kubeconfig={kubeconfig}",
                    f"--master={proxy.url}",
                    f"--leader-elect-resource-namespace={PLACE}",
                    "--check-state-every=1000",
                    *SHORT,
                )
                command = (sys.executable, "-m", "pumice", "scheduler", *flags)
                self.replicas = [Program(folder / f"scheduler-{name}.log", *command) for name in "ab"]
                beside += [tasks.create_task(replica.run()) for replica in self.replicas]
                reflector = Reflector(client, ListScope(PODS, PLACE), as_dict, self.watchman.take, metadata=dict_metadata)
                beside += [tasks.create_task(work) for work in (reflector.run(), self._weigh(), self._break())]
                await asyncio.gather(*(self._churn(client) for _ in range(AT_ONCE)))
                for task in beside[1:]:
                    task.cancel()
                await asyncio.gather(*beside[1:], return_exceptions=True)
            beside[0].cancel()
        self.watchman.breaches += [line for replica in self.replicas for line in replica.untrue()]

    async def _set_up(self, client: Client) -> None:
        await insist(lambda: client.create(NAMESPACES, {"metadata": {"name": PLACE}}), 409)
        await make_queues(client, "default", WallClock())
        opened = {"status": {"state": "Open"}}
        await insist(lambda: client.patch(QUEUES, ObjectRef("default"), opened, PatchType.MERGE, subresource="status"))
        amounts = {"cpu": str(NODE_CPU), "memory": "256Gi", "pods": "256"}
        for number in range(NODE_COUNT):
            node = {"metadata": {"name": f"n{number}"}, "status": {"allocatable": amounts, "capacity": amounts}}
            await insist(lambda n=node: client.create(NODES, n), 409)  # type: ignore[misc]

    # ---- the gangs that come and go

    async def _churn(self, client: Client) -> None:
        while self._made < self._pods:
            size = min(self._chance.randint(1, LARGEST_GANG), self._pods - self._made)
            first, self._made = self._made, self._made + size
            await self._gang(client, f"g{first}", size)
            self.done += size

    async def _gang(self, client: Client, group: str, size: int) -> None:
        """Create a gang, wait until all its pods are bound, and delete it. Raises RuntimeError if they are not bound within STALLED_S."""
        spec = {"minMember": size, "queue": "default"}
        made = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "metadata": {"name": group}, "spec": spec}
        await insist(lambda: client.create(POD_GROUPS, made, PLACE), 409)
        names = [f"{group}-{number}" for number in range(size)]
        for name in names:
            await insist(lambda n=name: client.create(PODS, _pod(n, group), PLACE), 409)  # type: ignore[misc]
        since = time.monotonic()
        while not all(name in self.watchman.placed for name in names):
            if time.monotonic() - since > STALLED_S:
                here = sum(name in self.watchman.placed for name in names)
                raise RuntimeError(f"{group}: {here} of {size} pods were bound in {STALLED_S:.0f} s")
            self.watchman.news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.watchman.news.wait(), 1.0)
        for name in names:
            await insist(lambda n=name: client.delete(PODS, ObjectRef(n, PLACE), grace_s=0), 404)  # type: ignore[misc]
        await insist(lambda: client.delete(POD_GROUPS, ObjectRef(group, PLACE)), 404)

    # ---- faults and measurements beside the gangs

    async def _break(self) -> None:
        kills = [(self._pods * (n + 1) // (REPLICA_KILLS + 1), n % 2) for n in range(REPLICA_KILLS)]
        kills += [(self._pods * (2 * n + 1) // (2 * SERVER_KILLS), 2) for n in range(SERVER_KILLS)]
        programs = [*self.replicas, self.server]
        waiting = deque(sorted(kills))
        while waiting:
            if self.done >= waiting[0][0]:
                programs[waiting.popleft()[1]].kill()
                print(f"{self.done} pods after {time.monotonic() - self.started_at:.0f} s", flush=True)
            await asyncio.sleep(0.1)

    async def _weigh(self) -> None:
        while True:
            self.memory["scheduler"].append((self.done, max(replica.mib() for replica in self.replicas)))
            self.memory["API server"].append((self.done, self.server.mib()))
            await asyncio.sleep(1)

    def thirds(self, program: str) -> list[float]:
        """The median memory of a program, in MiB, in each third of the run, by the number of pods that are done."""
        seen = [[mib for done, mib in self.memory[program] if mib and third <= 3 * done / self._pods < third + 1] for third in range(3)]
        return [statistics.median(each) if each else 0.0 for each in seen]

    def report(self) -> list[str]:
        """Print what was measured. Return what was wrong, one line for each fault."""
        took = time.monotonic() - self.started_at
        print(f"{self.done} pods in {took:.0f} s; {sum(self.faults.values())} faults of {len(self.faults)} kinds by the proxy")
        print(f"starts: replicas {[replica.starts for replica in self.replicas]}, API server {self.server.starts}")
        wrong = self.watchman.breaches[:10]
        for program in self.memory:
            first, second, last = self.thirds(program)
            print(f"memory of the {program} by thirds: {first:.0f}, {second:.0f}, {last:.0f} MiB")
            if last > 1.2 * second + 5:
                wrong.append(f"the {program} grew from {second:.0f} to {last:.0f} MiB")
        return wrong


def _pod(name: str, group: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"containers": [container], "schedulerName": "volcano", "automountServiceAccountToken": False}
    return {"metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}}, "spec": spec}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.02, help="the part of calls that the proxy spoils (0.02)")
    parser.add_argument("--folder", type=Path, help="an empty folder for the journal and the programs' logs, which stay there")
    options = parser.parse_args()
    logging.getLogger("aiohttp.server").disabled = True  # the proxy would log errors while the server is down
    soak = Soak(options.pods, options.seed, options.rate)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(soak.run(folder))
    wrong = soak.report()
    for each in wrong:
        print(f"WRONG: {each}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
