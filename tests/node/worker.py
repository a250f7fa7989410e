"""A node: containerd, kubelet and kube-proxy in a network of its own, with a control group of its own.

Images and containers are in memory (/run): the disk would be waited for at the end of each container.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.node.control_plane import DNS, PODS, SERVICES, ControlPlane
from tests.node.images import PAUSE
from tests.node.sandbox import Process, Sandbox

CONTAINERD = """version = 2
root = "/run/{name}/root"
state = "/run/{name}/state"
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{state}/cni"
"""
CLIENTS_S = 60


class Worker:
    """Node `number`, from 1 on. Nodes are named and addressed by their numbers."""

    def __init__(self, sandbox: Sandbox, control_plane: ControlPlane, number: int) -> None:
        self.name = f"node-{number}"
        self.address = f"10.77.0.{number}"
        self.pods = f"10.78.{number}.0/24"
        self._sandbox = sandbox
        self._control_plane = control_plane
        self._folder = sandbox.data / self.name
        self._socket = Path(f"/run/{self.name}.sock")
        self.kubelet: Process | None = None

    def start(self) -> None:
        for name in ("containerd/cni", "kubelet", "pods"):
            (self._folder / name).mkdir(parents=True)
        self._write_files()
        state = self._folder / "containerd"
        self._sandbox.start(f"{self.name}-containerd", "containerd", "--config", state / "config.toml", network=self.name)
        self._control_plane.wait(lambda: bool(self.ctr("version")), "containerd", CLIENTS_S)
        proxy = self._control_plane.programs["kube-proxy"]
        self._sandbox.start(f"{self.name}-kube-proxy", proxy, f"--config={self._folder / 'kube-proxy.yaml'}", network=self.name)
        self.start_kubelet()

    def start_kubelet(self) -> None:
        """For the first time, or again."""
        self.kubelet = self._sandbox.start(
            f"{self.name}-kubelet",
            self._control_plane.programs["kubelet"],
            f"--config={self._folder / 'kubelet.yaml'}",
            f"--kubeconfig={self._control_plane.kubeconfig(f'system:node:{self.name}', 'system:nodes')}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            f"--root-dir={self._folder / 'kubelet'}",
            f"--cert-dir={self._folder / 'kubelet/pki'}",
            network=self.name,
        )

    def ctr(self, *arguments: str) -> str:
        return self._sandbox.run("ctr", "--address", self._socket, "-n", "k8s.io", *arguments, timeout_s=CLIENTS_S)

    def load(self, layouts: Sequence[Path]) -> None:
        """Every image of these folders."""
        for layout in layouts:
            load = self._sandbox.command("ctr", "--address", self._socket, "-n", "k8s.io", "images", "import", "-")
            with subprocess.Popen(["tar", "-C", str(layout), "-cf", "-", "."], stdout=subprocess.PIPE) as packed:
                done = subprocess.run(load, stdin=packed.stdout, capture_output=True, text=True)
            if done.returncode or packed.returncode:
                raise RuntimeError(f"the images of {layout} were not loaded:\n{done.stderr}")

    def _write_files(self) -> None:
        state = self._folder / "containerd"
        (state / "config.toml").write_text(CONTAINERD.format(name=self.name, state=state, socket=self._socket, pause=PAUSE))
        addresses = {"type": "host-local", "ranges": [[{"subnet": self.pods}]], "dataDir": str(state / "addresses")}
        gateway = {"isGateway": True, "isDefaultGateway": True, "hairpinMode": True}
        bridge = {"type": "bridge", "bridge": "cni0", **gateway, "ipam": addresses}
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        (state / "cni/10-pods.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}))
        (self._folder / "resolv.conf").write_text("")
        (self._folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        (self._folder / "kube-proxy.yaml").write_text(yaml.safe_dump(self._kube_proxy()))

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._control_plane.folder / "ca.pem")},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._sandbox.make_cgroup(self.name),
            "clusterDNS": [DNS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "podLogsDir": str(self._folder / "pods"),
            "resolvConf": str(self._folder / "resolv.conf"),
            "volumePluginDir": str(self._folder / "plugins"),
        }

    def _kube_proxy(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "bindAddress": self.address,
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig("system:kube-proxy"))},
            "clusterCIDR": PODS,
            # these are the machine's, and cannot be set in a network of our own
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "hostnameOverride": self.name,
            "mode": "iptables",
        }


def connect(sandbox: Sandbox, workers: Sequence[Worker]) -> None:
    """The nodes' networks: two, with a cable between them and no way out."""
    first, second = workers
    for worker in workers:
        sandbox.run("ip", "netns", "add", worker.name)
    sandbox.run("ip", "link", "add", "cable-1", "netns", first.name, "type", "veth", "peer", "name", "cable-2", "netns", second.name)
    for here, other, cable in ((first, second, "cable-1"), (second, first, "cable-2")):

        def ip(*arguments: str, network: str = here.name) -> None:
            sandbox.run("ip", *arguments, network=network)

        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{here.address}/24", "dev", cable)
        ip("link", "set", cable, "up")
        ip("route", "replace", "blackhole", "default")
        ip("route", "add", other.pods, "via", other.address)
        ip("route", "add", SERVICES, "dev", cable)  # else services are refused before kube-proxy's rules see them
        for name in ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"):
            sandbox.run("sysctl", "-qw", f"{name}=1", network=here.name)
