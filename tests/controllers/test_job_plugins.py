"""What a job's plugins add to it."""

from __future__ import annotations

import base64
import json
from typing import Any

from pumice.api import kinds
from pumice.api.json_objects import Object, labels_of
from pumice.controllers.volcano.job.plugins.plugin import flags
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from tests.controllers.stage import Stage, queue, task, vcjob


def play(plugins: dict[str, list[str]], *tasks: Object) -> Stage:
    stage = Stage(queue(), vcjob(tasks=tasks or [task("w", 2)], plugins=plugins))
    stage.let_in()
    return stage


def env(stage: Stage, pod: str, container: int = 0) -> dict[str, Any]:
    variables = stage.get(kinds.POD, pod)["spec"]["containers"][container].get("env", [])
    assert all(isinstance(each.get("value", ""), str) and isinstance(each.get("valueFrom", {}), dict) for each in variables)
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in variables}


def test_env_tells_a_pod_its_index() -> None:
    assert env(play({"env": []}), "train-w-1") == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}


def test_svc_names_the_pods_and_lists_them() -> None:
    stage = play({"svc": []}, task("w", 2), task("ps-main"))
    data = stage.get(kinds.CONFIG_MAP, "train-svc")["data"]
    assert data["w.host"] == "train-w-0.train\ntrain-w-1.train"
    assert (data["VC_W_HOSTS"], data["VC_W_NUM"]) == ("train-w-0.train,train-w-1.train", "2")
    assert data["VC_PS_MAIN_NUM"] == "1"
    pod = stage.get(kinds.POD, "train-w-0")["spec"]
    assert (pod["hostname"], pod["subdomain"]) == ("train-w-0", "train")
    assert pod["containers"][0]["volumeMounts"] == [{"name": "train-svc", "mountPath": "/etc/volcano"}]
    assert pod["volumes"] == [{"name": "train-svc", "configMap": {"name": "train-svc"}}], "all of it, the variables as files too"
    assert env(stage, "train-w-0")["VC_W_NUM"] == {"configMapKeyRef": {"name": "train-svc", "key": "VC_W_NUM"}}
    service = stage.get(kinds.SERVICE, "train")["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"] is False
    assert stage.names(kinds.NETWORK_POLICY) == ["train"]
    assert stage.get(kinds.JOB, "train")["status"]["controlledResources"] == {"plugin-svc": "svc"}
    stage.assert_settled()


def test_svc_follows_the_size_of_the_job_and_goes_with_its_end() -> None:
    stage = play({"svc": ["--publish-not-ready-addresses", "--disable-network-policy=true"]})
    assert stage.get(kinds.SERVICE, "train")["spec"]["publishNotReadyAddresses"] is True
    assert stage.names(kinds.NETWORK_POLICY) == []
    stage.change(kinds.JOB, "train", {"spec": {"tasks": [task("w", 3)]}})
    assert stage.get(kinds.CONFIG_MAP, "train-svc")["data"]["VC_W_NUM"] == "3"
    stage.pods("Running")
    stage.pods("Succeeded")
    assert stage.names(kinds.SERVICE) == stage.names(kinds.CONFIG_MAP) == []
    assert "controlledResources" not in stage.get(kinds.JOB, "train")["status"]


