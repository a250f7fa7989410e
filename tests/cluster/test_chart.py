"""What Helm makes of the chart: every rendering is what the API servers take, and what the programs look for."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from binaries import KUBERNETES
from chart import CHART, POD, RENDERINGS, ROOT, Helm
from installed import PROGRAM
from realcluster import RealCluster

from pumice.cli.main import cli
from pumice.cluster.apiserver import WriteOptions
from pumice.controllers.admission.webhooks import HOOKS
from pumice.live.watch_scopes import RESOURCES
from tests.apiserver.made import store
from tests.deploy.roles import rights

pytestmark = pytest.mark.cluster

OURS = {
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
    "Service": "services",
    "Pod": "pods",
    "Deployment": "deployments.apps",
    "Job": "jobs.batch",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
    "Role": "roles.rbac.authorization.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations.admissionregistration.k8s.io",
}
NOT_OURS = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}  #: kinds of the Prometheus operator


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


def named(items: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {(item["kind"], item["metadata"]["name"]): item for item in items}
    assert len(found) == len(items), "two objects have one name"
    return found


def container(items: list[dict[str, Any]], deployment: str) -> dict[str, Any]:
    (only,) = named(items)["Deployment", deployment]["spec"]["template"]["spec"]["containers"]
    return only  # type: ignore[no-any-return]


def test_what_is_made_of_the_chart_is_made_of_this_one() -> None:
    spec = importlib.util.spec_from_file_location("render", ROOT / "deploy/render.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.files()
    assert {path: path.read_text() for path in made} == made, "run python deploy/render.py"
    for folder in {path.parent for path in made}:
        assert {path for path in made if path.parent == folder} == set(folder.glob("*.yaml"))


@pytest.mark.parametrize("values", RENDERINGS.values(), ids=RENDERINGS)
def test_helm_finds_nothing_to_complain_about(helm: Helm, values: dict[str, Any]) -> None:
    done = helm.run("lint", CHART, "--strict", "--kube-version", KUBERNETES, helm.values(values))
    told = [line for line in done.stdout.splitlines() if line.startswith(("[WARNING]", "[ERROR]"))]
    assert (done.returncode, told, done.stderr) == (0, [], "")


@pytest.mark.parametrize("values", RENDERINGS.values(), ids=RENDERINGS)
def test_every_rendering_is_accepted_to_the_letter_and_the_programs_understand_their_arguments(helm: Helm, values: dict[str, Any]) -> None:
    ours, items = store(), helm.rendered(values)
    for namespace in ("volcano-system", "trial"):
        ours.create("namespaces", {"metadata": {"name": namespace}})
    ours.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "system-cluster-critical"}, "value": 2_000_000_000})
    for item in items:
        if item["kind"] not in NOT_OURS:
            ours.create(OURS[item["kind"]], item, item["metadata"].get("namespace", ""), WriteOptions(validation="Strict"))
    deployments = [item for item in items if item["kind"] == "Deployment"]
    assert deployments
    for item in deployments:
        (only,) = item["spec"]["template"]["spec"]["containers"]
        name, *flags = only["args"]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        command.make_context(name, [*flags, "--strict-flags"])
        mounts, volumes = only["volumeMounts"], item["spec"]["template"]["spec"]["volumes"]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in volumes}


def test_what_is_set_for_pods_is_in_all_of_them(helm: Helm) -> None:
    items = helm.rendered(RENDERINGS["all that can be set"])
    for name in ("scheduler", "controllers", "admission"):
        template = named(items)["Deployment", f"volcano-{name}"]["spec"]["template"]
        pod, only = template["spec"], container(items, f"volcano-{name}")
        for field in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"):
            assert pod[field] == POD[field]
        assert pod["imagePullSecrets"] == [{"name": "registry"}] and "priorityClassName" not in pod
        assert template["metadata"]["annotations"] == POD["podAnnotations"] and template["metadata"]["labels"]["team"] == "batch"
        assert "--kube-api-qps=50" in only["args"] and {"name": "TZ", "value": "UTC"} in only["env"]
        assert {"name": "extra", "mountPath": "/extra"} in only["volumeMounts"] and {"name": "extra", "emptyDir": {}} in pod["volumes"]
        budget = named(items)["PodDisruptionBudget", f"volcano-{name}"]["spec"]
        labels = template["metadata"]["labels"]
        assert budget["maxUnavailable"] == "50%" and budget["selector"]["matchLabels"].items() <= labels.items()
    scheduler = container(items, "volcano-scheduler")
    assert {"--plugins-dir=/pumice.plugins", "--record=/var/lib/pumice", "--record-size=256"} <= set(scheduler["args"])
    volumes = {volume["name"]: volume for volume in named(items)["Deployment", "volcano-scheduler"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["plugins"]["configMap"] == {"name": "plugins"}
    assert volumes["record"] == {"name": "record", "persistentVolumeClaim": {"claimName": "records"}}


def test_a_shadow_may_only_read_and_is_not_taken_for_volcano(helm: Helm) -> None:
    items = helm.rendered(RENDERINGS["shadow"])
    assert "--shadow" in container(items, "pumice-scheduler")["args"]
    bound = [item["roleRef"]["name"] for item in items if item["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    assert bound == ["pumice-read-only"]
    (role,) = (item for item in items if item["kind"] in ("ClusterRole", "Role"))
    assert {verb for _, _, verb in rights(role)} == {"get", "list", "watch"}
    assert "volcano" not in json.dumps([item["metadata"] for item in items])
    assert not {item["kind"] for item in items} & {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Job"}
    labels = named(items)["Deployment", "pumice-scheduler"]["spec"]["selector"]["matchLabels"]
    assert labels == {"app": "pumice-trial"} == named(items)["Service", "pumice-scheduler-service"]["spec"]["selector"]


def test_a_canary_has_its_share_and_a_shadow_becomes_one_by_an_upgrade(helm: Helm) -> None:
    items = helm.rendered(RENDERINGS["canary"])
    args = set(container(items, "pumice-scheduler")["args"])
    assert {"--canary=queue/research", "--canary=namespace/team-a", "--scheduler-name=pumice", "--scheduler-name=other"} <= args
    assert "--shadow" not in args
    assert "volcano" not in json.dumps([item["metadata"] for item in items])
    before = named(helm.rendered(RENDERINGS["shadow"]))
    for key, item in named(items).items():
        if key in before:  # what cannot be changed is the same
            assert item.get("roleRef") == before[key].get("roleRef")
            assert (item.get("spec") or {}).get("selector") == (before[key].get("spec") or {}).get("selector")
    assert "minItems" in helm.refused("template", "pumice", CHART, "--kube-version", KUBERNETES, "--set=mode=canary")


def test_a_trial_does_not_take_the_names_of_volcanos_release(helm: Helm) -> None:
    for flag in ("--set=mode=shadow", "--set=mode=canary,canary.queues={a}"):
        assert "install it under another name" in helm.refused("template", "volcano", CHART, "--kube-version", KUBERNETES, flag)


def test_a_release_may_have_another_name_and_place(helm: Helm) -> None:
    """What the programs look for by name is told to them."""
    items = helm.rendered({}, "mine", "batch")
    assert {item["metadata"].get("namespace", "batch") for item in items} == {"batch"}
    assert all(item["metadata"]["name"].startswith("mine-") for item in items)
    assert {"--webhook-namespace=batch", "--webhook-service-name=mine-admission-service"} <= set(container(items, "mine-admission")["args"])
    assert ("Service", "mine-admission-service") in named(items)
    controllers = container(items, "mine-controllers")
    assert {"name": "HELM_RELEASE_NAME", "value": "mine"} in controllers["env"]
    assert "--leader-elect-resource-namespace=batch" in controllers["args"] and ("ConfigMap", "mine-controller-configmap") in named(items)


def test_every_webhook_that_is_served_is_registered_as_volcano_does(helm: Helm) -> None:
    items = helm.rendered({"webhooks": {"enabled": ",".join(HOOKS)}})
    registered = {item["webhooks"][0]["clientConfig"]["service"]["path"]: item for item in items if "webhooks" in item}
    assert registered.keys() == HOOKS.keys()
    for path, hook in HOOKS.items():
        item, resource = registered[path], RESOURCES[hook.kind]
        (webhook,) = item["webhooks"]
        assert item["kind"] == ("MutatingWebhookConfiguration" if hook.mutating else "ValidatingWebhookConfiguration")
        assert item["metadata"]["name"] == f"volcano-admission-service{path.replace('/', '-')}"
        assert (webhook["name"], webhook["failurePolicy"], webhook["timeoutSeconds"]) == (hook.name, "Fail", 10)
        (rule,) = webhook["rules"]
        assert rule["operations"] == list(hook.operations)
        assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == ([resource.group], [resource.version], [resource.plural])
        spared = webhook["namespaceSelector"]["matchExpressions"][0]
        assert (spared["operator"], spared["values"]) == ("NotIn", ["volcano-system", "kube-system"])


def test_while_webhooks_are_replaced_somebody_answers(helm: Helm) -> None:
    """Volcano's pods, whose port has no name, too; and no revision names an authority that a next one would take away."""
    items = helm.rendered({})
    (port,) = named(items)["Service", "volcano-admission-service"]["spec"]["ports"]
    assert port["targetPort"] == 8443 in {each["containerPort"] for each in container(items, "volcano-admission")["ports"]}
    assert container(items, "volcano-admission")["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", "5"]}}}
    assert "caBundle" not in json.dumps(items)


