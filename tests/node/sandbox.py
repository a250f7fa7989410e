"""Where everything of a test runs: processes, mounts and networks of their own. Nothing of it is left when the test ends, however it ends.

The first process of the sandbox reads a pipe from us. When we close it, or die, that process ends, and the kernel ends all the others with
it; their mounts and networks go with them, for nobody else has them. What the kernel does not take away (control groups, files) is removed
by the shell that waits for that, outside; it has a session of its own, so that Ctrl-C reaches us alone.

Control groups are in folders of the sandbox's name, one for each controller (version 1): those that are there are used, none is mounted.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

CGROUPS = Path("/sys/fs/cgroup")
NETWORK = 0x40000000  # CLONE_NEWNET
START_S, END_S, REMOVED_S = 120.0, 120.0, 300.0
#: where programs write whatever they are told; what they write there is in the sandbox's data
COVERED = ("/etc", "/usr/libexec", "/var")
KEEPER = """
trap '' INT TERM HUP
unshare --mount --pid --fork --mount-proc --kill-child=KILL $NAMESPACES -- sh -c '
  set -e
  for each in $COVERED; do
    mkdir -p "$DATA/covered$each" "$DATA/work$each"
    mount -t overlay overlay -o "lowerdir=$each,upperdir=$DATA/covered$each,workdir=$DATA/work$each,volatile" "$each"
  done
  mount -t tmpfs tmpfs /run
  mkdir /run/netns
  touch "$READY"
  exec tini -s -- cat' >&2
rm -f "$READY"
for attempt in $(seq 100); do
  for each in /sys/fs/cgroup/*/"$NAME"; do [ ! -d "$each" ] || find "$each" -depth -type d -exec rmdir {} + 2>/dev/null; done
  [ -n "$(ls -d /sys/fs/cgroup/*/"$NAME" 2>/dev/null)" ] || break
  sleep 0.1
