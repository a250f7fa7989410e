"""A real kube-apiserver on a real etcd, on loopback, for as long as it is entered: no containers, no nodes, no controllers.

Users are bearer tokens: `admin` may do everything; the others may do what a test's RBAC objects give them. The API server can be killed and
started again in the middle of a story; it comes back on the same port with the same state.
"""

from __future__ import annotations

import base64
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from binaries import program
from cryptography.hazmat.primitives.asymmetric import ec

from pumice.client.access import Access
from pumice.client.certificates import Authority, private_pem
from pumice.client.resolve_access import find
from pumice.client.tls import Trust, context
from tests.ports import free_port

READY_S = 90.0
USERS = {
    "admin": ("admin", "system:masters"),
    "scheduler": ("system:serviceaccount:volcano-system:volcano-scheduler", "system:serviceaccounts"),
    "controllers": ("system:serviceaccount:volcano-system:volcano-controllers", "system:serviceaccounts"),
    "webhooks": ("system:serviceaccount:volcano-system:volcano-admission", "system:serviceaccounts"),
    "standby": ("standby", ""),
    "tenant": ("tenant", ""),
    "nobody": ("nobody", ""),
}


class RealCluster:
    """Two processes and a folder. `folder` is empty at the start and belongs to us. `audited` are users of whom every request is noted.

    `release` is the API server's, if it is another than usual, and `flags` are more of its flags.
    """

    def __init__(self, folder: Path, audited: Sequence[str] = (), release: str = "", flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self._server = f"kube-apiserver-{release}" if release else "kube-apiserver"
        self._flags = flags
        self._audited = [USERS[user][0] for user in audited]
        self.audit_log = folder / "audit.log"
        self.etcd_url, self._peer_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._port = free_port()
        self.server = f"https://127.0.0.1:{self._port}"
        self._authority = Authority(time.time(), days=2)
        self._etcd: subprocess.Popen[bytes] | None = None
        self._apiserver: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._write_files()
        try:
            self._etcd = self._start("etcd", self._etcd_flags())
            self.start_apiserver()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        _end(self._apiserver)
        _end(self._etcd)

    @property
    def apiserver_pid(self) -> int:
        assert self._apiserver is not None
        return self._apiserver.pid

    def start_apiserver(self) -> None:
        """Start it (again) and wait until it is ready."""
        self._apiserver = self._start("kube-apiserver", [*self._apiserver_flags(), *self._flags], self._server)
        self._wait_until_ready()

    def kill_apiserver(self) -> None:
        """End it as a power cut would."""
        assert self._apiserver is not None
        self._apiserver.kill()
        self._apiserver.wait()

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig file for one of the users."""
        path = self.folder / f"{user}.kubeconfig"
        authority = base64.b64encode(self._authority.pem).decode()
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": user,
            "clusters": [{"name": "real", "cluster": {"server": self.server, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": f"{user}-token"}}],
            "contexts": [{"name": user, "context": {"cluster": "real", "user": user}}],
        }
        if not path.exists():  # whole from its first moment: a program that starts may read it now
            path.with_suffix(".written").write_text(yaml.safe_dump(config))
            path.with_suffix(".written").rename(path)
        return path

    def access(self, user: str = "admin") -> Access:
        return find(str(self.kubeconfig(user)))

    def _write_files(self) -> None:
        pair = self._authority.issue("kube-apiserver", "127.0.0.1", "localhost")
        rows = [f'{user}-token,{name},{user},"{groups}"' for user, (name, groups) in USERS.items()]
        files = {
            "ca.pem": self._authority.pem,
            "server.pem": pair.certificate,
            "server.key": pair.key,
            "accounts.key": private_pem(ec.generate_private_key(ec.SECP256R1())),
            "tokens.csv": "\n".join(rows).encode(),
            "audit.yaml": yaml.safe_dump(self._audit_policy()).encode(),
        }
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def _audit_policy(self) -> dict[str, Any]:
        noted = [{"level": "Metadata", "users": self._audited, "omitStages": ["RequestReceived"]}] if self._audited else []
        return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [*noted, {"level": "None"}]}

    def _etcd_flags(self) -> list[str]:
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=default={self._peer_url}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=error",
        ]

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--client-ca-file={self.folder / 'ca.pem'}",
            f"--tls-cert-file={self.folder / 'server.pem'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'accounts.key'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--profiling=false",
            "--allow-privileged",
            *([f"--audit-policy-file={self.folder / 'audit.yaml'}", f"--audit-log-path={self.audit_log}"] if self._audited else []),
        ]

    def _start(self, name: str, flags: list[str], built_as: str = "") -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([program(built_as or name), *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _wait_until_ready(self) -> None:
        assert self._etcd is not None and self._apiserver is not None
        deadline = time.monotonic() + READY_S
        while not self._ready():
            for name, process in (("etcd", self._etcd), ("kube-apiserver", self._apiserver)):
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with code {process.returncode}:\n{self._last_words(name)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"kube-apiserver was not ready within {READY_S:.0f} s:\n{self._last_words('kube-apiserver')}")
            time.sleep(0.2)

    def _ready(self) -> bool:
        request = urllib.request.Request(f"{self.server}/readyz", headers={"Authorization": "Bearer admin-token"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.tls()))
        try:
            with direct.open(request, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def tls(self) -> ssl.SSLContext:
        return context(Trust(self._authority.pem), None)

    def _last_words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
