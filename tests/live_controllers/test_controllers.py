"""The controllers on a cluster that is spoken with over HTTP."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any, ClassVar

import pytest

from pumice.api import kinds
from pumice.api.kinds import POD_GROUPS, SECRETS, Kind, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError, KubeError, NoAnswer
from pumice.cluster.apiserver import DeleteOptions, PatchRequest
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.job.plugins import SshKeyPair
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from pumice.live.controllers.loop import Controllers
from pumice.live.controllers.object_writes import AT_ONCE
from pumice.live.lifecycle import LostLead
from tests.live.memory import MemoryServer
from tests.live.virtual import VirtualClock, run as virtual
from tests.live_controllers.scene import JOBS, QUEUES, Scene, play, until, working


def test_a_job_lives_from_its_creation_to_its_completion() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            stage.job("life", replicas=3, plugins={"svc": [], "ssh": [], "env": []})
            await until(lambda: stage.enqueue("life"))
            await until(lambda: stage.pods("life") == ["life-w-0", "life-w-1", "life-w-2"])
            assert stage.find("services", "life") and stage.find("configmaps", "life-svc") and stage.find("secrets", "life-ssh")
            stage.pods_become("Running", "life")
            await until(lambda: stage.phase("life") == "Running")
            stage.pods_become("Succeeded", "life")
            await until(lambda: stage.phase("life") == "Completed")
            assert (stage.find(JOBS, "life") or {})["status"]["succeeded"] == 3

    play(story)


def test_queues_open_and_commands_close_them() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            await until(lambda: ((stage.find(QUEUES, "default", "") or {}).get("status") or {}).get("state") == "Open")
            assert (stage.find(QUEUES, "default", "") or {})["spec"]["parent"] == "root"
            stage.order("Queue", "scheduling.volcano.sh/v1beta1", "default", "CloseQueue")
            await until(lambda: (stage.find(QUEUES, "default", "") or {})["status"]["state"] == "Closed")
            await until(lambda: stage.all("commands.bus.volcano.sh") == [])

    play(story)


def test_a_suspended_job_gives_up_its_pods_and_a_resumed_one_gets_them_back() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            stage.job("pause")
            await until(lambda: stage.enqueue("pause"))
            await until(lambda: len(stage.pods("pause")) == 2)
            stage.pods_become("Running", "pause")
            await until(lambda: stage.phase("pause") == "Running")
            stage.order("Job", "batch.volcano.sh/v1alpha1", "pause", "AbortJob")
            await until(lambda: stage.let_go() or stage.phase("pause") == "Aborted")
            assert stage.pods("pause") == []
            stage.order("Job", "batch.volcano.sh/v1alpha1", "pause", "ResumeJob")
            await until(lambda: stage.enqueue("pause") and len(stage.pods("pause")) == 2)

    play(story)


class Deaf(Client):
    """Answers deletions of Commands with `answers` as long as there are some: all but 403 though it was done."""

    answers: ClassVar[list[KubeError]] = []

    async def delete(self, resource: Kind, ref: ObjectRef, **options: Any) -> None:
        answer = self.answers.pop() if resource.kind == "Command" and self.answers else None
        if not (isinstance(answer, ApiError) and answer.code == 403):
            await super().delete(resource, ref, **options)
        if answer is not None:
            raise answer


@pytest.mark.parametrize("answer", [NoAnswer("lost", sent=True), ApiError(409), ApiError(410), ApiError(500), ApiError(403)], ids=str)
def test_an_order_is_followed_though_nobody_says_that_it_was_taken(answer: KubeError) -> None:
    async def story(stage: Scene) -> None:
        async with Deaf(stage.access) as client, working(client):
            client.answers.append(answer)
            stage.job("pause")
            await until(lambda: stage.enqueue("pause"))
            await until(lambda: len(stage.pods("pause")) == 2)
            stage.order("Job", "batch.volcano.sh/v1alpha1", "pause", "AbortJob")
            await until(lambda: stage.let_go() or stage.phase("pause") == "Aborted")
            assert not client.answers and not stage.all("commands.bus.volcano.sh")

    play(story)


def test_a_plain_pod_of_the_scheduler_gets_a_group() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            pod = stage.create(
                "pods", {"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}
            )
            group = f"podgroup-{pod['metadata']['uid']}"
            await until(lambda: stage.find("podgroups.scheduling.volcano.sh", group))
            await until(
                lambda: ((stage.find("pods", "p") or {})["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name") == group
            )

    play(story)


def test_events_are_told_under_volcanos_name() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            stage.order("Queue", "scheduling.volcano.sh/v1beta1", "root", "CloseQueue")
            await until(lambda: [event for event in stage.all("events") if event["reason"] == "CommandRefused"])
            assert stage.all("events")[0]["source"] == {"component": "vc-controller-manager"}

    play(story)


class Counted:
    """A client that knows how many creations were under way at most."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.under_way = self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create(self, *arguments: Any, **options: Any) -> bytes:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            answer: bytes = await self._client.create(*arguments, **options)
        finally:
            self.under_way -= 1
        return answer