def test_only_enabled_webhooks_are_registered_and_none_that_nobody_answers(helm: Helm) -> None:
    items = helm.rendered(RENDERINGS["all that can be set"])
    registered = [item for item in items if "webhooks" in item]
    paths = {item["webhooks"][0]["clientConfig"]["service"]["path"] for item in registered}
    assert paths == {"/jobs/mutate", "/jobs/validate", "/pods/mutate"}
    assert {item["webhooks"][0]["failurePolicy"] for item in registered} == {"Ignore"}
    assert registered[0]["webhooks"][0]["namespaceSelector"]["matchExpressions"][1:] == [{"key": "team", "operator": "Exists"}]
    assert not [item for item in helm.rendered(RENDERINGS["only the scheduler"]) if "webhooks" in item]


def test_monitors_find_the_pods_and_services(helm: Helm) -> None:
    for rendering in ("monitored", "shadow"):
        items = helm.rendered(RENDERINGS[rendering])
        by_kind = {item["kind"]: item for item in items}
        scraped = {item["spec"]["template"]["metadata"]["labels"]["app"] for item in items if item["kind"] == "Deployment"}
        scraped -= {"volcano-admission"}  # it measures nothing
        for kind in ("PodMonitor", "ServiceMonitor"):
            (chosen,) = by_kind[kind]["spec"]["selector"]["matchExpressions"]
            assert set(chosen["values"]) == scraped
        services = {item["metadata"]["labels"]["app"]: item for item in items if item["kind"] == "Service"}
        assert all("metrics" in {port["name"] for port in services[app]["spec"]["ports"]} for app in scraped)
        dashboard = next(item for item in items if item["metadata"]["name"].endswith("-dashboard"))
        assert json.loads(dashboard["data"]["dashboard.json"])["uid"] == "pumice"
        # beside a shadow Volcano leads
        alerts = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
        assert by_kind.get("PrometheusRule", {}).get("spec") == (alerts if rendering == "monitored" else None)


