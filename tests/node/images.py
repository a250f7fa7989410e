"""Every image of the tests, built here: nothing is pulled. The product's are those of `make image`.

Their bases are made of Debian's packages: Python by mmdebstrap, busybox and CoreDNS of one program each. Images that belong together are
one folder (an OCI layout), which is kept in the cache under the digest of what it was made of.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.binaries import cache_folder, program
from tests.node.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
VERSION = "0.1.0"
PRODUCT = f"docker.io/pumice/pumice:{VERSION}"
TARGETS = {target: f"docker.io/pumice/pumice-{target}:{VERSION}" for target in ("scheduler", "controllers", "webhooks")}
CONTEXT = ("Makefile", "deploy/Dockerfile", "deploy/image", "requirements", "pyproject.toml", "README.md", "LICENSE", "src")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
BUSYBOX, PAUSE, COREDNS, SSH = (f"localhost/{name}:1" for name in ("busybox", "pause", "coredns", "ssh"))
RELEASE = "bookworm"
DEBIAN = (
    "mmdebstrap",
    "--quiet",
    "--variant=apt",
    "--include=python3-venv,python-is-python3",
    *(f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "locale", "man")),
    RELEASE,
)
PYTHON = "localhost/python"
Parts = tuple[str, ...]


def product(folder: Path) -> Path:
    """The image of all programs and, by their targets, those of each."""
    return _kept("product", _digest(ROOT, CONTEXT, DEBIAN), folder, _build_product)


def others(folder: Path) -> Path:
    """What pods of stories and of the cluster run, and an image with an SSH server."""
    return _kept("others", _digest(Path(__file__).parent, ("images.py",), DEBIAN), folder, _build_others)


def configuration(layout: Path, name: str) -> dict[str, Any]:
    """With what a container of an image begins: user, entry point, environment, working directory."""
    found: dict[str, Any] = _blob(layout, _manifest(layout, name)["config"])["config"]
    return found


def layers(layout: Path, name: str) -> list[Path]:
    """Archives that are unpacked one over the other."""
    return [_place(layout, each) for each in _manifest(layout, name)["layers"]]


def _manifest(layout: Path, name: str) -> Any:
    listed = json.loads((layout / "index.json").read_bytes())["manifests"]
    (found,) = (each for each in listed if each["annotations"]["org.opencontainers.image.ref.name"] == name)
    return _blob(layout, found)


def _blob(layout: Path, descriptor: dict[str, Any]) -> Any:
    return json.loads(_place(layout, descriptor).read_bytes())


def _place(layout: Path, descriptor: dict[str, Any]) -> Path:
    return layout / "blobs" / descriptor["digest"].replace(":", "/")


def _kept(name: str, digest: str, folder: Path, build: Callable[[Buildah, Path], None]) -> Path:
    """The layout out of the cache, built if need be, and this process's as long as it runs; older ones go that nobody has."""
    cache = cache_folder().with_name("images")
    cache.mkdir(parents=True, exist_ok=True)
    layout = cache / f"{name}-{digest}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not layout.exists():
            for old in cache.glob(f"{name}-*"):
                _remove_unused(old)
            part = cache / f"part-{os.getpid()}-{name}"
            try:
                with Sandbox(folder / f"images-{name}", online=True) as sandbox:
                    build(Buildah(sandbox), part)
                part.rename(layout)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        fcntl.flock(os.open(layout, os.O_RDONLY), fcntl.LOCK_SH)
    return layout


