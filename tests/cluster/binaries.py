"""The programs of a real cluster, built with Go at the versions of the modules here and kept in a cache.

`server` has Kubernetes' own programs and etcd, `server-1.37` those of the release that has gangs of its own. `addons` has helm and the
cluster's DNS server, which want other versions of the same packages; `actionlint` checks workflows, `dashboard` what Grafana shows.
Operators of others are built in their own modules. Whoever needs a program first builds it. Programs that are asked for together are one
build: they share most of their packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

KUBERNETES = "1.36.1"
NEXT = "1.37.2"
ETCD = "3.6.8"
HELM = "3.21.4"
JOBSET = "sigs.k8s.io/jobset@v0.11.0"
KUEUE = "sigs.k8s.io/kueue@v0.17.0"
KUBERAY = "github.com/ray-project/kuberay/ray-operator@v1.6.0"
NEEDED = ("etcd", "kube-apiserver")
HERE = Path(__file__).parent


class Program(NamedTuple):
    package: str
    module: str = "server"  #: a folder here, or a published module with its version
    built_as: str = ""  #: Go's name for it, if it is another than ours
    is_test: bool = False  #: the tests of the package are the program
    sources: tuple[str, ...] = ()  #: files here that decide what is built, besides the versions that the cache's folder names

    def kept_as(self, name: str) -> str:
        """The name in the cache. It has a digest of what the program is built of, so that a change builds it anew."""
        parts = [self.module.encode()] if "@" in self.module else [(HERE / path).read_bytes() for path in self.sources]
        return f"{name}-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}" if parts else name

    def build(self, folder: Path, name: str) -> Path:
        return folder / (f"{Path(self.package).name}.test" if self.is_test else self.built_as or name)


def _kubernetes(name: str) -> Program:
    return Program(f"k8s.io/kubernetes/cmd/{name}")


def _next(package: str, built_as: str = "", *, is_test: bool = False) -> Program:
    return Program(f"k8s.io/kubernetes/{package}", "server-1.37", built_as, is_test)


def _suite(package: str, module: str) -> Program:
    return Program(f"./{package}", module, is_test=True)


PROGRAMS = {
    "etcd": Program("go.etcd.io/etcd/server/v3", built_as="server"),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kube-proxy": _kubernetes("kube-proxy"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kubectl": _kubernetes("kubectl"),
    "kubectl-convert": _kubernetes("kubectl-convert"),
    "kubelet": _kubernetes("kubelet"),
    "clientgo": Program("./clientgo", sources=("server/clientgo/main.go",)),  # a controller written with client-go
    "e2e.test": Program("k8s.io/kubernetes/test/e2e", is_test=True),
    "jobset": Program(".", JOBSET),
    "jobset-e2e": _suite("test/e2e", JOBSET),
    "kueue": Program("./cmd/kueue", KUEUE),
    "kueue-e2e": _suite("test/e2e/singlecluster", KUEUE),
    "kueue-scheduler": _suite("test/integration/singlecluster/scheduler", KUEUE),
    "kueue-core": _suite("test/integration/singlecluster/controller/core", KUEUE),
    "spark-operator": Program("./cmd/operator", "github.com/kubeflow/spark-operator/v2@v2.3.0", "operator"),
    "workflow-controller": Program("./cmd/workflow-controller", "github.com/argoproj/argo-workflows/v3@v3.7.4"),
    "trainer": Program("./cmd/trainer-controller-manager", "github.com/kubeflow/trainer/v2@v2.1.0", "trainer-controller-manager"),
    "kuberay": Program(".", KUBERAY, "ray-operator"),
    "kuberay-controllers": _suite("controllers/ray", KUBERAY),
    "kuberay-e2e": _suite("test/e2e", KUBERAY),
    **{f"{name}-{NEXT}": _next(f"cmd/{name}", name) for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
    f"e2e.test-{NEXT}": _next("test/e2e", is_test=True),
    "coredns": Program("./coredns", "addons", sources=("addons/go.mod", "addons/coredns/main.go")),
    "helm": Program("helm.sh/helm/v3/cmd/helm", "addons", sources=("addons/go.mod",)),
    "actionlint": Program("github.com/rhysd/actionlint/cmd/actionlint", "actionlint", sources=("actionlint/go.mod",)),
    "dashboard": Program(".", "dashboard", sources=("dashboard/go.mod", "dashboard/main.go")),
}


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "pumice", f"kube-apiserver-{KUBERNETES}-etcd-{ETCD}")


def why_not(names: Iterable[str] = NEEDED) -> str:
    """Why the programs cannot be had on this machine; empty if they can."""
    missing = [name for name in names if not _path(name).exists()]
    if not missing or shutil.which("go"):
        return ""
    return (
        f"there is no `go` here to build {' and '.join(missing)} (Kubernetes {KUBERNETES}, etcd {ETCD}), and not in {cache_folder()} either"
    )


def _path(name: str) -> Path:
    return cache_folder() / PROGRAMS[name].kept_as(name)


def program(name: str) -> Path:
    """The path of a program, built if need be."""
    return programs(name)[name]


def programs(*names: str) -> dict[str, Path]:
    """The paths of programs, built if need be (the API server takes about ten minutes of processor time, once, whoever asks first)."""
    paths = {name: _path(name) for name in sorted(names)}
    cache_folder().mkdir(parents=True, exist_ok=True)
    with ExitStack() as locks:
        for path in paths.values():
            lock = locks.enter_context(path.with_name(f"{path.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [name for name, path in paths.items() if not path.exists()]
        for module in sorted({PROGRAMS[name].module for name in missing}):
            _build(module, [name for name in missing if PROGRAMS[name].module == module])
    return paths


def module_folder(module: str) -> Path:
    """Where the source of a Go module is, at the version that the programs are built of."""
    command = ["go", "mod", "download", "-json", module]
    found = subprocess.run(command, cwd=HERE / "server", check=True, capture_output=True, text=True)
    return Path(json.loads(found.stdout)["Dir"])


def module_of(name: str) -> Path:
    """Where the source of a program is that is built in a published module."""
    return _folder(PROGRAMS[name].module)


def _folder(module: str) -> Path:
    return module_folder(module) if "@" in module else HERE / module


def _link(module: str) -> str:
    """What the programs say of themselves."""
    release = NEXT if module == "server-1.37" else KUBERNETES
    stamp = {
        "k8s.io/component-base/version.gitVersion": f"v{release}",
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": release.split(".")[1],
        "helm.sh/helm/v3/internal/version.version": f"v{HELM}",
    }
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamp.items())])


def _build(module: str, names: list[str]) -> None:
    """All of one module together."""
    with tempfile.TemporaryDirectory(prefix="built-", dir=cache_folder()) as folder:
        options = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", _link(module), "-o", f"{folder}/"]
        for verb, is_test in ((["build"], False), (["test", "-c"], True)):
            packages = [PROGRAMS[name].package for name in names if PROGRAMS[name].is_test == is_test]
            if packages:
                command = ["nice", "-n", "19", "go", *verb, *options, *packages]
                subprocess.run(command, cwd=_folder(module), env=os.environ | {"CGO_ENABLED": "0"}, check=True)
        for name in names:
            PROGRAMS[name].build(Path(folder), name).rename(_path(name))