# ---- on a real API server, as `helm` is used

JOB_ENDED = {
    "succeeded": 1,
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")],
}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"minAvailable": 1, "tasks": []},
}
AUTHORITY = "Q0E="  # in base64
DEFINITION, HOOK = "customresourcedefinitions", "validatingwebhookconfigurations/volcano-admission-service-jobs-validate"


class Installed(Helm):
    """Helm and kubectl on a cluster of their own, without definitions at first, in which nothing runs."""

    def kubectl(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(["kubectl", *words], input=stdin, capture_output=True, text=True, env=self.environment, timeout=60)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def shell(self, command: str) -> None:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=self.environment, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    def apply(self, *items: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def get(self, *words: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", *words, "-o", "json"))  # type: ignore[no-any-return]

    def names(self, kind: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.get(kind, "-A")["items"]}

    @contextmanager
    def hooks_end_well(self) -> Iterator[None]:
        """No kubelet is here: Jobs are said to have ended."""
        ended = threading.Event()

        def loop() -> None:
            while not ended.wait(0.2):
                for job in self.get("jobs.batch", "-A")["items"]:
                    if not job["status"].get("conditions"):
                        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
                        patch = json.dumps({"status": JOB_ENDED})
                        self.kubectl("patch", "jobs.batch", name, f"-n{namespace}", "--subresource=status", "--type=merge", f"-p{patch}")

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    with RealCluster(tmp_path) as cluster:
        yield Installed(tmp_path, cluster.kubeconfig())


def test_every_rendering_is_accepted_by_a_real_api_server(installed: Installed) -> None:
    for namespace in ("volcano-system", "trial"):
        installed.kubectl("create", "namespace", namespace)
        installed.kubectl("create", "serviceaccount", "default", f"-n{namespace}")
    rendered = (item for values in RENDERINGS.values() for item in installed.rendered(values) if item["kind"] not in NOT_OURS)
    different = {json.dumps(item, sort_keys=True): item for item in rendered}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(different.values())})
    installed.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


def test_after_an_uninstall_jobs_can_be_made_and_what_remains_is_what_the_notes_say(installed: Installed) -> None:
    where = ("-nvolcano-system",)
    told = installed("install", "volcano", CHART, *where, "--create-namespace")
    assert "helm uninstall" in told and "CustomResourceDefinitions" in told
    before = {kind: installed.names(kind) for kind in (HOOK.partition("/")[0], "mutatingwebhookconfigurations")}
    assert sum(map(len, before.values())) == 9
    definitions = installed.names(DEFINITION)
    assert len(definitions) == 10

    # a value that was set stays set, and so does the authority that the webhooks have written
    trust(installed)
    for setting in ("scheduler.period=2s,crds.upgrade=false", "scheduler.logLevel=3"):
        installed("upgrade", "volcano", CHART, *where, "--reuse-values", f"--set={setting}")
    deployment = installed.get("deployment", "volcano-scheduler", *where)
    assert {"--schedule-period=2s", "-v=3"} <= set(deployment["spec"]["template"]["spec"]["containers"][0]["args"])
    assert authority(installed) == AUTHORITY

    left = installed("uninstall", "volcano", *where)
    assert not any(installed.names(kind) for kind in before)
    installed.apply(JOB)
    assert installed.names(DEFINITION) == definitions
    for kind in ("clusterroles", "clusterrolebindings", "deployments", "networkpolicies"):
        assert not [name for name in installed.names(kind) if name.startswith("volcano")], kind
    kept = {
        "roles": ["volcano-controllers-leases", "volcano-scheduler-leases"],
        "serviceaccounts": ["volcano-controllers", "volcano-scheduler"],
    }
    for kind in ("roles", "rolebindings", "serviceaccounts"):
        found = sorted(name for name in installed.names(kind) if name.startswith("volcano"))
        assert found == kept.get(kind, kept["roles"]) and all(f"] {name}\n" in left for name in found), kind
    installed("install", "volcano", CHART, *where)  # nothing that remains is in its way
    installed("uninstall", "volcano", *where)
    installed.shell(shown("kubectl -n volcano-system delete serviceaccounts", "chart").splitlines()[0])
    for kind in ("roles", "rolebindings", "serviceaccounts"):
        assert not [name for name in installed.names(kind) if name.startswith("volcano")], kind


def test_a_leader_gives_up_its_lease_after_an_uninstall(tmp_path: Path) -> None:
    """Helm does not wait for pods: the program is told to end when the release is gone, and may do this one thing still."""
    with RealCluster(tmp_path) as cluster:
        installed, where = Installed(tmp_path, cluster.kubeconfig()), ("-nvolcano-system",)
        installed("install", "volcano", CHART, *where, "--create-namespace", "--set=webhooks.replicas=0")  # nobody would answer
        command = [PROGRAM, "scheduler", f"--kubeconfig={cluster.kubeconfig('scheduler')}", "--enable-healthz=false"]
        leader = subprocess.Popen([*command, "--enable-metrics=false"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert leader.stdout is not None
        try:
            told = next((line for line in leader.stdout if "became leader" in line), "")
            holder = installed.get("leases", "volcano", *where)["spec"]["holderIdentity"]
            assert holder and holder in told
            assert "volcano-scheduler-leases" in installed("uninstall", "volcano", *where), "what was kept is told"
            assert installed.get("leases", "volcano", *where)["spec"]["holderIdentity"] == holder
            leader.terminate()
            assert "was not released" not in leader.communicate(timeout=60)[0]
            assert not installed.get("leases", "volcano", *where)["spec"].get("holderIdentity")
        finally:
            leader.kill()
            leader.wait()


def test_an_upgrade_brings_the_definitions_of_the_chart(installed: Installed) -> None:
    """The hook's Job has them all, and the right to apply them."""
    installed("install", "volcano", CHART, "-nvolcano-system", "--create-namespace")
    manifest = [item for item in installed.rendered({}) if item["metadata"]["name"] == "volcano-definitions"]
    by_kind = {item["kind"]: item for item in manifest}
    assert all(item["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade" for item in manifest)
    brought = {path.name: path.read_text() for path in (CHART / "crds").glob("*.yaml")}
    assert by_kind["ConfigMap"]["data"] == brought and len(brought) == 10
    (only,) = by_kind["Job"]["spec"]["template"]["spec"]["containers"]
    assert only["args"] == ["apply", "--filename=/definitions"]
    assert rights(by_kind["ClusterRole"]) == {
        ("apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in ("get", "create", "patch")
    }
    with installed.hooks_end_well():
        installed("upgrade", "volcano", CHART, "-nvolcano-system")
    assert "volcano-definitions" not in installed.names("clusterroles") | installed.names("jobs.batch")


VOLCANO = {"scheduler": "volcano-scheduler", "controllers": "volcano-controller", "admission": "volcano-admission"}


def volcanos(folder: Path) -> Path:
    """A chart with what matters of Volcano's: its names and labels, and definitions among the templates that nothing keeps."""
    chart = folder / "theirs"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: theirs\nversion: 1.15.0\n")
    for path in (CHART / "crds").glob("*.yaml"):
        (chart / "templates" / path.name).write_text(path.read_text())
    items: list[dict[str, Any]] = []
    for name, app in VOLCANO.items():
        labels: dict[str, Any] = {"app": app}
        container: dict[str, Any] = {"name": f"volcano-{name}", "image": f"volcanosh/{name}", "args": ["--logtostderr"]}
        container["securityContext"] = {"runAsUser": 1000, "runAsNonRoot": True}
        if name == "admission":
            container["name"] = "admission"
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccount": f"volcano-{name}", "containers": [container]}},
        }
        metadata = {"name": f"volcano-{name}", "namespace": "volcano-system"}
        items += [
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        ]
    client = {"service": {"name": "volcano-admission-service", "namespace": "volcano-system", "path": "/jobs/validate"}}
    webhook = {
        "name": "validatejob.volcano.sh",
        "clientConfig": client,
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    items.append({**head, "metadata": {"name": HOOK.partition("/")[2]}, "webhooks": [webhook]})
    (chart / "templates/programs.yaml").write_text(yaml.safe_dump_all(items))
    return chart


def shown(beginning: str, page: str = "from-volcano") -> str:
    """The command of the page that begins so, with its further lines."""
    lines = (ROOT / f"docs/{page}.md").read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"    {beginning}"))
    return "\n".join(line[4:] for line in itertools.takewhile(lambda line: line.startswith("    "), lines[at:]))


def trust(installed: Installed) -> None:
    """As the webhooks' program does."""
    patch = {"webhooks": [{"name": "validatejob.volcano.sh", "clientConfig": {"caBundle": AUTHORITY}}]}
    installed.kubectl("patch", HOOK, f"-p{json.dumps(patch)}")


def authority(installed: Installed) -> str | None:
    return installed.get(HOOK)["webhooks"][0]["clientConfig"].get("caBundle")  # type: ignore[no-any-return]


def uids(installed: Installed) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in installed.get("deployments", "-nvolcano-system")["items"]}


def test_volcanos_release_is_taken_over_and_given_back_in_place_and_no_job_is_lost(installed: Installed) -> None:
    theirs, where = volcanos(installed.folder), ("-nvolcano-system",)
    installed("install", "volcano", theirs, *where, "--create-namespace")
    trust(installed)
    installed.apply(JOB)
    before = uids(installed)

    # without this refusal Helm would delete the definitions, and with them the job
    assert "helm.sh/resource-policy=keep" in installed.refused("upgrade", "volcano", CHART, *where)
    installed.shell(shown("kubectl get crd -o name").splitlines()[0])
    with installed.hooks_end_well():
        installed("upgrade", "volcano", CHART, *where)
    assert uids(installed) == before and installed.names("jobs.batch.volcano.sh") == {"train"}
    pod = installed.get("deployment", "volcano-scheduler", *where)["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][0] == "scheduler" and len(pod["containers"]) == 1

    assert authority(installed) == AUTHORITY
    installed("upgrade", "volcano", theirs, *where)
    assert uids(installed) == before and installed.names("jobs.batch.volcano.sh") == {"train"}
    pod = installed.get("deployment", "volcano-scheduler", *where)["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--logtostderr"] and "livenessProbe" not in pod["containers"][0]
    assert installed.names(HOOK.partition("/")[0]) == {HOOK.partition("/")[2]} and authority(installed) == AUTHORITY


def containers(installed: Installed) -> list[dict[str, Any]]:
    deployments = installed.get("deployments", "-nvolcano-system")["items"]
    return [each for deployment in deployments for each in deployment["spec"]["template"]["spec"]["containers"]]


def test_what_kubectl_created_gets_other_images_and_back_and_then_our_manifests(installed: Installed) -> None:
    """The ways of the guide without Helm, up to the pods."""
    theirs, where = volcanos(installed.folder), "-nvolcano-system"
    installed.kubectl("create", "namespace", "volcano-system")
    installed.kubectl("create", "-f", "-", stdin=installed("template", "volcano", theirs, where))
    before = uids(installed)

    scheduler = ("deployment", "volcano-scheduler", where)
    ending, replacing = shown("kubectl -n volcano-system patch deployment volcano-scheduler").splitlines()[:2]
    installed.shell(ending)
    installed.shell(replacing)
    changed = installed.get(*scheduler)["spec"]
    (only,) = changed["template"]["spec"]["containers"]
    assert changed["strategy"] == {"type": "Recreate"} and (only["image"], only["args"]) == (
        "pumice/pumice-scheduler:0.1.0",
        ["--logtostderr"],
    )
    installed.shell(shown("kubectl -n volcano-system set image deployment/volcano-scheduler '*=volcanosh"))
    assert installed.get(*scheduler)["spec"]["template"]["spec"]["containers"][0]["image"].startswith("volcanosh/vc-scheduler:")

    apply = shown("kubectl apply -f deploy/manifests")
    installed.shell(f"cd {ROOT} && {apply}")
    assert uids(installed) == before
    assert [each["args"][0] for each in containers(installed)] == ["webhooks", "controllers", "scheduler"]
    assert all(each["securityContext"]["runAsUser"] == 10001 for each in containers(installed))
    rolled = [each["metadata"]["generation"] for each in installed.get("deployments", where)["items"]]
    installed.shell(f"cd {ROOT} && {apply}")
    assert [each["metadata"]["generation"] for each in installed.get("deployments", where)["items"]] == rolled, "no pod is replaced"

    installed.shell(shown("for each in deployment"))
    installed("install", "volcano", CHART, where)
    assert uids(installed) == before


@pytest.mark.parametrize("by", ["flag", "labels"])
def test_what_kubectl_installed_is_taken_over_in_place(installed: Installed, by: str) -> None:
    theirs, where = volcanos(installed.folder), ("-nvolcano-system",)
    installed.kubectl("create", "namespace", "volcano-system")
    objects = list(yaml.safe_load_all(installed("template", "volcano", theirs, *where)))
    registered = [item for item in objects if item["kind"] == "ValidatingWebhookConfiguration"]
    installed.apply(*(item for item in objects if item not in registered))
    installed.kubectl("wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh")
    installed.apply(JOB)
    installed.apply(*registered)
    trust(installed)
    before = uids(installed)
    assert "invalid ownership metadata" in installed.refused("install", "volcano", CHART, *where)
    if by == "labels":
        installed.shell(shown("for each in deployment"))
    installed("install", "volcano", CHART, *where, *(["--take-ownership"] if by == "flag" else []))
    assert uids(installed) == before and installed.names("jobs.batch.volcano.sh") == {"train"}
    assert all(each["securityContext"]["runAsUser"] == 10001 for each in containers(installed))
    assert installed.get(HOOK)["webhooks"][0]["failurePolicy"] == "Fail" and authority(installed) == AUTHORITY