def _remove_unused(layout: Path) -> None:
    """Unless a process has it: tests of another state of the source, which run at the same time."""
    folder = os.open(layout, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(layout)
    except BlockingIOError:
        pass
    finally:
        os.close(folder)


def _digest(root: Path, names: Sequence[str], more: Parts) -> str:
    made = hashlib.sha256("\n".join(more).encode())
    for name in names:
        for path in sorted([root / name, *(root / name).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                made.update(f"{path.relative_to(root)}\n{path.stat().st_mode & 0o111}\n".encode() + path.read_bytes())
    return made.hexdigest()[:16]


class Buildah:
    """A store of images that goes with the sandbox: in memory, for each step is else waited for until the disk has it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.data = sandbox.data
        places = ("--root", "/run/store", "--runroot", "/run/runroot", "--storage-driver", "overlay")
        self._command = ("buildah", *places)

    def __call__(self, *arguments: str | Path, timeout_s: float = 900.0) -> str:
        return self._sandbox.run(*self._command, *arguments, timeout_s=timeout_s).strip()

    def run(self, *command: str | Path) -> str:
        return self._sandbox.run(*command)

    def make(self, *words: str) -> None:
        """A target of the Makefile that builds images, as people use it; only its store is ours."""
        engine = ("ENGINE=buildah", f"ENGINE_FLAGS={' '.join(self._command[1:])}")
        self._sandbox.run("env", "BUILDAH_ISOLATION=chroot", "BUILDAH_LAYERS=true", "make", "-C", ROOT, *engine, *words, timeout_s=900.0)

    @contextmanager
    def made(self, name: str, base: str = "scratch") -> Iterator[str]:
        """A container that becomes an image when the block ends."""
        container = self("from", "--pull-never", base)
        yield container
        self("commit", "--quiet", "--rm", container, name)

    def inside(self, container: str, *command: str) -> None:
        """Run something in a container, with the machine's network."""
        self("run", "--isolation=chroot", "--network=host", container, "--", *command)

    def export(self, layout: Path, *names: str) -> None:
        for name in names:
            self("push", "--quiet", "--disable-compression", name, f"oci:{layout}:{name}")


def _python(buildah: Buildah) -> str:
    """Debian with Python, by its digest. Downloads go through what the machine trusts."""
    kept = cache_folder().with_name("images") / f"python-{hashlib.sha256(' '.join(DEBIAN).encode()).hexdigest()[:16]}.tar"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            part = buildah.data / "python.tar"
            buildah.run(*DEBIAN, part)
            shutil.move(part, kept)
    with buildah.made(PYTHON) as container:
        buildah("add", "--quiet", container, kept, "/")
        if AUTHORITIES.exists():
            (buildah.data / "pip.conf").write_text(f"[global]\ncert = {AUTHORITIES}\n")
            buildah("copy", "--quiet", container, AUTHORITIES, AUTHORITIES)
            buildah("copy", "--quiet", container, buildah.data / "pip.conf", "/etc/pip.conf")
    return f"{PYTHON}@{buildah('images', '--format', '{{.Digest}}', PYTHON)}"


def _build_product(buildah: Buildah, layout: Path) -> None:
    buildah.make("image", f"BASE={_python(buildah)}", f"IMAGE={PRODUCT.rpartition(':')[0]}")
    buildah.export(layout, PRODUCT, *TARGETS.values())


def _build_others(buildah: Buildah, layout: Path) -> None:
    tools = buildah.data / "bin"
    tools.mkdir()
    shutil.copy(shutil.which("busybox") or "", tools / "busybox")
    for name in buildah.run(tools / "busybox", "--list").split():
        if name != "busybox":
            (tools / name).symlink_to("busybox")
    for image, entry in ((BUSYBOX, "[]"), (PAUSE, '["/bin/sleep", "2147483647"]')):
        with buildah.made(image) as container:
            buildah("copy", "--quiet", container, tools, "/bin")
            buildah("config", "--entrypoint", entry, "--env", "PATH=/bin", container)
    with buildah.made(COREDNS) as container:
        buildah("copy", "--quiet", container, program("coredns"), "/coredns")
        buildah("config", "--entrypoint", '["/coredns"]', container)
    with buildah.made(SSH, _python(buildah)) as container:
        buildah.inside(container, "apt-get", "update", "-q")
        buildah.inside(container, "apt-get", "install", "-q", "-y", "--no-install-recommends", "openssh-server", "openssh-client")
    buildah.export(layout, BUSYBOX, PAUSE, COREDNS, SSH)
