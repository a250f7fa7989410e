"""What a release consists of: the same bytes from the same files, and in them what they are said to have."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice import __version__

ROOT = Path(__file__).parents[2]
EPOCH = "1800000000"
URL = "https://example.org/files"
PARTS = (".gitignore", "src", "docs", "examples", "deploy", "requirements", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")


def made(root: Path, folder: Path, **environment: str) -> Path:
    command = [sys.executable, str(root / "deploy/dist.py"), str(folder), URL]
    done = subprocess.run(command, env=os.environ | environment, cwd=folder.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(ROOT, tmp_path_factory.mktemp("release") / "dist", SOURCE_DATE_EPOCH=EPOCH)


def test_the_same_files_make_the_same_bytes_elsewhere_and_later(dist: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, copy_function=shutil.copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, copy / part)
    other = made(copy, tmp_path / "dist", SOURCE_DATE_EPOCH=EPOCH, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    names = sorted(path.name for path in dist.iterdir())
    assert names == sorted(path.name for path in other.iterdir()) and len(names) == 8 + ((dist / ".gitignore").exists())
    assert [name for name in names if (dist / name).read_bytes() != (other / name).read_bytes()] == []


def test_the_checksums_are_those_of_the_files(dist: Path) -> None:
    lines = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert lines == {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in lines} and len(lines) == 7


def test_one_version_is_said_everywhere(dist: Path) -> None:
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {chart["version"], chart["appVersion"], values["image"]["tag"], project["version"]} == {__version__}
    named = [path.name for path in dist.iterdir() if path.name not in ("SHA256SUMS", "krew.yaml", ".gitignore")]
    assert all(__version__ in name for name in named)


def test_the_image_has_one_name_and_its_variants_begin_with_it() -> None:
    name = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())["image"]["repository"]
    done = subprocess.run(["make", "-n", "image", "BASE=b@sha256:0", "ENGINE=podman"], cwd=ROOT, capture_output=True, text=True, check=True)
    built = set(re.findall(r"--tag (\S+):", done.stdout))
    assert built == {name, *(f"{name}-{part}" for part in ("scheduler", "controllers", "webhooks"))}
    targets = set(re.findall(r"--target (\S+)", done.stdout))
    assert targets == set(re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)) - {"build"}
    pages = "".join(path.read_text() for path in [*(ROOT / "docs").glob("*.md"), ROOT / "deploy/Dockerfile", ROOT / "README.md"])
    assert set(re.findall(r"\bpumice/pumice(?:-\w+)?\b", pages)) <= built


def test_the_bill_of_materials_names_what_the_lock_file_pins(dist: Path) -> None:
    bill: dict[str, Any] = json.loads((dist / f"pumice-{__version__}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["timestamp"]) == ("CycloneDX", "1.6", "2027-01-15T08:00:00Z")
    lock = (ROOT / "requirements/run.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))
    assert {each["name"]: each["version"] for each in bill["components"]} == pinned
    assert sum(len(each["hashes"]) for each in bill["components"]) == lock.count("--hash=sha256:")
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    ours = {name.partition("@")[0].removeprefix("pkg:pypi/") for name in needs[f"pkg:pypi/pumice@{__version__}"]}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert ours == {re.split(r"[<>=]", each)[0] for each in wanted}
    assert any(name.startswith("pkg:pypi/pycparser@") for name in needs[f"pkg:pypi/cffi@{pinned['cffi']}"])


def test_packages_and_archives_have_what_they_are_for(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"pumice-{__version__}-py3-none-any.whl") as wheel:
        assert {"pumice/__init__.py", "pumice/cluster/apiserver/scheme/crds/jobs.yaml"} <= set(wheel.namelist())
    with tarfile.open(dist / f"pumice-{__version__}.tgz") as chart:
        names = {entry.name for entry in chart}
        assert {"pumice/Chart.yaml", "pumice/templates/_helpers.tpl", "pumice/crds/jobs.yaml", "pumice/files/alerts.yaml"} <= names
        assert {(entry.uid, entry.uname, entry.mtime) for entry in chart} == {(0, "", int(EPOCH))}
    plugin = dist / f"kubectl-pumice-{__version__}.tar.gz"
    (platform,) = yaml.safe_load((dist / "krew.yaml").read_text())["spec"]["platforms"]
    assert (platform["uri"], platform["sha256"]) == (f"{URL}/{plugin.name}", hashlib.sha256(plugin.read_bytes()).hexdigest())
    with tarfile.open(plugin) as inside:
        assert inside.getmember(platform["bin"]).mode == 0o755 and "LICENSE" in inside.getnames()


def test_kubectl_pumice_is_pumice(tmp_path: Path) -> None:
    script = str(ROOT / "deploy/krew/kubectl-pumice")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run([script, "check", "--help"], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})
    assert done.returncode == 0 and "Usage: pumice check" in done.stdout
    done = subprocess.run(["/bin/sh", script], capture_output=True, text=True, timeout=60, env={"PATH": "/none"})
    assert done.returncode == 1 and "pip install pumice" in done.stderr


def test_every_command_has_a_manual_page_that_man_can_show(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / f"pumice-man-{__version__}.tar.gz") as inside:
        inside.extractall(tmp_path, filter="data")
    pages = {path.name: path for path in (tmp_path / "man1").iterdir()}
    assert {"pumice.1", "pumice-why.1", "pumice-job-run.1", "pumice-scheduler.1"} <= pages.keys()
    assert "\\-\\-schedule\\-period" in pages["pumice-scheduler.1"].read_text()
    if shutil.which("groff") is None:
        pytest.skip("there is no groff here to show them")
    for page in pages.values():
        done = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbu", str(page)], capture_output=True, text=True, timeout=60)
        told = [line for line in done.stderr.splitlines() if "adjust line" not in line and "break line" not in line]
        assert done.returncode == 0 and not told and "SYNOPSIS" in done.stdout, page.name


def test_links_of_the_site_lead_to_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` builds it with MkDocs, which is not among the tests' tools and refuses what is amiss."""
    monkeypatch.syspath_prepend(ROOT / "deploy")
    import pages as site

    folder = tmp_path / "pages"
    site.main(folder)
    written = {path.name for path in folder.iterdir()}
    listed = set(re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]))
    assert listed == {name for name in written if name.endswith(".md")}
    for path in folder.glob("*.md"):
        targets = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", path.read_text())
        assert set(targets) <= written, path.name
    assert "| `--schedule-period` |" in (folder / "reference.md").read_text() and "Usage: pumice why" in (folder / "manual.md").read_text()


def test_the_workflow_publishes_what_is_made_and_names_no_registry() -> None:
    text = (ROOT / ".github/workflows/release.yaml").read_text()
    workflow = yaml.safe_load(text)
    assert set(workflow["jobs"]) == {"test", "files", "package", "chart", "image"}
    assert workflow[True] == {"push": {"tags": ["v*"]}} and workflow["permissions"] == {}  # YAML takes `on` for true
    targets = {each["target"]: each["suffix"] for each in workflow["jobs"]["image"]["strategy"]["matrix"]["include"]}
    assert targets == {"pumice": "", "scheduler": "-scheduler", "controllers": "-controllers", "webhooks": "-webhooks"}
    assert not re.search(r"\b(?:ghcr|docker|quay|gcr)\.io\b", text)
    assert text.count("actions/attest-build-provenance@") == 2 and "make dist URL=" in text and "helm push" in text
