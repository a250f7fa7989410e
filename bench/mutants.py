"""`python -m bench.mutants [PACKAGE ...]`: do the tests notice when the code is wrong?

Small faults are drawn (bench/mutations.py) and made one at a time in a copy of the sources; the nearest tests are run against each. A fault
that no test notices survives: it is printed with file, line and difference, and the exit code is 1. Faults that need not be noticed are
listed with a reason in bench/mutants.kept and are never drawn. With `--results FILE` the results are kept, and a later run continues there.

The nearest tests are the files of a package's test folders that import the module, and then all of the package's first test folder. If they
do not notice a fault, the tests of the package's other folders are run. A test that also fails without a fault is left out, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.mutations import Mutation, mutations

HERE = Path(__file__).parent
ROOT = HERE.parent
KEPT = HERE / "mutants.kept"
FOLDERS: dict[str, tuple[str, ...]] = {
    "scheduler/engine": ("scenarios", "engine", "framework", "nodes_for_pods", "plugins", "properties", "topology"),
    "scheduler/framework": ("scenarios", "framework", "plugins", "properties", "topology", "kube_scheduler", "live"),
    "scheduler/model": ("scenarios", "model", "properties", "plugins", "topology", "reading", "framework"),
    "scheduler/eviction": ("topology", "scenarios", "framework", "kube_scheduler", "properties", "simulate"),
    "live": ("live", "live_controllers", "webhooks", "recording", "live_whole", "kube_scheduler"),
    "cluster/apiserver": ("apiserver", "embedded", "hostile"),
    "client": ("client", "live", "live_controllers"),
    "controllers": ("controllers", "live_controllers", "hostile", "embedded"),
    "http": ("apiserver", "client", "webhooks", "live", "page"),
}
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-m", "not nightly and not cluster and not kubectl")
NO_TESTS = 5  #: pytest's exit code if there are no tests to run
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Found(NamedTuple):
    """The result for one fault. Its `end` is killed, hung (its tests took too long, so it does not survive) or survived."""

    name: str
    package: str
    end: str
    by: str  #: the test that noticed the fault


def kept() -> set[str]:
    """The names of faults that need not be noticed: `NAME  # reason` on each line."""
    lines = KEPT.read_text().splitlines()
    return {line.partition("  # ")[0] for line in lines if line and not line.startswith("#")}


def nearest(package: str, module: str) -> list[str]:
    """The tests to run first: the test files that import the module, then the package's first test folder."""
    above, _, last = module.rpartition(".")
    name = re.compile(rf"\bpumice\.{re.escape(module)}\b|\bfrom pumice\.{re.escape(above)} import .*\b{last}\b")
    files = (path for folder in FOLDERS[package] for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")))
    importing = [str(path.relative_to(ROOT)) for path in files if name.search(path.read_text())]
    return [*importing, f"tests/{FOLDERS[package][0]}"]


def drawn(package: str, count: int, seed: int) -> list[Mutation]:
    folder, spared = ROOT / "src/pumice" / package, kept()
    everything = [
        each
        for path in sorted(folder.rglob("*.py"))
        for each in mutations(str(path.relative_to(ROOT)), path.read_text())
        if each.name not in spared
    ]
    return random.Random(f"{seed} {package}").sample(everything, min(count, len(everything)))


class Workshop:
    """A copy of the sources in which one file at a time has a fault."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self.sick: set[str] = set()  #: tests that fail without any fault
        self._sources = folder / "src"
        self._limit_s = limit_s
        self._well: set[str] = set()
        shutil.copytree(ROOT / "src", self._sources, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(self._sources)], check=True)

    def _run(self, tests: Iterable[str]) -> tuple[int | None, str]:
        """Run the tests. Return pytest's exit code, None if they took too long, and the test that failed, empty if none did."""
        command = [*PYTEST, *tests, *(f"--deselect={test}" for test in sorted(self.sick))]
        changed = {"PYTHONPATH": f"{self._sources}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        child = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **changed}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            output, _ = child.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        failed = FAILED.search(output.decode(errors="replace"))
        return child.returncode, failed[1] if failed else ""

    def end_of(self, mutation: Mutation, package: str) -> Found:
        path = self._sources.parent / mutation.path
        healthy = path.read_text()
        module = ".".join(Path(mutation.path).with_suffix("").parts[2:]).removesuffix(".__init__")
        rounds = [nearest(package, module), [f"tests/{folder}" for folder in FOLDERS[package][1:]]]
        while rounds:
            self._write(path, mutation.text)
            code, test = self._run(rounds[0])
            self._write(path, healthy)
            if code is None:
                return Found(mutation.name, package, "hung", "")
            if code in (0, NO_TESTS):
                del rounds[0]
            elif not test or self._is_well(test):
                return Found(mutation.name, package, "killed", test)
        return Found(mutation.name, package, "survived", "")

    def _is_well(self, test: str) -> bool:
        """Whether the test passes without a fault. A test that does not is left out from now on."""
        if test not in self._well:
            code, _ = self._run([test])
            (self._well if code == 0 else self.sick).add(test)
        return test in self._well

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def run(packages: list[str], count: int, seed: int, limit_s: float, results: Path | None) -> list[Found]:
    known = {found.name: found for found in _read(results)}
    all_found = []
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder), limit_s)
        samples = [(package, drawn(package, count, seed)) for package in packages]
        for package, sample in samples:
            for mutation in sample:
                found = known.get(mutation.name) or workshop.end_of(mutation, package)
                all_found.append(found)
                if results is not None and mutation.name not in known:
                    with results.open("a") as file:
                        file.write(json.dumps(found._asdict()) + "\n")
                if found.end == "survived":
                    print(f"{mutation.path}:{mutation.line}: survived, in {mutation.within}")
                    print(f"  - {mutation.old}\n  + {mutation.new}", flush=True)
        for test in sorted(workshop.sick):
            print(f"left out, for it fails without any fault: {test}")
    return all_found


def _read(results: Path | None) -> Iterator[Found]:
    if results is not None and results.exists():
        for line in results.read_text().splitlines():
            yield Found(**json.loads(line))


def table(all_found: list[Found]) -> str:
    ends = Counter((found.package, found.end) for found in all_found)
    rows = ["| package | faults | noticed | hung | survived |", "|---|---|---|---|---|"]
    for package in dict.fromkeys(found.package for found in all_found):
        counts = [ends[package, end] for end in ("killed", "hung", "survived")]
        rows.append(f"| {package} | {sum(counts)} | {counts[0]} | {counts[1]} | {counts[2]} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(FOLDERS))
    parser.add_argument("--sample", type=int, default=25, help="faults of each package (25)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--limit", type=float, default=900, help="seconds for the tests of one fault (900)")
    parser.add_argument("--results", type=Path, help="kept here, a line each; what stands there is not run again")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if unknown := set(options.packages) - FOLDERS.keys():
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}; known: {', '.join(FOLDERS)}")
    all_found = run(options.packages or list(FOLDERS), options.sample, options.seed, options.limit, options.results)
    print(table(all_found))
    sys.exit(any(found.end == "survived" for found in all_found))


if __name__ == "__main__":
    main()