def test_svc_may_leave_the_variables_out() -> None:
    stage = play({"svc": ["--inject-hosts-env=false"]})
    assert env(stage, "train-w-0") == {}
    assert stage.get(kinds.POD, "train-w-0")["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/volcano"
    assert "VC_W_HOSTS" in stage.get(kinds.CONFIG_MAP, "train-svc")["data"]


def test_svc_admits_the_jobs_own_pods_only() -> None:
    stage = play({"svc": []})
    own = {"volcano.sh/job-name": "train", "volcano.sh/job-namespace": "default"}
    assert labels_of(stage.get(kinds.POD, "train-w-0")).items() >= own.items()
    assert stage.get(kinds.NETWORK_POLICY, "train")["spec"] == {
        "podSelector": {"matchLabels": own},
        "ingress": [{"from": [{"podSelector": {"matchLabels": own}}]}],
        "policyTypes": ["Ingress"],
    }
    assert stage.get(kinds.SERVICE, "train")["spec"] == {
        "clusterIP": "None",
        "selector": own,
        "publishNotReadyAddresses": False,
        "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
    }


def test_what_a_plugin_made_is_made_again_when_it_is_lost() -> None:
    stage = play({"svc": [], "ssh": []})
    made = [(kinds.SERVICE, "train"), (kinds.NETWORK_POLICY, "train"), (kinds.CONFIG_MAP, "train-svc"), (kinds.SECRET, "train-ssh")]
    for kind, name in made:
        assert stage.get(kind, name)["metadata"]["ownerReferences"][0]["uid"] == "uid-train"
        stage.delete(kind, name)
        assert stage.names(kind) == [name]


def test_what_somebody_else_has_under_a_plugins_name_stays() -> None:
    meta = {"name": "train", "namespace": "default", "uid": "uid-by-hand"}
    by_hand = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"port": 80}]}}
    stage = Stage(queue(), by_hand, vcjob(tasks=[task("w", 2)], plugins={"svc": [], "ssh": []}))
    stage.let_in()
    stage.pods("Running")
    stage.pods("Succeeded")
    assert stage.get(kinds.JOB, "train")["status"]["state"]["phase"] == "Completed"
    assert stage.names(kinds.SERVICE) == ["train"] and stage.names(kinds.NETWORK_POLICY) == stage.names(kinds.SECRET) == []


def test_hosts_are_called_as_the_template_says() -> None:
    named = task("m")
    named["template"]["spec"] |= {"hostname": "head", "subdomain": "net"}
    stage = play({"svc": []}, named, task("w"))
    assert stage.get(kinds.CONFIG_MAP, "train-svc")["data"]["m.host"] == "head.net"
    pod = stage.get(kinds.POD, "train-m-0")["spec"]
    assert (pod["hostname"], pod["subdomain"]) == ("head", "net")