def test_many_pods_of_one_job_are_made_side_by_side_and_each_once() -> None:
    async def story(stage: Scene) -> None:
        counted = Counted(stage.client)
        async with working(counted) as controllers:  # type: ignore[arg-type]
            stage.job("many", replicas=200)
            await until(lambda: stage.enqueue("many"))
            await until(lambda: len(stage.pods("many")) == 200)
            await asyncio.sleep(0.3)
            assert len(stage.pods("many")) == 200
            assert len(list(controllers.cache.all(kinds.POD))) == 200
        assert counted.most == AT_ONCE

    play(story)


def test_a_successor_takes_up_the_work_where_it_lies() -> None:
    async def story(stage: Scene) -> None:
        async with working(stage.client):
            stage.job("handed", plugins={"ssh": []})
            await until(lambda: stage.enqueue("handed"))
            await until(lambda: len(stage.pods("handed")) == 2)
        key = (stage.find("secrets", "handed-ssh") or {})["data"]
        stage.pods_become("Running", "handed")
        async with working(stage.client):
            await until(lambda: stage.phase("handed") == "Running")
            assert (stage.find("secrets", "handed-ssh") or {})["data"] == key

    play(story)


def test_an_object_that_baffles_us_at_the_start_ends_the_program_instead_of_keeping_it_waiting() -> None:
    async def story() -> None:
        api = MemoryServer()
        api.put(kinds.QUEUES, "odd", metadata={"ownerReferences": [{"name": "without a uid"}]})
        with pytest.raises(KeyError):
            await Controllers(api, volcano_controllers(rsa_key_pair), VirtualClock()).run()

    virtual(story())


def test_without_the_lead_nothing_is_written() -> None:
    async def story(stage: Scene) -> None:
        with pytest.raises(LostLead):
            async with working(stage.client.fenced(lambda: False)) as controllers:
                await until(lambda: controllers._failure)
                controllers._turn()
        assert not (stage.find(QUEUES, "default", "") or {}).get("status", {}).get("state")

    play(story)


class NoPatch:
    """A client whose role allows no patch of some resources, as Volcano's own."""

    def __init__(self, client: Any, *plurals: str) -> None:
        self._client = client
        self._plurals = plurals
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, resource: Any, *arguments: Any, **options: Any) -> bytes:
        if resource.plural in self._plurals:
            self.refused += 1
            raise ApiError(403, "Forbidden", f"cannot patch {resource.plural}")
        answer: bytes = await self._client.patch(resource, *arguments, **options)
        return answer


class NoReading(NoPatch):
    """A client whose role does not let it list or watch some resources."""

    def pages(self, scope: Any, **options: Any) -> Any:
        return self._refuse(scope) if scope.resource.plural in self._plurals else self._client.pages(scope, **options)

    async def _refuse(self, scope: Any) -> Any:
        raise ApiError(403, "Forbidden", f"cannot list {scope.resource.plural}")
        yield


