"""The webhooks answer as an API server expects, with certificates that they made and registered themselves."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.api.kinds import ObjectRef
from pumice.cli.main import cli
from pumice.cli.webhooks import hooks_of, rules_of
from pumice.client.certificates import Authority
from pumice.client.client import Backoff
from pumice.cluster.apiserver import PatchRequest
from pumice.controllers.admission import Settings as Rules
from pumice.controllers.admission.webhooks import HOOKS, ClientConfig, configuration
from pumice.live.clock import WallClock
from pumice.live.webhooks import server
from pumice.live.webhooks.served_certificates import RENEWED_S, VALID_DAYS, ClusterSecret
from tests.live.fault_proxy import ODD_LISTS, SCRIPT, FaultProxy, Step
from tests.live_controllers.scene import QUEUES, Scene, play, until
from tests.webhooks.calling import CALLER, HOSTS, LISTER, allow_listing, prepare, review, served

QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {**QUEUE, "metadata": {"name": name}, "spec": {"weight": 1, **spec}}


def job(queue_name: str = "default") -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"queue": queue_name, "minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": template}]}
    return {**JOB, "metadata": {"name": "j", "namespace": "default"}, "spec": spec}


def open_queue(stage: Scene, name: str) -> None:
    stage.store.patch(QUEUES, name, PatchRequest("merge", {"status": {"state": "Open"}}), "", "status")


def test_a_bad_queue_is_refused_with_what_to_write() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage) as call:
            assert (await call("/queues/validate", review("CREATE", queue("good"))))["allowed"]
            response = await call("/queues/validate", review("CREATE", queue("bad", weight=0, parent="nowhere")))
            assert not response["allowed"]
            told = "spec.weight: queue weight must be a positive integer, at most 65535; 0 found"
            assert response["status"] == {"code": 400, "message": told}
            deleted = await call("/queues/validate", review("DELETE", None, queue("default")))
            assert deleted["status"]["message"] == "`default` queue can not be deleted: the scheduler needs it"

    play(story)


def test_defaults_come_back_as_a_patch() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage) as call:
            bare = await call.mutated("/queues/mutate", {**QUEUE, "metadata": {"name": "q"}})
            assert bare["spec"] == {"reclaimable": True, "weight": 1}
            made = await call.mutated("/jobs/mutate", {**JOB, "metadata": {"generateName": "j-"}, "spec": {"tasks": [{"replicas": 2}]}})
            assert made["metadata"] == {"generateName": "j-"}, "the name is the server's to make"
            assert made["spec"]["minAvailable"] == 2 and made["spec"]["tasks"][0]["name"] == "default0"
            unchanged = await call("/queues/mutate", review("CREATE", queue("q", reclaimable=False)))
            assert unchanged == {"uid": "u-1", "allowed": True}

    play(story)


def test_a_queue_made_a_moment_ago_is_known() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage) as call:
            stage.create(QUEUES, queue("fresh"), "")
            open_queue(stage, "fresh")
            assert (await call("/jobs/validate", review("CREATE", job("fresh"), namespace="default", name="j")))["allowed"]
            stage.create(QUEUES, queue("child", parent="fresh"), "")
            assert not (await call("/queues/validate", review("DELETE", None, queue("fresh"))))["allowed"]
            stage.store.delete(QUEUES, "child")
            assert (await call("/queues/validate", review("DELETE", None, queue("fresh"))))["allowed"]

    play(story)


#: few in a row for the two kinds that webhooks read, as the pauses after them grow; a 410 has a kind listed again, for what is left
LIES_OF_LISTS = (
    (*(step for step in SCRIPT if step.of == "list"), Step("watch", "410", 2)),
    (*(Step("list", fault, 1) for fault in ODD_LISTS), Step("watch", "HTML", 1), Step("watch", "410", 2)),
)


@pytest.mark.parametrize("script", LIES_OF_LISTS, ids=["versions and sizes", "odd answers"])
def test_lies_of_the_server_change_no_answer(script: Sequence[Step]) -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with FaultProxy(stage.server.url, 1, 0.0, script) as proxy, served(stage, url=proxy.url) as call:
            stage.create(QUEUES, queue("fresh"), "")
            open_queue(stage, "fresh")
            assert (await call("/jobs/validate", review("CREATE", job("fresh"), namespace="default", name="j")))["allowed"]
            await until(lambda: not proxy.left)
            assert not (await call("/jobs/validate", review("CREATE", job("none"), namespace="default", name="j")))["allowed"]

    play(story, limit_s=120.0)


def test_who_may_only_list_reads_before_every_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        allow_listing(stage)
        async with served(stage, token="lister-token") as call:
            asked = review("CREATE", job("fresh"), namespace="default", name="j")
            assert not (await call("/jobs/validate", asked))["allowed"]
            stage.create(QUEUES, queue("fresh"), "")
            open_queue(stage, "fresh")
            assert (await call("/jobs/validate", asked))["allowed"]
            stage.store.patch(QUEUES, "fresh", PatchRequest("merge", {"status": {"state": "Closed"}}), "", "status")
            assert not (await call("/jobs/validate", asked))["allowed"]

    play(story, users=LISTER)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING], "Volcano's own role is no reason to warn"


def test_rules_follow_the_flags() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        group = {"resourceGroup": "gpu", "object": {"key": "namespace", "value": ["ml"]}, "labels": {"pool": "gpu"}}
        async with served(stage, Rules(scheduler_names=("mine",), resource_groups=(group,))) as call:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
            response = await call("/pods/mutate", review("CREATE", pod, namespace="ml"))
            assert b'"pool":"gpu"' in base64.b64decode(response["patch"])
            assert (await call.mutated("/jobs/mutate", job()))["spec"]["schedulerName"] == "mine"

    play(story)


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', b"\xff"])
def test_what_is_no_review_is_a_bad_request(body: bytes) -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage) as call:
            assert (await call.raw("/queues/validate", body))[0] == 400

    play(story)


def test_only_enabled_paths_are_registered() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage, hooks=hooks_of("/queues/validate")) as call:
            assert (await call.raw("/nodes/validate", b"{}"))[0] == 404
            assert [each["metadata"]["name"] for each in stage.all(VALIDATING)] == ["volcano-admission-service-queues-validate"]

    play(story)


def test_what_volcano_had_enabled_and_left_registered_is_answered() -> None:
    """Volcano 1.8 to 1.11 register webhooks of pods, and who takes its place by kubectl does not remove them: no pod could be made."""

    async def story(stage: Scene) -> None:
        prepare(stage)
        hook = HOOKS["/pods/validate"]
        stage.create(VALIDATING, configuration(hook, CALLER, b"theirs"), "")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": []}}
        async with served(stage, hooks=hooks_of("/queues/validate")) as call:
            assert call.authority(CALLER.configuration(hook)) == call.authority()
            assert (await call(hook.path, review("CREATE", pod)))["allowed"]

    play(story)


def test_an_authority_that_somebody_emptied_is_given_again_and_what_was_deleted_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CHECKED_EVERY_S", 0.05)

    async def story(stage: Scene) -> None:
        prepare(stage)
        hook, other = HOOKS["/queues/validate"], HOOKS["/jobs/validate"]
        name = CALLER.configuration(hook)

        def bundle() -> str:
            return str((stage.find(VALIDATING, name, "") or {})["webhooks"][0]["clientConfig"].get("caBundle") or "")

        async with served(stage, hooks=(hook, other)):
            first = bundle()
            stage.store.delete(VALIDATING, CALLER.configuration(other))
            emptied = {"webhooks": configuration(hook, CALLER, b"")["webhooks"]}
            stage.store.patch(VALIDATING, name, PatchRequest("merge", emptied))
            await until(lambda: bundle() == first)
            assert first and stage.find(VALIDATING, CALLER.configuration(other), "") is None

    play(story)


def test_who_may_not_create_configurations_waits_for_those_of_a_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chart makes the configurations last, and removes them when it is uninstalled; nobody makes them again then."""
    monkeypatch.setattr(server, "BACKOFF", Backoff(0.05, 0.05))

    async def story(stage: Scene) -> None:
        prepare(stage)
        allow_listing(stage, creates=False)
        hook, other = HOOKS["/queues/validate"], HOOKS["/jobs/validate"]
        async with served(stage, token="lister-token", hooks=(hook, other)) as call:
            assert stage.all(VALIDATING) == []
            for each in (hook, other):
                stage.create(VALIDATING, configuration(each, CALLER, b""), "")
            await until(lambda: all(made["webhooks"][0]["clientConfig"].get("caBundle") for made in stage.all(VALIDATING)))
            assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]

    play(story, users=LISTER)