def test_ssh_hands_out_one_key_pair() -> None:
    stage = play({"ssh": []})
    data = {name: base64.b64decode(text).decode() for name, text in stage.get(kinds.SECRET, "train-ssh")["data"].items()}
    assert (data["id_rsa"], data["id_rsa.pub"], data["authorized_keys"]) == ("private", "public", "public")
    hosts = "Host train-w-0\n  HostName train-w-0.train\n  Port 22\nHost train-w-1\n  HostName train-w-1.train\n  Port 22\n"
    assert data["config"] == f"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n{hosts}"
    pod = stage.get(kinds.POD, "train-w-0")["spec"]
    items = [{"key": name, "path": f".ssh/{name}"} for name in data]
    assert pod["volumes"] == [{"name": "train-ssh", "secret": {"secretName": "train-ssh", "items": items, "defaultMode": 0o600}}]
    own_folder = {"name": "train-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}
    assert pod["containers"][0]["volumeMounts"] == [own_folder], "the volume itself is writable by all, and sshd would not trust it"
    stage.assert_settled()
    own = play({"ssh": ["--ssh-private-key=mine", "--ssh-public-key=yours", "--ssh-key-file-path=/home/me", "--ssh-port=2222"]})
    assert "  Port 2222\n" in base64.b64decode(own.get(kinds.SECRET, "train-ssh")["data"]["config"]).decode()
    assert base64.b64decode(own.get(kinds.SECRET, "train-ssh")["data"]["id_rsa"]) == b"mine"
    assert own.get(kinds.POD, "train-w-0")["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/home/me"


def test_a_new_key_pair_can_be_used_by_ssh() -> None:
    pair = rsa_key_pair()
    assert pair.private_pem.startswith("-----BEGIN RSA PRIVATE KEY-----") and pair.public_openssh.startswith("ssh-rsa ")


def test_tensorflow_tells_every_pod_the_cluster() -> None:
    stage = play({"tensorflow": ["--worker=w"]}, task("ps"), task("w", 2))
    config = json.loads(env(stage, "train-w-1")["TF_CONFIG"])
    assert config["cluster"] == {"ps": ["train-ps-0.train:2222"], "worker": ["train-w-0.train:2222", "train-w-1.train:2222"]}
    assert config["task"] == {"type": "worker", "index": 1}
    assert stage.names(kinds.SERVICE) == ["train"]
    assert "TF_CONFIG" not in env(play({"tensorflow": []}, task("ps")), "train-ps-0")


def test_pytorch_ranks_the_master_before_the_workers() -> None:
    stage = play({"pytorch": ["--wait-master-enabled"]}, task("master"), task("worker", 2), task("other"))
    assert {name: env(stage, "train-worker-1")[name] for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")} == {
        "MASTER_ADDR": "train-master-0.train",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "RANK": "2",
    }
    assert env(stage, "train-master-0")["RANK"] == "0"
    assert "RANK" not in env(stage, "train-other-0")
    port = {"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}
    assert stage.get(kinds.POD, "train-worker-0")["spec"]["containers"][0]["ports"] == [port]
    assert stage.names(kinds.SERVICE) == ["train"], "its pods have to find each other"
    assert stage.get(kinds.POD, "train-worker-0")["spec"]["initContainers"][0]["name"] == "wait-for-master"
    assert "initContainers" not in stage.get(kinds.POD, "train-master-0")["spec"]


def test_mpi_tells_the_master_its_workers() -> None:
    stage = play({"mpi": ["--worker=w"]}, task("master"), task("w", 2))
    assert env(stage, "train-master-0")["MPI_HOST"] == "train-w-0.train,train-w-1.train"
    assert stage.names(kinds.SECRET) == ["train-ssh"]
    named = {f"plugin-{name}": name for name in ("mpi", "ssh", "svc")}
    assert stage.get(kinds.JOB, "train")["status"]["controlledResources"] == named
    port = {"name": "mpijob-port", "containerPort": 22, "protocol": "TCP"}
    assert stage.get(kinds.POD, "train-w-0")["spec"]["containers"][0]["ports"] == [port]


def test_ray_starts_a_head_and_its_workers() -> None:
    head, worker = task("head"), task("worker")
    for each in (head, worker):
        each["template"]["spec"]["containers"][0]["name"] = each["name"]
    stage = play({"ray": []}, head, worker)
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001"
    join = "ray start --block --address=train-head-0.train:6379"
    for role, command in (("head", start), ("worker", join)):
        assert stage.get(kinds.POD, f"train-{role}-0")["spec"]["containers"][0]["command"] == ["sh", "-c", command]
    assert stage.names(kinds.SERVICE) == ["train", "train-head-svc"]
    ports = {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
    assert stage.get(kinds.SERVICE, "train-head-svc")["spec"] == {
        "selector": {"volcano.sh/job-name": "train", "volcano.sh/job-namespace": "default", "volcano.sh/task-spec": "head"},
        "ports": [{"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in ports.items()],
    }
    opened = stage.get(kinds.POD, "train-head-0")["spec"]["containers"][0]["ports"]
    assert {each["name"]: each["containerPort"] for each in opened} == ports
    named = {"plugin-ray": "ray", "plugin-svc": "svc"}
    assert stage.get(kinds.JOB, "train")["status"]["controlledResources"] == named
    stage.pods("Running")
    stage.pods("Succeeded")
    assert stage.names(kinds.SERVICE) == []


def test_hcclrank_counts_masters_first_and_believes_a_stated_rank() -> None:
    stated = task("worker")
    stated["template"]["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "7"}]
    stage = play({"hcclrank": []}, task("master"), stated)
    assert stage.get(kinds.POD, "train-worker-0")["metadata"]["annotations"]["hccl/rankIndex"] == "7"
    assert stage.get(kinds.POD, "train-master-0")["metadata"]["annotations"]["hccl/rankIndex"] == "0"
    plain = play({"hcclrank": []}, task("master"), task("worker", 2), task("other"))
    assert plain.get(kinds.POD, "train-worker-1")["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    assert "hccl/rankIndex" not in plain.get(kinds.POD, "train-other-0")["metadata"]["annotations"]


def test_ringsconfigmap_gives_every_container_a_file_to_be_filled_in() -> None:
    stage = play({"ringsconfigmap": []}, task("w", 2))
    made = stage.get(kinds.CONFIG_MAP, "rings-config-train")
    assert made["data"] == {"hccl.json": '{"status":"initializing"}'} and "annotations" not in made["metadata"]
    assert labels_of(made)["ring-controller.atlas"] == "ascend-910b"
    pod = stage.get(kinds.POD, "train-w-1")["spec"]
    assert pod["volumes"] == [{"name": "ascend-910-config", "configMap": {"name": "rings-config-train"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "ascend-910-config", "mountPath": "/user/serverid/devindex/config"}]
    stage.change(kinds.CONFIG_MAP, "rings-config-train", {"data": {"hccl.json": "filled in"}})
    stage.pods("Running")
    assert stage.get(kinds.CONFIG_MAP, "rings-config-train")["data"] == {"hccl.json": "filled in"}
    stage.pods("Succeeded")
    assert stage.names(kinds.CONFIG_MAP) == []


def test_ringsconfigmap_is_called_and_filled_as_its_arguments_say() -> None:
    named = ["-configmap-name-template", "my-{{.Name}}-{{ .Namespace }}-{{.UID}}", "-volume-name", "v", "-mount-path", "/own"]
    texts = ["-configmap-labels", '{"team":"ai"}', "-configmap-annotations", '{"by":"hand"}', "-configmap-data", '{"a.json":"{}"}']
    stage = play({"ringsconfigmap": [*named, *texts]})
    made = stage.get(kinds.CONFIG_MAP, "my-train-default-uid-train")
    assert (labels_of(made)["team"], made["metadata"]["annotations"], made["data"]) == ("ai", {"by": "hand"}, {"a.json": "{}"})
    assert stage.get(kinds.POD, "train-w-0")["spec"]["containers"][0]["volumeMounts"] == [{"name": "v", "mountPath": "/own"}]
    odd = play({"ringsconfigmap": ["-configmap-data=none"]})
    assert list(odd.get(kinds.CONFIG_MAP, "rings-config-train")["data"]) == ["hccl.json"], "jobs from before admission knew of it run on"


def test_arguments_are_read_like_flags() -> None:
    defaults = {"a": "1", "b": "false", "c": ""}
    assert flags(["--a=2", "-b", "--c", "x", "--unknown=3"], defaults) == {"a": "2", "b": "true", "c": "x"}
    assert flags(["-b", "--a", "5"], defaults) == {"a": "5", "b": "true", "c": ""}
    assert flags([], defaults) == defaults


def test_a_port_that_is_none_is_passed_over() -> None:
    """Jobs from before admission knew of it run on."""
    stage = play({"pytorch": ["--port=many"], "ray": ["--port=0"], "mpi": ["--port=-1"]}, task("master"), task("worker"))
    assert env(stage, "train-worker-0")["MASTER_PORT"] == "23456"
    ports = [each["containerPort"] for each in stage.get(kinds.POD, "train-master-0")["spec"]["containers"][0]["ports"]]
    assert ports == [22, 23456]
    assert json.loads(env(play({"tensorflow": ["--port=x"]}, task("ps", 2)), "train-ps-0")["TF_CONFIG"])["cluster"]["ps"][0].endswith(
        ":2222"
    )
