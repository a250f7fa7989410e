"""kube-apiserver and etcd, for a benchmark kube-scheduler too, built with Go at the versions of server/go.mod and kept in a cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

KUBERNETES = "1.36.1"
ETCD = "3.6.8"
SOURCE = Path(__file__).parent / "server"
VERSION = "k8s.io/component-base/version"
STAMP = {"gitVersion": f"v{KUBERNETES}", "gitMajor": "1", "gitMinor": KUBERNETES.split(".")[1]}
STAMPED = " ".join(["-s -w", *(f"-X {VERSION}.{name}={value}" for name, value in STAMP.items())])
LINK = {"etcd": "-s -w", "kube-apiserver": STAMPED, "kube-scheduler": STAMPED}
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
NEEDED = ("etcd", "kube-apiserver")


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "pumice", f"kube-apiserver-{KUBERNETES}-etcd-{ETCD}")


def why_not(names: Iterable[str] = NEEDED) -> str:
    """Why the programs cannot be had on this machine; empty if they can."""
    missing = [name for name in names if not (cache_folder() / name).exists()]
    if not missing or shutil.which("go"):
        return ""
    return (
        f"there is no `go` here to build {' and '.join(missing)} (Kubernetes {KUBERNETES}, etcd {ETCD}), and not in {cache_folder()} either"
    )


def program(name: str) -> Path:
    """The path of a program, built if need be (the API server takes about ten minutes of processor time, once, whoever asks first)."""
    path = cache_folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _build(name, path)
    return path


def _build(name: str, path: Path) -> None:
    part = path.with_name(f"{name}.{os.getpid()}")
    command = ["nice", "-n", "19", "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", LINK[name], "-o", str(part)]
    try:
        subprocess.run([*command, PACKAGES[name]], cwd=SOURCE, env=os.environ | {"CGO_ENABLED": "0"}, check=True)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