def test_what_the_role_does_not_let_us_read_is_done_without() -> None:
    async def story(stage: Scene) -> None:
        limited = NoReading(stage.client, "hypernodes", "networkpolicies")
        async with working(limited):  # type: ignore[arg-type]
            stage.job("blind", plugins={"svc": []})
            await until(lambda: stage.enqueue("blind") and len(stage.pods("blind")) == 2)
            assert stage.find("networkpolicies.networking.k8s.io", "blind")

    play(story, limit_s=20)


def test_owners_that_may_be_read_and_not_watched_are_asked_for_what_their_pods_inherit() -> None:
    async def story(stage: Scene) -> None:
        spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
        notes = {"volcano.sh/preemptable": "true", "scheduling.volcano.sh/group-min-member": "2"}
        body = {"selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}}, "spec": spec}}
        made = stage.create("daemonsets.apps", {"metadata": {"name": "d", "annotations": notes}, "spec": body})
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": made["metadata"]["uid"], "controller": True}
        async with working(NoReading(stage.client, "daemonsets", "statefulsets")):  # type: ignore[arg-type]
            owners = [owner, {**owner, "kind": "StatefulSet", "name": "gone", "uid": "uid-gone", "controller": False}]
            stage.create("pods", {"metadata": {"name": "d-0", "labels": {"app": "d"}, "ownerReferences": owners}, "spec": spec})
            await until(lambda: stage.all("podgroups.scheduling.volcano.sh"))
        (group,) = stage.all("podgroups.scheduling.volcano.sh")
        assert group["spec"]["minMember"] == 2 and group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}

    play(story)


def test_keys_that_may_be_read_and_not_watched_are_made_once() -> None:
    made: list[int] = []

    def key_pairs() -> SshKeyPair:
        made.append(threading.get_ident())
        return SshKeyPair("private", "public")

    async def story(stage: Scene) -> None:
        limited: Any = NoReading(stage.client, "secrets")
        async with working(limited, volcano_controllers(key_pairs)):
            stage.job("keys", plugins={"ssh": []})
            await until(lambda: stage.enqueue("keys") and len(stage.pods("keys")) == 2)
        async with working(limited, volcano_controllers(key_pairs)):
            stage.pods_become("Running", "keys")
            await until(lambda: stage.phase("keys") == "Running")
            stage.pods_become("Succeeded", "keys")
            await until(lambda: stage.phase("keys") == "Completed" and not stage.all("secrets"))
        assert len(made) == 1 and threading.get_ident() not in made  # on a thread: nobody waits meanwhile

    play(story)


class Behind(NoPatch):
    """A client whose first watch of a kind shows nothing until `forgotten`, when its position is."""

    def __init__(self, client: Any, plural: str) -> None:
        super().__init__(client)
        self.forgotten = asyncio.Event()
        self._late = {plural}

    def watch(self, scope: Any, **options: Any) -> Any:
        if scope.resource.plural not in self._late:
            return self._client.watch(scope, **options)
        self._late.clear()
        return self._forget()

    async def _forget(self) -> Any:
        await self.forgotten.wait()
        raise ApiError(410, "Expired", "too old resource version")
        yield


def test_pods_that_came_and_went_while_the_watch_was_behind_are_made_again() -> None:
    async def story(stage: Scene) -> None:
        behind = Behind(stage.client, "pods")
        async with working(behind):  # type: ignore[arg-type]
            stage.job("lost")
            await until(lambda: stage.enqueue("lost") and len(stage.pods("lost")) == 2)
            for name in stage.pods("lost"):
                stage.store.delete("pods", name, "default", DeleteOptions(grace_s=0))
            behind.forgotten.set()
            await until(lambda: len(stage.pods("lost")) == 2)

    play(story)