done
rm -rf "$DATA"
"""

_libc = ctypes.CDLL(None, use_errno=True)


class Process:
    """A program in the sandbox: its output is in a file."""

    def __init__(self, name: str, log: Path, started: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.log = log
        self._started = started
        self._pid = 0

    @property
    def pid(self) -> int:
        """The program's own, as it is seen from here: what was started is only the way in."""
        deadline = time.monotonic() + START_S
        while not self._pid and self._started.poll() is None and time.monotonic() < deadline:
            self._pid = next(iter(children(self._started.pid)), 0)
            time.sleep(0.01)
        return self._pid

    def running(self) -> bool:
        return self._started.poll() is None

    def wait(self) -> int:
        """Until it has ended: what it returned."""
        return self._started.wait(END_S)

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it and wait until it has ended."""
        pid = self.pid
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        try:
            self._started.wait(END_S)
        except subprocess.TimeoutExpired:
            os.kill(pid, signal.SIGKILL)
            self._started.wait(END_S)


class Sandbox:
    """`folder` belongs to us; its `data` goes with the sandbox, the rest stays for reading. With `online` it has the machine's network."""

    def __init__(self, folder: Path, *, online: bool = False) -> None:
        self.name = f"pumice-{os.getpid()}-{folder.name}"
        self.folder = folder
        self.data = folder / "data"
        self._online = online
        self._keeper: subprocess.Popen[bytes] | None = None
        self._init = 0
        self._started: list[subprocess.Popen[bytes]] = []
        self._making = threading.Lock()  #: nodes are made at the same time

    def __enter__(self) -> Self:
        self.data.mkdir(parents=True)
        ready = self.folder / "ready"
        inside = {"NAME": self.name, "DATA": str(self.data), "READY": str(ready), "COVERED": " ".join(COVERED)}
        environment = os.environ | inside | {"NAMESPACES": "" if self._online else "--net --ipc"}
        with (self.folder / "sandbox.log").open("ab") as log:
            keeper = ["sh", "-c", KEEPER]
            self._keeper = subprocess.Popen(keeper, stdin=subprocess.PIPE, stderr=log, env=environment, start_new_session=True)
        deadline = time.monotonic() + START_S
        while not ready.exists():
            if self._keeper.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"no sandbox could be made:\n{(self.folder / 'sandbox.log').read_text()}")
            time.sleep(0.01)
        (unshare,) = children(self._keeper.pid)
        (self._init,) = children(unshare)
        if not self._online:
            self.run("ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *error: object) -> None:
        """End all that is inside and wait until it is gone."""
        assert self._keeper is not None and self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(REMOVED_S)
        for started in self._started:
            started.wait(END_S)

    # ---- control groups

    def cgroups(self, *path: str) -> list[Path]:
        """The folder of a control group below the sandbox's own, once for each controller."""
        found = sorted(each for each in CGROUPS.iterdir() if each.is_dir() and not each.is_symlink() and each.name != "unified")
        return [Path(each, self.name, *path) for each in found]

    def make_cgroup(self, *path: str) -> str:
        """Make it, with the same processors as its parent has, and name it as programs name it."""
        with self._making:
            for folder in self.cgroups(*path):
                for each in (*reversed(folder.parents[: len(path)]), folder):
                    _make_one(each)
        return "/" + "/".join((self.name, *path))

    def processes_of(self, part: str) -> list[int]:
        """The processes of the control group below ours whose name has this in it (a container's id)."""
        folders = [path for root in self.cgroups() if root.parent.name == "pids" for path in root.rglob(f"*{part}*")]
        return [int(pid) for folder in folders for pid in (folder / "cgroup.procs").read_text().split()]

    def kill_container(self, part: str) -> None:
        """End a container's processes, as the kernel does when it has no memory left."""
        for pid in self.processes_of(part):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- programs and networks

    def network(self, name: str) -> Path:
        """Where a network that was made inside (`ip netns add`) is seen from outside."""
        return Path(f"/proc/{self._init}/root/run/netns/{name}") if name else Path(f"/proc/{self._init}/ns/net")

    def command(self, *command: str | Path, network: str = "") -> list[str]:
        target = ["--target", str(self._init), "--mount", "--pid"]
        return ["nsenter", *target, *([] if self._online else [f"--net={self.network(network)}"]), "--", *map(str, command)]

    def run(self, *command: str | Path, network: str = "", stdin: str = "", timeout_s: float = 600.0) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(self.command(*command, network=network), input=stdin, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode:
            words = " ".join(map(str, command))
            raise RuntimeError(f"{words} ended with code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
        return done.stdout

    def start(self, name: str, *command: str | Path, network: str = "", environment: Mapping[str, str] | None = None) -> Process:
        """A program that ends with the sandbox at the latest."""
        path = self.folder / f"{name}.log"
        with path.open("ab") as log:
            started = subprocess.Popen(
                self.command(*command, network=network),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | (environment or {}),
                start_new_session=True,
            )
        self._started.append(started)
        return Process(name, path, started)

    @contextmanager
    def entered(self, network: str = "") -> Iterator[None]:
        """This thread, and what it starts, has the sandbox's network until the block ends. Files and processes stay the machine's."""
        with Path("/proc/thread-self/ns/net").open() as before, self.network(network).open() as inside:
            _enter(inside)
            try:
                yield
            finally:
                _enter(before)


def _make_one(folder: Path) -> None:
    if folder.exists():
        return
    folder.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists():
            (folder / name).write_text((folder.parent / name).read_text())


def _enter(network: IO[str]) -> None:
    if _libc.setns(network.fileno(), NETWORK):
        raise OSError(ctypes.get_errno(), "the network could not be entered")


def children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


#: programs to the Debian packages that have them
IMAGE_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "runc": "runc", "tini": "tini", "ip": "iproute2"}
NODE_PROGRAMS = {
    **IMAGE_PROGRAMS,
    "busybox": "busybox-static",
    "containerd": "containerd",
    "iptables": "iptables",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}


def why_not(programs: Mapping[str, str]) -> str:
    """Why the tests cannot run on this machine; empty if they can."""
    if os.geteuid():
        return "they make namespaces and control groups, which only root may"
    if not (CGROUPS / "pids").is_dir():
        return "they were only made for control groups of version 1 (/sys/fs/cgroup/pids), which are not mounted here"
    missing = sorted(package for name, package in programs.items() if not shutil.which(name))
    if missing:
        return f"Debian's packages are missing: apt-get install --no-install-recommends {' '.join(missing)}"
    return ""
