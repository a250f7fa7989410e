"""What a release consists of: `python deploy/dist.py FOLDER [URL]`, as `make dist` does.

    pumice-VERSION-py3-none-any.whl, pumice-VERSION.tar.gz    the package
    pumice-VERSION.tgz                                        the chart
    kubectl-pumice-VERSION.tar.gz                             `kubectl pumice`, for krew
    pumice-man-VERSION.tar.gz                                 the manual pages
    pumice-VERSION.cdx.json                                   what the image has in it, of requirements/run.txt (CycloneDX)
    krew.yaml                                                 krew's manifest, if it is said where the files will be (URL)
    SHA256SUMS                                                of all of these

The same commit makes the same bytes, wherever and whenever: no clock is read but SOURCE_DATE_EPOCH, and archives have no owners, no
modes but two, and one time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from man import pages

from pumice import __version__ as VERSION

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy/chart"
KREW = ROOT / "deploy/krew"
LOCK = ROOT / "requirements/run.txt"
NAMESPACE = uuid.UUID("6f1d1a5e-6c5b-5f43-9d0e-2f7c1b7f3a10")  #: of the serial numbers of our bills of materials


def epoch() -> int:
    """The time that all files have: of SOURCE_DATE_EPOCH, which `make dist` takes from the last commit."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def packages(folder: Path) -> None:
    """The wheel and the source package. Hatchling makes the same bytes of the same files."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def archive(path: Path, files: Mapping[str, tuple[bytes, bool]]) -> None:
    """A tar of files by name, each with its content and whether it is a program."""
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (content, is_program) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch(), 0o755 if is_program else 0o644
            tar.addfile(entry, io.BytesIO(content))
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch()) as zipped:
        zipped.write(inside.getvalue())


def of_folder(folder: Path, below: str) -> dict[str, tuple[bytes, bool]]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{below}{path.relative_to(folder)}": (path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in files}


# ---- the bill of materials


class Locked:
    """A package of the lock file: its name and version, its hashes, where it is needed, who needs it."""

    def __init__(self, head: str, lines: list[str]) -> None:
        wanted, _, marker = head.rstrip(" \\").partition(" ; ")
        self.name, _, self.version = wanted.partition("==")
        self.marker = marker
        self.hashes = [found for line in lines for found in re.findall(r"--hash=sha256:(\w+)", line)]
        told = " ".join(line.strip().lstrip("#") for line in lines if line.strip().startswith("#"))
        self.needed_by = [word for word in told.replace("via", "").split() if not word.startswith("(")]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    def component(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "library", "bom-ref": self.reference, "name": self.name, "version": self.version}
        made |= {"purl": self.reference, "hashes": [{"alg": "SHA-256", "content": found} for found in sorted(self.hashes)]}
        if self.marker:
            made["properties"] = [{"name": "pumice:only-where", "value": self.marker}]
        return made


def locked() -> Iterator[Locked]:
    head, lines = "", list[str]()
    for line in [*LOCK.read_text().splitlines(), "end"]:
        if line and not line.startswith((" ", "#")):
            if head:
                yield Locked(head, lines)
            head, lines = line, []
        else:
            lines.append(line)


def bill_of_materials() -> dict[str, Any]:
    """What the image has besides the base: Pumice and the packages that the lock file pins, with the hashes of all their files."""
    parts = sorted(locked(), key=lambda each: each.reference)
    ours = f"pkg:pypi/pumice@{VERSION}"
    by_name = {each.name: each.reference for each in parts} | {"pumice": ours}
    needs: dict[str, list[str]] = {reference: [] for reference in by_name.values()}
    for each in parts:
        for name in each.needed_by:
            needs[by_name[name]].append(each.reference)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, VERSION + LOCK.read_text())}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "pumice",
                "version": VERSION,
                "purl": ours,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [each.component() for each in parts],
        "dependencies": [{"ref": reference, "dependsOn": sorted(names)} for reference, names in sorted(needs.items())],
    }


# ---- krew


def krew_manifest(url: str, plugin: Path) -> dict[str, Any]:
    """The manifest by which `kubectl krew install pumice` finds the plugin below the URL."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "pumice"},
        "spec": {
            "version": f"v{VERSION}",
            "shortDescription": "Why jobs wait, when they start, what would help",
            "description": "The commands of Pumice, a batch scheduler, as `kubectl pumice`. It calls the program pumice.",
            "caveats": "It needs the program itself: pip install pumice",
            "platforms": [
                {
                    "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]},
                    "uri": f"{url.rstrip('/')}/{plugin.name}",
                    "sha256": sum_of(plugin),
                    "bin": "kubectl-pumice",
                }
            ],
        },
    }


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(folder: Path, url: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packages(folder)
    archive(folder / f"pumice-{VERSION}.tgz", of_folder(CHART, "pumice/"))
    plugin = folder / f"kubectl-pumice-{VERSION}.tar.gz"
    archive(plugin, of_folder(KREW, "") | {"LICENSE": ((ROOT / "LICENSE").read_bytes(), False)})
    archive(folder / f"pumice-man-{VERSION}.tar.gz", {f"man1/{name}": (text.encode(), False) for name, text in pages().items()})
    (folder / f"pumice-{VERSION}.cdx.json").write_text(json.dumps(bill_of_materials(), indent=2) + "\n")
    if url:
        (folder / "krew.yaml").write_text(yaml.safe_dump(krew_manifest(url, plugin), sort_keys=False))
    made = sorted(path for path in folder.iterdir() if path.name not in ("SHA256SUMS", ".gitignore"))
    (folder / "SHA256SUMS").write_text("".join(f"{sum_of(path)}  {path.name}\n" for path in made))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