def test_under_a_role_without_patch_objects_are_updated_whole(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice.live.controllers.object_writes")

    async def story(stage: Scene) -> None:
        limited = NoPatch(stage.client, "queues", "jobs", "podgroups")
        async with working(limited):  # type: ignore[arg-type]
            await until(lambda: ((stage.find(QUEUES, "default", "") or {}).get("status") or {}).get("state") == "Open")
            stage.job("whole")
            await until(lambda: stage.enqueue("whole"))
            stage.pods_become("Running", "whole")
            await until(lambda: len(stage.pods("whole")) == 2)
            stage.pods_become("Running", "whole")
            await until(lambda: stage.phase("whole") == "Running")
        assert 0 < limited.refused <= 4, "once for each place that may not be patched"

    play(story)
    updated = {message.partition(" ")[0] for message in caplog.messages if "may not be patched; they are updated whole" in message}
    assert updated == {"queues", "queues/status", "jobs/status"}


def test_of_secrets_only_those_of_jobs_are_read() -> None:
    async def story(stage: Scene) -> None:
        stage.create("secrets", {"metadata": {"name": "private"}})
        async with working(stage.client) as controllers:
            stage.job("secretive", plugins={"ssh": []})
            await until(lambda: stage.find("secrets", "secretive-ssh"))
            await asyncio.sleep(0.1)
            assert [secret["metadata"]["name"] for secret in controllers.cache.all(kinds.SECRET)] == ["secretive-ssh"]
        assert SECRETS.plural == "secrets" and POD_GROUPS.plural == "podgroups"

    play(story)


def test_a_job_that_is_submitted_again_gets_objects_of_its_own() -> None:
    """Also if Volcano's controllers made those of the job before it, without the label by which we are told that they are gone."""
    made = {"services": "again", "configmaps": "again-svc", "secrets": "again-ssh", "networkpolicies.networking.k8s.io": "again"}

    async def story(stage: Scene) -> None:
        async with working(stage.client):
            stage.job("again", plugins={"svc": [], "ssh": []})
            await until(lambda: stage.enqueue("again") and stage.pods("again"))
        for storage, name in made.items():
            stage.store.patch(storage, name, PatchRequest("merge", {"metadata": {"labels": None}}), "default")
        async with working(stage.client) as loop:
            stage.pods_become("Running", "again")
            await until(lambda: loop.cache.get(kinds.SERVICE, "default", "again"))
            stage.store.delete(JOBS, "again", "default")
            await until(lambda: not any(stage.find(storage, name) for storage, name in made.items()))
            stage.let_go()
            stage.job("again", plugins={"svc": [], "ssh": []})
            await until(lambda: stage.enqueue("again") and all(stage.find(storage, name) for storage, name in made.items()))

    play(story)


def test_a_job_whose_pods_are_refused_tells_why_and_goes_on_when_they_are_not() -> None:
    async def story(stage: Scene) -> None:
        quota = stage.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
        async with working(stage.client):
            stage.job("refused")
            await until(lambda: stage.enqueue("refused"))
            await until(lambda: [event for event in stage.all("events") if event["reason"] == "FailedCreate"])
            (event,) = (event for event in stage.all("events") if event["reason"] == "FailedCreate")
            assert (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["type"]) == ("Job", "refused", "Warning")
            assert event["message"].startswith("Error creating: ") and "quota" in event["message"]
            stage.store.delete("resourcequotas", quota["metadata"]["name"], "default", DeleteOptions())
            await until(lambda: len(stage.pods("refused")) == 2)

    play(story)


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        (403, "exceeded quota", ["job default/told: it is tried again, with pauses that grow: 403 Refused: exceeded quota"]),
        (409, "the object has been modified", []),
        (503, "no disk", ["job default/told: it is tried again, with pauses that grow: 503 Refused: no disk"]),
    ],
)
def test_the_log_names_the_object_that_somebody_may_have_to_mend_once(
    code: int, reason: str, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stage: Scene) -> None:
        limited = Refusing(stage.client, code, "pods", reason=reason)
        async with working(limited):  # type: ignore[arg-type]
            stage.job("told", replicas=1)
            await until(lambda: stage.enqueue("told"))
            await until(lambda: limited.refused >= 8)

    caplog.set_level(logging.INFO)
    play(story)
    about = [record.getMessage() for record in caplog.records if record.name.endswith("controllers.loop")]
    assert [line for line in about if not line.startswith("the cluster was read")] == told


