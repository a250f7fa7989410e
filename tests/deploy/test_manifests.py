"""The manifests say what our programs understand and need, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pumice.api.json_objects import key_of
from pumice.api.quantity import quantity
from pumice.cli.main import cli
from pumice.cluster.apiserver.bootstrap import definition_texts
from pumice.controllers.admission.webhooks import HOOKS
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.hypernode_discovery import CONFIG_MAP
from pumice.controllers.volcano.hypernode_tree import FILE, topologies_in
from pumice.controllers.volcano.job.plugins import SshKeyPair
from pumice.controllers.volcano.sharding import NodeShards
from pumice.live.controllers.loop import kinds_for
from pumice.live.scheduler.options import Options, Sharding
from pumice.live.scheduler.watched_resources import sources
from pumice.live.watch_scopes import ADMISSION, RESOURCES
from pumice.page.reader_access import PATH
from pumice.scheduler.config.volcano_conf import DEFAULT
from tests.deploy.roles import CONTROLLERS, CONTROLLERS_MODULES, SCHEDULER, SOURCES, VOLCANOS_SCHEDULER, WEBHOOKS, Right, calls, rights
from tests.live.stories import policy

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMES = {"scheduler": "scheduler", "controllers": "controllers", "webhooks": "admission"}


def objects(part: str, kind: str) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all((DEPLOY / f"manifests/{part}.yaml").read_text()) if item["kind"] == kind]


def one(part: str, kind: str) -> dict[str, Any]:
    found = objects(part, kind)
    assert len(found) == 1
    return found[0]


def container(part: str) -> dict[str, Any]:
    return one(part, "Deployment")["spec"]["template"]["spec"]["containers"][0]  # type: ignore[no-any-return]


def test_the_chart_brings_the_definitions() -> None:
    files = {path.name: path.read_text() for path in (DEPLOY / "chart/crds").glob("*.yaml")}
    assert files == definition_texts(), "run deploy/render.py"
    brought = [yaml.safe_load(text) for text in files.values()]
    assert {"jobs.batch.volcano.sh", "queues.scheduling.volcano.sh"} <= {each["metadata"]["name"] for each in brought}
    chart = yaml.safe_load((DEPLOY / "chart/Chart.yaml").read_text())
    assert chart["appVersion"] == yaml.safe_load((DEPLOY / "chart/values.yaml").read_text())["image"]["tag"]


@pytest.mark.parametrize("part", NAMES)
def test_selectors_accounts_and_roles_fit_together(part: str) -> None:
    deployment, service, account = (one(part, kind) for kind in ("Deployment", "Service", "ServiceAccount"))
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert pod["spec"]["serviceAccountName"] == account["metadata"]["name"] == f"volcano-{NAMES[part]}"
    binding = one(part, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == one(part, "ClusterRole")["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "volcano-system"}]
    if part != "webhooks":
        leads = one(part, "RoleBinding")
        assert (leads["roleRef"]["name"], leads["subjects"]) == (one(part, "Role")["metadata"]["name"], binding["subjects"])
    ports = {port[key] for port in container(part)["ports"] for key in ("name", "containerPort")}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert {container(part)[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {"health"}


@pytest.mark.parametrize("part", NAMES)
def test_mounted_config_maps_are_there_and_are_what_the_flags_name(part: str) -> None:
    pod = one(part, "Deployment")["spec"]["template"]["spec"]
    held = {item["metadata"]["name"]: item["data"] for item in objects(part, "ConfigMap")}
    places = {mount["name"]: mount["mountPath"] for mount in container(part)["volumeMounts"]}
    mounted = [(places[volume["name"]], held[volume["configMap"]["name"]]) for volume in pod["volumes"] if "configMap" in volume]
    files = {f"{folder}/{file}" for folder, content in mounted for file in content}
    named = {argument.partition("=")[2] for argument in container(part)["args"] if re.match(r"--(scheduler|admission)-conf=", argument)}
    assert files == named


@pytest.mark.parametrize("part", NAMES)
def test_arguments_are_a_command_with_flags_that_it_has(part: str) -> None:
    name, *flags = container(part)["args"]
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None and name == part
    given = command.make_context(name, flags, parent=click.Context(cli, **cli.context_settings)).params
    assert given["healthz_address"] == ":11251" and given["enable_healthz"] is True
    if part == "webhooks":
        assert set(given["enabled_admission"].split(",")) <= set(HOOKS)


@pytest.mark.parametrize("part", NAMES)
def test_pods_are_restricted(part: str) -> None:
    pod = one(part, "Deployment")["spec"]["template"]["spec"]
    confined = {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["securityContext"] == confined
    assert container(part)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,  # also here: what Volcano's Deployments say of their containers would stay
        "runAsUser": 10001,
    }


@pytest.mark.parametrize("part", NAMES)
def test_pods_have_limits_above_what_they_ask_for(part: str) -> None:
    resources = container(part)["resources"]
    for name in ("cpu", "memory"):
        asked, most = (quantity(str(resources[kind][name])).milli for kind in ("requests", "limits"))
        assert 0 < asked < most


@pytest.mark.parametrize("part", NAMES)
def test_nobody_reaches_a_port_that_is_not_served(part: str) -> None:
    found = one(part, "NetworkPolicy")["spec"]
    assert found["podSelector"]["matchLabels"] == one(part, "Deployment")["spec"]["selector"]["matchLabels"]
    assert found["policyTypes"] == ["Ingress"]
    (rule,) = found["ingress"]
    assert {port["port"] for port in rule["ports"]} == {port["name"] for port in container(part)["ports"]}


def test_the_configurations_are_understood() -> None:
    from pumice.extensions import plugins
    from pumice.scheduler.config import config_text, read_configurations

    text = one("scheduler", "ConfigMap")["data"]["volcano-scheduler.conf"]
    _, warnings = read_configurations([config_text(text, "ConfigMap")], plugins(None), strict=True)
    assert not warnings and "allocate" in text and DEFAULT
    assert yaml.safe_load(one("webhooks", "ConfigMap")["data"]["volcano-admission.conf"]) == {"resourceGroups": []}
    found = one("controllers", "ConfigMap")
    assert key_of(found) == CONFIG_MAP and FILE in found["data"] and topologies_in(found) == []


# ---- roles


def reading(resources: Any) -> set[Right]:
    return {(each.group, each.plural, verb) for each in resources for verb in ("list", "watch")}


def granted(part: str) -> set[Right]:
    """What a program may do. Only the right to lead is of its namespace, and it stays when the release goes."""
    wide, local = rights(one(part, "ClusterRole")), rights(one(part, "Role"))
    assert {resource for _, resource, _ in local} == {"leases"} and not wide & local
    return wide | local


def test_the_schedulers_role_is_a_part_of_volcanos() -> None:
    assert granted("scheduler") - VOLCANOS_SCHEDULER == set()


def test_the_scheduler_may_do_what_it_does_and_nothing_else() -> None:
    watched = reading(source.resource for source in sources(Options(sharding=Sharding("hard", "volcano")), policy()))
    asked_by_the_server = {("resource.k8s.io", "resourceclaims/binding", "update")}  # when status.allocation or reservedFor changes
    native = {("scheduling.k8s.io", "podgroups/status", "patch")}  # of kube-scheduler's gangs, which Volcano's role does not know
    additions = [item for item in yaml.safe_load_all((DEPLOY / "native-gangs.yaml").read_text()) if item["kind"] == "ClusterRole"]
    assert native <= {right for role in additions for right in rights(role)}
    assert granted("scheduler") == (watched | calls(SCHEDULER) | asked_by_the_server) - native


def test_the_controllers_may_do_what_they_do_and_nothing_else() -> None:
    watched = reading(RESOURCES[kind] for kind in kinds_for(volcano_controllers(lambda: SshKeyPair("", ""), sharding=NodeShards())))
    assert granted("controllers") == watched | CONTROLLERS
    assert all((SOURCES / "controllers/volcano" / module).exists() for module in CONTROLLERS_MODULES)


def test_the_webhooks_may_do_what_they_do_and_only_with_one_secret() -> None:
    registering = {(hook.resource.group, hook.resource.plural, verb) for hook in HOOKS.values() for verb in ("get", "update")}
    assert rights(one("webhooks", "ClusterRole")) == reading(RESOURCES[kind] for kind in ADMISSION) | registering
    local = one("webhooks", "Role")
    assert [rule.get("resourceNames") for rule in local["rules"]] == [None, ["volcano-admission-secret"]]
    assert rights(local) == calls(WEBHOOKS)


def test_the_page_s_readers_are_asked_about_with_no_more_rights_than_that_takes() -> None:
    by_name = {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all((DEPLOY / "page.yaml").read_text())}
    asking = by_name["ClusterRole", "volcano-scheduler-page"]
    assert rights(asking) == calls([SOURCES / "page/reader_access.py"])
    assert by_name["ClusterRoleBinding", "volcano-scheduler-page"]["subjects"] == one("scheduler", "ClusterRoleBinding")["subjects"]
    assert by_name["ClusterRole", "volcano-page-reader"]["rules"] == [{"nonResourceURLs": [PATH], "verbs": ["get"]}]
    labels = one("scheduler", "Deployment")["spec"]["selector"]["matchLabels"]
    assert by_name["Service", "volcano-page"]["spec"]["selector"] == labels
    assert by_name["NetworkPolicy", "volcano-page"]["spec"]["podSelector"]["matchLabels"] == labels
    assert "--page-address=" in container("scheduler")["args"], "there is none unless somebody wants it"


# ---- image and monitoring


def test_the_images_run_commands_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    entries = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in text.splitlines() if line.startswith("ENTRYPOINT ")]
    sent = [line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert entries[0] == ["pumice"] and [words[1] for words in entries[1:]] == ["scheduler", "controllers", "webhooks"]
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        assert all((DEPLOY.parent / source).exists() for source in line.split()), line
        assert all(any(Path(source).is_relative_to(folder) for folder in sent) for source in line.split()), line
    assert "USER 10001" in text and text.count("--require-hashes") == 2


def test_the_base_image_is_the_one_that_whoever_builds_has_pinned() -> None:
    """There is no default: a tag may be another image tomorrow. A build without a digest ends."""
    text = (DEPLOY / "Dockerfile").read_text()
    bases = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    assert [base for base in bases if base != "pumice"] == ["${PYTHON}", "${PYTHON}"]
    assert re.findall(r"^ARG PYTHON.*$", text, re.MULTILINE)[0] == "ARG PYTHON", "no default"
    pinned = re.search(r"^RUN case \"\$PYTHON\" in (\S+)\) ;;", text, re.MULTILINE)
    assert pinned is not None and pinned[1] == "*@sha256:*"


def test_the_images_have_what_volcanos_chart_looks_for_in_them() -> None:
    """Its programs by name, and a script that it runs from the working directory."""
    scripts = {path.name: path.read_text() for path in (DEPLOY / "image").iterdir()}
    calls = {name: re.findall(r"^exec pumice (\S+) \"\$@\"$", text, re.MULTILINE) for name, text in scripts.items()}
    assert calls == {
        "vc-scheduler": ["scheduler"],
        "vc-controller-manager": ["controllers"],
        "vc-webhook-manager": ["webhooks"],
        "gen-admission-secret.sh": ["admission-secret"],
    }
    for name, text in scripts.items():
        assert text.startswith("#!/bin/sh\n") and (DEPLOY / "image" / name).stat().st_mode & 0o111 == 0o111, name
    stages = (DEPLOY / "Dockerfile").read_text().split("FROM ")
    assert "COPY deploy/image/ /\n" in stages[2] and all("WORKDIR /\n" in stage for stage in stages[3:6])


def test_the_plain_monitor_selects_our_pods() -> None:
    monitor = yaml.safe_load((DEPLOY / "monitoring/podmonitor.yaml").read_text())
    (chosen,) = monitor["spec"]["selector"]["matchExpressions"]
    labels = {one(part, "Deployment")["spec"]["template"]["metadata"]["labels"]["app"] for part in ("scheduler", "controllers")}
    assert set(chosen["values"]) == labels
    assert all("metrics" in {port["name"] for port in container(part)["ports"]} for part in ("scheduler", "controllers"))