def test_of_configurations_that_a_chart_made_only_the_authority_is_changed() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        hook = HOOKS["/queues/validate"]
        mine = configuration(hook, ClientConfig("volcano-system", "volcano-admission-service"), b"")
        mine["webhooks"][0] |= {"failurePolicy": "Ignore", "timeoutSeconds": 3}
        client = {"url": "https://example.org/x", "caBundle": "b3RoZXI="}
        mine["webhooks"].append({**mine["webhooks"][0], "name": "another.example.org", "clientConfig": client, "rules": []})
        stage.create(VALIDATING, mine, "")
        async with served(stage, hooks=(hook,)) as call:
            assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]
        ours, another = (stage.find(VALIDATING, CALLER.configuration(hook), "") or {})["webhooks"]
        assert (ours["failurePolicy"], ours["timeoutSeconds"]) == ("Ignore", 3) and ours["clientConfig"]["caBundle"]
        assert another["clientConfig"]["caBundle"] == "b3RoZXI="

    play(story)


def test_volcanos_chart_names_its_configurations_alike_in_every_release() -> None:
    """Its service is called after the release; ours would be a second configuration, and the chart's, without an authority, refuse all."""

    async def story(stage: Scene) -> None:
        prepare(stage)
        ours, theirs = HOOKS["/queues/validate"], HOOKS["/jobs/validate"]
        here = ClientConfig("volcano-system", "integration-admission-service")
        for hook, config in ((ours, here), (theirs, ClientConfig("elsewhere", "volcano-admission-service"))):
            stage.create(VALIDATING, {**configuration(hook, config, b""), "metadata": {"name": ClientConfig().configuration(hook)}}, "")
        async with served(stage, hooks=(ours, theirs), client_config=here) as call:
            authority = base64.b64encode(call.authority(here.configuration(theirs))).decode()
        made = {each["metadata"]["name"]: each["webhooks"][0]["clientConfig"].get("caBundle") for each in stage.all(VALIDATING)}
        assert made == {
            "volcano-admission-service-queues-validate": authority,
            "volcano-admission-service-jobs-validate": None,
            "integration-admission-service-jobs-validate": authority,
        }

    play(story)


