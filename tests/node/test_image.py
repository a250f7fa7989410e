"""The images as they are built, started as a kubelet starts them: as nobody, on a file system that cannot be written, without any network.

The programs get the arguments of the charts of Volcano's releases, and of our own. All that they reach is an API server on the loopback
address of the same network, which has no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.server_process import Running, in_thread, kubeconfig_of
from tests.deploy.test_volcano_arguments import RELEASES, files_of_a_pod, service_at
from tests.live_controllers.test_controllers_command import page, wait_for
from tests.node import images
from tests.node.images import PRODUCT, ROOT, TARGETS
from tests.node.sandbox import IMAGE_PROGRAMS, Process, Sandbox, why_not

pytestmark = pytest.mark.image
USER = 10001
READY_S = 60.0
DEVICES = {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}
FIXED = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    DEVICES,
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
]
#: what Deployments mount, of one folder
MOUNTED = ("/volcano.scheduler", "/admission.local.config/configmap", "/admission.local.config/certificates", "/plugins", "/etc/kubernetes")


class Containers:
    """Containers of the images, in a sandbox whose network is a loopback device."""

    def __init__(self, sandbox: Sandbox, layout: Path) -> None:
        self._sandbox = sandbox
        self._layout = layout
        self._unpacked: set[str] = set()
        self._count = 0

    def start(self, image: str, arguments: list[str], files: Path) -> Process:
        self._count += 1
        name = f"c{self._count}"
        bundle = self._sandbox.data / name
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self._specification(image, arguments, files, name)))
        return self._sandbox.start(name, "runc", "--root", self._sandbox.data / "runc", "run", "--bundle", bundle, name)

    def end(self, container: Process) -> int:
        """As a kubelet does it. What the program returned."""
        self._sandbox.run("runc", "--root", self._sandbox.data / "runc", "kill", container.name, "TERM")
        return container.wait()

    def _specification(self, image: str, arguments: list[str], files: Path, name: str) -> dict[str, Any]:
        found = images.configuration(self._layout, image)
        mounts = [{"destination": each, "type": "bind", "source": str(files), "options": ["bind", "ro"]} for each in MOUNTED]
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": USER, "gid": USER},
                "args": [*found["Entrypoint"], *arguments],
                "env": found["Env"],
                "cwd": found["WorkingDir"],
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": self._root(image), "readonly": True},
            "mounts": [*FIXED, *mounts],
            "linux": {
                "namespaces": [{"type": each} for each in ("pid", "mount", "ipc", "uts")],
                "cgroupsPath": self._sandbox.make_cgroup(name),
            },
        }

    def _root(self, image: str) -> str:
        """Its files. Images of the same layers, which differ in their entry points, have the same."""
        layers = images.layers(self._layout, image)
        root = f"/run/root-{'-'.join(layer.name[:8] for layer in layers)}"
        if root not in self._unpacked:
            self._sandbox.run("mkdir", root)
            for layer in layers:
                self._sandbox.run("tar", "-C", root, "-xf", layer)
            removed = self._sandbox.run("find", root, "-name", ".wh.*")
            assert not removed, f"a layer removes files of another, which is not done here: {removed}"
            self._unpacked.add(root)
        return root


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    reason = why_not(IMAGE_PROGRAMS)
    if reason:
        pytest.fail(reason, pytrace=False)
    folder = tmp_path_factory.mktemp("image")
    layout = images.product(folder)
    with Sandbox(folder / "offline") as sandbox, sandbox.entered():
        yield Containers(sandbox, layout)


@pytest.fixture
def server() -> Iterator[Running]:
    with in_thread() as running:
        running.call(lambda store: store.create("namespaces", {"metadata": {"name": "volcano-system"}}))
        running.call(lambda store: store.create("services", service_at(8443), "volcano-system"))
        yield running


def our_arguments() -> dict[str, list[str]]:
    """Of our own manifests, without the command."""
    found = {}
    for name in TARGETS:
        items = yaml.safe_load_all((ROOT / f"deploy/manifests/{name}.yaml").read_text())
        (deployment,) = (item for item in items if item["kind"] == "Deployment")
        found[name] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


CHARTS = {**{release: found["chart"] for release, found in RELEASES.items()}, "our own": our_arguments()}


@pytest.mark.parametrize("chart", CHARTS)
def test_the_programs_work_read_only_and_without_network(chart: str, containers: Containers, server: Running, tmp_path: Path) -> None:
    files_of_a_pod(tmp_path)
    kubeconfig_of(server, tmp_path)
    for path in (tmp_path, *tmp_path.iterdir()):
        path.chmod(0o755)  # the programs are nobody
    started: dict[str, tuple[Process, int]] = {}
    for number, (program, arguments) in enumerate(CHARTS[chart].items()):
        healthz = 11251 + number
        own = ["--kubeconfig=/etc/kubernetes/kubeconfig", f"--healthz-address=127.0.0.1:{healthz}"]
        own += [] if program == "webhooks" else [f"--listen-address=127.0.0.1:{8080 + number}"]
        image = PRODUCT if chart == "our own" else TARGETS[program]
        started[program] = (containers.start(image, [*arguments, *own], tmp_path), healthz)
    with ExitStack() as ends:
        for process, _ in started.values():
            ends.callback(process.kill)
        for process, healthz in started.values():
            try:
                assert wait_for(lambda port=healthz: page(port, "/readyz") == "ok", READY_S)
            except AssertionError:
                raise AssertionError(process.last_words()) from None
        for process, _ in started.values():
            assert containers.end(process) == 0, process.last_words()
            assert "Read-only file system" not in process.last_words()


def test_images_that_a_process_uses_stay_in_the_cache_when_others_are_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(images, "cache_folder", lambda: tmp_path / "programs")

    def kept(state: str) -> Path:
        return images._kept("product", state, tmp_path, lambda _, layout: layout.mkdir())

    unused = tmp_path / "images/product-unused"
    unused.mkdir(parents=True)
    used = kept("used")
    newest = kept("newest")
    assert (unused.exists(), used.exists(), newest.exists()) == (False, True, True)