def test_nothing_is_tried_again_in_a_namespace_that_is_being_deleted(caplog: pytest.LogCaptureFixture) -> None:
    """It takes the job away as well: to the last line at -v=4 nothing is told of it."""
    ending = "unable to create new content in namespace default because it is being terminated"

    async def story(stage: Scene) -> None:
        limited = Refusing(stage.client, 403, "pods", "events", reason=ending)
        async with working(limited):  # type: ignore[arg-type]
            stage.job("left", replicas=1)
            await until(lambda: stage.enqueue("left"))
            await until(lambda: limited.refused > 0)
            await asyncio.sleep(0.5)  # the event about it is refused, too
            limited.refused = 0
            await asyncio.sleep(0.5)
            assert limited.refused == 0
            stage.store.delete(JOBS, "left", "default")
            await until(lambda: not stage.all("podgroups"))

    caplog.set_level(logging.DEBUG)
    play(story)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("pumice.") and "left" in record.getMessage()]
    assert lines == []


class Refusing(NoPatch):
    """A client whose server answers creations of some resources with a failure of this code."""

    def __init__(self, client: Any, code: int, *plurals: str, reason: str = "it cannot be made") -> None:
        super().__init__(client, *plurals)
        self.code, self.reason = code, reason

    async def create(self, resource: Any, *arguments: Any, **options: Any) -> bytes:
        if resource.plural in self._plurals:
            self.refused += 1
            raise ApiError(self.code, "Refused", self.reason)
        answer: bytes = await self._client.create(resource, *arguments, **options)
        return answer


@pytest.mark.parametrize(("code", "ends"), [(403, True), (503, False)])
def test_a_job_ends_by_refusals_and_not_by_a_server_that_is_away(code: int, ends: bool) -> None:
    async def story(stage: Scene) -> None:
        limited = Refusing(stage.client, code, "pods")
        async with working(limited, controllers=volcano_controllers(rsa_key_pair, max_failures=2)):  # type: ignore[arg-type]
            stage.job("tried")
            await until(lambda: stage.enqueue("tried"))
            await until(lambda: stage.phase("tried") == "Terminated" if ends else limited.refused > 8)
            assert (stage.phase("tried") == "Terminated") is ends

    play(story)


class Awakening(NoPatch):
    """A client whose server refuses some writes at first, as an API server does that has just started and knows no roles yet."""

    def __init__(self, client: Any, *plurals: str) -> None:
        super().__init__(client, *plurals)
        self.patched = 0

    async def patch(self, resource: Any, *arguments: Any, **options: Any) -> bytes:
        if resource.plural in self._plurals and self.refused < 4:
            return await super().patch(resource, *arguments, **options)
        self.patched += resource.plural in self._plurals
        answer: bytes = await self._client.patch(resource, *arguments, **options)
        return answer

    async def update(self, resource: Any, *arguments: Any, **options: Any) -> bytes:
        raise ApiError(403, "Forbidden", f"cannot update {resource.plural}")


def test_a_refusal_that_passes_is_not_taken_for_the_role() -> None:
    async def story(stage: Scene) -> None:
        late = Awakening(stage.client, "jobs")
        async with working(late):  # type: ignore[arg-type]
            stage.job("late")
            await until(lambda: stage.enqueue("late") and stage.pods("late"))
            stage.pods_become("Running", "late")
            await until(lambda: stage.phase("late") == "Running")
            assert late.patched

    play(story)


class AtOnce(NoPatch):
    """A client whose deletions of pods wait until so many are under way."""

    def __init__(self, client: Any, count: int) -> None:
        super().__init__(client)
        self._all_there = asyncio.Barrier(count)

    async def delete(self, resource: Any, *arguments: Any, **options: Any) -> bytes:
        if resource.plural == "pods":
            await self._all_there.wait()
        answer: bytes = await self._client.delete(resource, *arguments, **options)
        return answer


def test_the_pods_of_a_job_are_ended_side_by_side() -> None:
    async def story(stage: Scene) -> None:
        async with working(AtOnce(stage.client, 5)):  # type: ignore[arg-type]
            stage.job("many", replicas=5)
            await until(lambda: stage.enqueue("many") and len(stage.pods("many")) == 5)
            stage.order("Job", "batch.volcano.sh/v1alpha1", "many", "AbortJob")
            await until(lambda: stage.let_go() or stage.phase("many") == "Aborted")

    play(story)