def test_a_url_that_was_given_takes_the_place_of_a_service() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        hook = HOOKS["/queues/validate"]
        stage.create(VALIDATING, configuration(hook, ClientConfig("volcano-system", "volcano-admission-service"), b""), "")
        async with served(stage, hooks=(hook,), client_config=ClientConfig("volcano-system", url="https://127.0.0.1:8443")) as call:
            authority = base64.b64encode(call.authority()).decode()
        (ours,) = (stage.find(VALIDATING, CALLER.configuration(hook), "") or {})["webhooks"]
        assert ours["clientConfig"] == {"url": "https://127.0.0.1:8443/queues/validate", "caBundle": authority}

    play(story)


def test_configurations_are_volcanos() -> None:
    made = configuration(HOOKS["/jobs/validate"], ClientConfig("volcano-system", "volcano-admission-service"), b"ca")
    assert made["metadata"]["name"] == "volcano-admission-service-jobs-validate"
    webhook = made["webhooks"][0]
    assert webhook["name"] == "validatejob.volcano.sh" and webhook["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert webhook["clientConfig"]["service"] == {
        "name": "volcano-admission-service",
        "namespace": "volcano-system",
        "path": "/jobs/validate",
        "port": 443,
    }
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["volcano-system", "kube-system"]
    assert ClientConfig("elsewhere", "my-admission-service").configuration(HOOKS["/jobs/validate"]) == "my-admission-service-jobs-validate"
    assert ClientConfig(url="https://here").configuration(HOOKS["/jobs/validate"]) == "volcano-admission-service-jobs-validate"
    names = {hook.name for hook in HOOKS.values()}
    assert {"mutatequeue.volcano.sh", "validatehypernodes.volcano.sh", "validatecronjob.volcano.sh", "mutatepodgroup.volcano.sh"} <= names


def test_replicas_share_one_secret() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage) as one, served(stage) as other:
            assert one.authority() == other.authority()
            for call in (one, other):
                assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]

    play(story)


class At(WallClock):
    """A clock that is set."""

    def __init__(self, now: float) -> None:
        self.moment = now

    def now(self) -> float:
        return self.moment


def test_certificates_are_renewed_and_the_old_authority_stays_trusted_for_a_time() -> None:
    async def story(stage: Scene) -> None:
        clock = At(WallClock().now())
        source = ClusterSecret(stage.client, ObjectRef("certs", "default"), HOSTS, clock)
        first = await source.current()
        clock.moment += VALID_DAYS * 86400 - RENEWED_S - 3600
        assert await source.current() == first, "not yet due"
        clock.moment += 7200
        second = await source.current()
        assert second.pair != first.pair and second.authority.count(b"BEGIN CERTIFICATE") == 2
        assert second.authority.endswith(first.authority)
        clock.moment += VALID_DAYS * 86400
        third = await source.current()
        assert third.authority.count(b"BEGIN CERTIFICATE") == 1, "what is out of date is not trusted"

    play(story)


