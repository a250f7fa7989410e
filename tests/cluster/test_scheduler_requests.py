"""What `pumice scheduler` asks of the API server, by the server's audit log: what Volcano's asks, and nothing when idle."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from live_scheduler import PREEMPTING, events
from realcluster import USERS, RealCluster
from replicas import replica, stage_for, until_leader
from stage import until_true

from pumice.client.client import Client

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

WRITES = {
    "create leases",
    "update leases",
    "create pods/binding",
    "update pods/status",
    "delete pods",
    "update podgroups",
    "update queues/status",
    "create queues",
    "create events",
    "patch events",
}

#: kinds that this server may not know yet
ASKED_FOR = {f"{verb} {kind}" for verb in ("list", "watch") for kind in ("numatopologies", "hypernodes", "devicetaintrules")}
IDLE = {"update leases", *ASKED_FOR}


class Audit:
    """Counts what the scheduler's user asked for since the last look."""

    def __init__(self, cluster: RealCluster) -> None:
        self._log = cluster.audit_log
        self._place = self._log.stat().st_size

    def asked(self) -> Counter[str]:
        found: Counter[str] = Counter()
        with self._log.open() as log:
            log.seek(self._place)
            for line in log:
                entry = json.loads(line)
                place = entry.get("objectRef") or {}
                if entry["user"]["username"] == USERS["scheduler"][0] and place.get("resource"):
                    found[" ".join((entry["verb"], "/".join(filter(None, (place["resource"], place.get("subresource"))))))] += 1
            self._place = log.tell()
        return found

    async def until_quiet(self) -> Counter[str]:
        """What was asked for until there were two seconds as those in which nothing happens."""
        found, more = Counter[str](), self.asked()
        while more.keys() - IDLE:
            found += more
            await asyncio.sleep(2.0)
            more = self.asked()
        return found


def test_it_asks_what_volcanos_scheduler_asks_and_no_more(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        folder = tmp_path / "conf"
        folder.mkdir()
        (folder / "scheduler.conf").write_text(PREEMPTING)
        audit = Audit(cluster)
        async with stage_for(client, namespace) as stage:
            low, high = await stage.priority_class("low", 10), await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            async with replica(cluster, stage, tmp_path, f"--scheduler-conf={folder / 'scheduler.conf'}") as process:
                holder = await until_leader(client, namespace)
                await stage.gang("low", pods=4, cpu=1, minimum=1, priority_class=low, priorityClassName=low)
                await stage.until_placed("low", 4)
                await stage.until_phase("low", "Running")
                seen = await audit.until_quiet()
                assert (seen["create pods/binding"], seen["create leases"]) == (4, 1)
                assert seen["update podgroups"] <= 6 and seen["update queues/status"] <= 8

                await asyncio.sleep(4.0)
                idle = audit.asked()
                assert set(idle) <= IDLE, "nobody waits and nothing happens"

                await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high)
                await stage.until_placed("high", 2)
                await stage.until_phase("high", "Running")
                busy = audit.asked()
                assert (busy["delete pods"], busy["create pods/binding"]) == (2, 2)

                used = set(seen + idle + busy)
                assert {each for each in used if each.split()[0] not in ("get", "list", "watch")} <= WRITES
                assert {each for each in used if each.startswith("get ")} <= {"get queues", "get leases", "get pods"}
                lists = {each for each in idle + busy if each.startswith("list ")}
                assert lists <= ASKED_FOR, "after the start everything is told by watches"

                async def told() -> bool:
                    found = [e for e in await events(client, namespace) if e["reason"] == "LeaderElection"]
                    return any(e["message"] == f"{holder} became leader" and e["involvedObject"]["kind"] == "Lease" for e in found)

                await until_true(told)
                assert "403 Forbidden" not in process.log.read_text()

    play(story)
