"""etcd, kube-apiserver, the controller manager and kube-scheduler (which places Pumice's own pods) in the first node's network."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from pumice.client.certificates import Authority, private_pem
from tests.cluster.binaries import programs
from tests.node.sandbox import Process, Sandbox

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "helm", "coredns")
NETWORK = "node-1"
ADDRESS, FIRST_SERVICE, DNS = "10.77.0.1", "10.79.0.1", "10.79.0.10"
SERVICES, PODS = "10.79.0.0/16", "10.78.0.0/16"
SERVER = f"https://{ADDRESS}:6443"
NAMED = [".".join(["kubernetes", "default", "svc", "cluster", "local"][:parts]) for parts in (1, 2, 3, 5)]
HOSTS = (*NAMED, ADDRESS, FIRST_SERVICE, "127.0.0.1")
ETCD = "http://127.0.0.1:2379"
#: user to the group that the certificate names
USERS = {"admin": "system:masters", "system:kube-controller-manager": "", "system:kube-scheduler": "", "system:kube-proxy": ""}
READY_S = 120.0


class ControlPlane:
    """`folder` has the certificates, kubeconfigs and etcd's data."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.folder = sandbox.data / "control-plane"
        self.folder.mkdir()
        self._authority = Authority(time.time(), days=2)
        self.programs = programs(*NAMES)
        self._started: list[Process] = []

    def start(self) -> None:
        self._write_files()
        flags = {
            "etcd": self._etcd(),
            "kube-apiserver": self._apiserver(),
            "kube-controller-manager": self._controller_manager(),
            "kube-scheduler": [f"--kubeconfig={self.kubeconfig('system:kube-scheduler')}", "--leader-elect=false"],
        }
        for name, given in flags.items():
            self._started.append(self._sandbox.start(name, self.programs[name], *given, network=NETWORK))
            if name == "kube-apiserver":
                self.wait(lambda: "ok" in self.kubectl("get", "--raw=/readyz"), "the API server")

    def wait(self, question: Callable[[], bool], what: str, limit_s: float = READY_S) -> None:
        """Ask again and again; a program that has ended ends the waiting."""
        deadline = time.monotonic() + limit_s
        told = ""
        while time.monotonic() < deadline:
            for process in self._started:
                if not process.running():
                    raise RuntimeError(f"{process.name} has ended:\n{process.last_words()}")
            try:
                if question():
                    return
            except (RuntimeError, OSError) as error:
                told = str(error)
            time.sleep(0.2)
        raise RuntimeError(f"{what}: not ready within {limit_s:.0f} s. {told}")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        config = f"--kubeconfig={self.kubeconfig('admin')}"
        return self._sandbox.run(self.programs["kubectl"], config, *arguments, network=NETWORK, stdin=stdin, timeout_s=120)

    def kubeconfig(self, user: str, *groups: str) -> Path:
        """A kubeconfig file with a certificate of the user's own, made when it is first asked for."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        if not path.exists():
            own = groups or tuple(filter(None, (USERS[user],)))
            pair = self._authority.issue(user, groups=own)
            body: dict[str, Any] = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": SERVER, "certificate-authority-data": _data(self._authority.pem)}}],
                "users": [{"name": "x", "user": {"client-certificate-data": _data(pair.certificate), "client-key-data": _data(pair.key)}}],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            }
            path.write_text(yaml.safe_dump(body))
        return path

    def _write_files(self) -> None:
        server = self._authority.issue("kube-apiserver", *HOSTS)
        to_kubelets = self._authority.issue("kube-apiserver-kubelet-client", groups=("system:masters",))
        files = {
            "ca.pem": self._authority.pem,
            "server.pem": server.certificate,
            "server.key": server.key,
            "kubelets.pem": to_kubelets.certificate,
            "kubelets.key": to_kubelets.key,
            "accounts.key": private_pem(ec.generate_private_key(ec.SECP256R1())),
        }
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def _etcd(self) -> list[str]:
        urls = [f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"]
        return [f"--data-dir={self.folder / 'etcd'}", *urls, "--unsafe-no-fsync", "--log-level=error"]

    def _apiserver(self) -> list[str]:
        here = self.folder
        return [
            f"--etcd-servers={ETCD}",
            f"--advertise-address={ADDRESS}",
            f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            f"--client-ca-file={here / 'ca.pem'}",
            f"--tls-cert-file={here / 'server.pem'}",
            f"--tls-private-key-file={here / 'server.key'}",
            f"--kubelet-client-certificate={here / 'kubelets.pem'}",
            f"--kubelet-client-key={here / 'kubelets.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={here / 'accounts.key'}",
            f"--service-account-signing-key-file={here / 'accounts.key'}",
            # a lost node's pods are let go after these, instead of five minutes
            "--default-unreachable-toleration-seconds=15",
            "--default-not-ready-toleration-seconds=15",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            "--use-service-account-credentials",
            f"--root-ca-file={self.folder / 'ca.pem'}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            "--leader-elect=false",
            "--node-monitor-grace-period=20s",
        ]


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