def test_a_secret_for_other_names_or_with_nonsense_in_it_is_replaced() -> None:
    async def story(stage: Scene) -> None:
        pair = Authority(WallClock().now(), 365).issue("other", "other.example.org")
        data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": b"nonsense"}
        encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
        stage.create("secrets", {"metadata": {"name": "certs"}, "data": encoded})
        found = await ClusterSecret(stage.client, ObjectRef("certs", "default"), HOSTS, WallClock()).current()
        assert found.pair.certificate != pair.certificate and found.authority.count(b"BEGIN CERTIFICATE") == 1

    play(story)


def test_mounted_certificates_are_served(tmp_path: Path) -> None:
    authority = Authority(WallClock().now(), 10)
    pair = authority.issue(HOSTS[0], *HOSTS)
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pem}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage, files=tuple(str(tmp_path / name) for name in files)) as call:
            assert call.authority() == authority.pem
            assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]
            assert not stage.all("secrets")

    play(story)


def test_certificates_of_which_only_a_part_is_written_yet_are_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "CHECKED_EVERY_S", 0.05)
    authority = Authority(WallClock().now(), 10)
    old, new = (authority.issue(HOSTS[0], *HOSTS) for _ in range(2))
    files = {"tls.crt": old.certificate, "tls.key": old.key, "ca.crt": authority.pem}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    async def story(stage: Scene) -> None:
        prepare(stage)
        async with served(stage, files=tuple(str(tmp_path / name) for name in files)) as call:
            for content in (new.certificate, b"", b"nonsense"):
                caplog.clear()
                (tmp_path / "tls.crt").write_bytes(content)
                await until(lambda: "the certificate and key cannot be used" in caplog.text)
                assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]
            (tmp_path / "tls.crt").write_bytes(new.certificate)
            (tmp_path / "tls.key").write_bytes(new.key)
            await until(lambda: call.replica._served is not None and call.replica._served.pair.key == new.key)
            assert (await call("/queues/validate", review("CREATE", queue("q"))))["allowed"]

    play(story)


def flags(**given: Any) -> dict[str, Any]:
    """Values of the command's flags, as click gives them."""
    command = cli.get_command(None, "webhooks")  # type: ignore[arg-type]
    assert command is not None
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return command.make_context(
        "webhooks", ["--webhook-namespace=ns", "--webhook-service-name=s", "--logtostderr", "-v=4", "2>&1", *arguments]
    ).params


def test_flags_of_vc_webhook_manager_are_read(tmp_path: Path) -> None:
    conf = tmp_path / "volcano-admission.conf"
    conf.write_text("resourceGroups: [{resourceGroup: management, object: {key: namespace, value: [mng]}, schedulerName: other}]")
    rules = rules_of(flags(scheduler_name="a", max_queue_depth=3, enable_root_queue_protection="false", admission_conf=conf))
    assert (rules.scheduler_names, rules.max_queue_depth, rules.protect_root) == (("a",), 3, False)
    assert rules.resource_groups[0]["resourceGroup"] == "management"


@pytest.mark.parametrize(("gates", "on"), [("", False), ("SchedulingGatesQueueAdmission=true", True), ("A=true, B=false", False)])
def test_a_feature_gate_puts_queue_gates_on_pods(gates: str, on: bool) -> None:
    assert rules_of(flags(feature_gates=gates)).queue_gates is on


def test_what_a_newer_chart_enables_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    served = hooks_of("/jobs/mutate,/colocationconfigurations/validate,/queues/validate,/jobs/mutate")
    assert [hook.path for hook in served] == ["/jobs/mutate", "/queues/validate"]
    assert caplog.messages == ["/colocationconfigurations/validate is not served: there are no rules for it"]


def test_wrong_flags_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='did you mean "/jobs/mutate"'):
        hooks_of("/job/mutate")
    with pytest.raises(InputError, match='"all" is not a webhook'):
        hooks_of("all")
    with pytest.raises(InputError, match="cannot be read"):
        rules_of(flags(admission_conf=tmp_path / "nothing"))
    (tmp_path / "wrong").write_text("resourceGroups: yes\n")
    with pytest.raises(InputError, match="is not a list of groups"):
        rules_of(flags(admission_conf=tmp_path / "wrong"))
    with pytest.raises(InputError, match=r"SchedulingGatesQueueAdmission: \"maybe\" is not true or false"):
        rules_of(flags(feature_gates="SchedulingGatesQueueAdmission=maybe"))
