"""`python -m bench.mutants [PACKAGE ...]`: do the tests notice when the code is wrong?

Small faults are drawn (bench/mutations.py) and made one at a time in a copy of the sources; the nearest tests are run against each. A fault
that no test notices survives: it is printed with file, line and difference, and the exit code is 1. Faults that need not be noticed are
listed with a reason in bench/mutants.kept and are never drawn. With `--results FOLDER` the results are kept, and a later run goes on from
there.

The nearest tests are those that reach the function with the fault, folder by folder, the shortest first. Which these are is recorded when
a folder has its first turn: its tests are run once on sources that note each call (`Reached`). A fault in code that runs when its module is
imported is run against the test files that import it, if no test reaches a function beside it. A test that also fails without a fault is
left out, and named.
"""

from __future__ import annotations

import argparse
import ast
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
    "scheduler/model": ("scenarios", "model", "properties", "plugins", "topology", "reading", "framework", "simulate"),
    "scheduler/eviction": ("topology", "scenarios", "framework", "kube_scheduler", "properties", "simulate", "answers"),
    "scheduler/kube": ("kube_scheduler", "nodes_for_pods", "cases", "framework", "live"),
    "scheduler/plugins": ("plugins", "nodes_for_pods", "topology", "framework", "cases", "properties", "kube_scheduler", "simulate"),
    "live": ("live", "live_controllers", "webhooks", "recording", "live_whole", "kube_scheduler"),
    "cluster/apiserver": ("apiserver", "embedded", "hostile"),
    "client": ("client", "live", "live_controllers"),
    "controllers": ("controllers", "live_controllers", "hostile", "embedded"),
    "answers": ("answers", "cli", "simulate", "kube_scheduler"),
    "api": ("reading", "nodes_for_pods", "controllers", "apiserver", "cli"),
    "http": ("apiserver", "client", "webhooks", "live", "page"),
}
ORDINARY = "not nightly and not cluster and not kubectl and not page and not image and not node"
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:schemathesis", "-q", "--no-header", "--tb=no", "-m", ORDINARY)
NO_TESTS = 5  #: pytest's exit code if there are no tests to run
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
TOOK = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(tests/.+)$", re.MULTILINE)
NOTES = '''"""Notes which test calls which function, also in programs that a test starts."""
import os
_environment = os.environ._data
_seen = set()
_file = os.open(os.environ["REACHED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if "REACHED" in os.environ else None
def note(name):
    test = _environment.get(b"PYTEST_CURRENT_TEST")
    if (test, name) not in _seen and test is not None and _file is not None:
        _seen.add((test, name))
        os.write(_file, f"{name}\\t{test.decode().rpartition(' ')[0]}\\n".encode())
'''


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


def importing(package: str, path: str) -> list[str]:
    """The test files of the package's test folders that import the module."""
    module = ".".join(Path(path).with_suffix("").parts[2:]).removesuffix(".__init__")
    above, _, last = module.rpartition(".")
    name = re.compile(rf"\bpumice\.{re.escape(module)}\b|\bfrom pumice\.{re.escape(above)} import .*\b{last}\b")
    files = (path for folder in FOLDERS[package] for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")))
    return [str(path.relative_to(ROOT)) for path in files if name.search(path.read_text())]


def drawn(package: str, count: int, seed: int) -> list[Mutation]:
    folder, spared = ROOT / "src/pumice" / package, kept()
    everything = [
        each
        for path in sorted(folder.rglob("*.py"))
        for each in mutations(str(path.relative_to(ROOT)), path.read_text())
        if each.name not in spared
    ]
    return random.Random(f"{seed} {package}").sample(everything, min(count, len(everything)))


def noting(path: str, source: str) -> str:
    """The source with a note at the start of each function."""
    tree = ast.parse(source)
    _note_calls(tree, path, "")
    place = next((place for place, node in enumerate(tree.body) if not _must_be_first(node)), len(tree.body))
    tree.body[place:place] = ast.parse("from pumice.noted import note as _noted_by_mutants").body
    return ast.unparse(ast.fix_missing_locations(tree))


def _must_be_first(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _note_calls(parent: ast.AST, path: str, within: str) -> None:
    for node in ast.iter_child_nodes(parent):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = f"{within}.{node.name}".strip(".") if is_function or isinstance(node, ast.ClassDef) else within
        _note_calls(node, path, inside)
        if is_function:
            node.body[1 if ast.get_docstring(node) else 0 : 0] = ast.parse(f"_noted_by_mutants({f'{path} | {inside}'!r})").body


class Reached:
    """Which tests reach a function, folder by folder: recorded once."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._sources = folder / "noting"
        self._kept = kept
        self._known: dict[str, dict[str, list[str]]] = json.loads(kept.read_text()) if kept.exists() else {}

    def tests(self, folder: str, path: str, within: str) -> list[str]:
        """The tests of the folder that reach the function, the shortest first."""
        if folder not in self._known:
            self._known[folder] = self._record(folder)
            self._kept.write_text(json.dumps(self._known))
        return self._known[folder].get(f"{path} | {within}", [])

    def _record(self, folder: str) -> dict[str, list[str]]:
        if not self._sources.exists():
            shutil.copytree(ROOT / "src", self._sources, ignore=shutil.ignore_patterns("__pycache__"))
            for path in sorted(self._sources.rglob("*.py")):
                path.write_text(noting(str(Path("src") / path.relative_to(self._sources)), path.read_text()))
            (self._sources / "pumice/noted.py").write_text(NOTES)
        notes = self._sources.parent / f"{folder}.notes"
        command = [*PYTEST, "--durations=0", "--durations-min=0", "-vv", f"tests/{folder}"]
        changed = {"PYTHONPATH": f"{self._sources}:{ROOT}", "CI": "true", "REACHED": str(notes)}
        output = subprocess.run(command, cwd=ROOT, env={**os.environ, **changed}, capture_output=True).stdout.decode(errors="replace")
        took: dict[str, float] = {}
        for seconds, test in TOOK.findall(output):
            took[test] = took.get(test, 0.0) + float(seconds)
        failed = set(FAILED.findall(output))
        reaching: dict[str, set[str]] = {}
        for line in notes.read_text().splitlines() if notes.exists() else ():
            name, _, test = line.partition("\t")
            path, _, within = name.partition(" | ")
            while test in took and test not in failed:
                reaching.setdefault(f"{path} | {within or 'module'}", set()).add(test)
                if not within:
                    break
                within = within.rpartition(".")[0]
        return {name: sorted(tests, key=lambda test: (took[test], test)) for name, tests in reaching.items()}


class Workshop:
    """A copy of the sources in which one file at a time has a fault."""

    def __init__(self, folder: Path, kept: Path, limit_s: float) -> None:
        self.sick: set[str] = set()  #: tests that fail without any fault
        self._reached = Reached(folder, kept)
        self._sources = folder / "src"
        self._limit_s = limit_s
        self._well: set[str] = set()
        shutil.copytree(ROOT / "src", self._sources, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(self._sources)], check=True)

    def _run(self, tests: Iterable[str]) -> tuple[int | None, str]:
        """Run the tests. Return pytest's exit code, None if they took too long, and the test that failed, empty if none did."""
        command = [*PYTEST, "-x", *tests, *(f"--deselect={test}" for test in sorted(self.sick))]
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
        for tests in self._rounds(mutation, package):
            while True:
                self._write(path, mutation.text)
                code, test = self._run(tests)
                self._write(path, healthy)
                if code is None:
                    return Found(mutation.name, package, "hung", "")
                if code in (0, NO_TESTS):
                    break
                if not test or self._is_well(test):
                    return Found(mutation.name, package, "killed", test)
        return Found(mutation.name, package, "survived", "")

    def _rounds(self, mutation: Mutation, package: str) -> Iterator[list[str]]:
        """The tests to run, one list after another, until the fault is noticed."""
        is_reached = False
        for folder in FOLDERS[package]:
            if tests := self._reached.tests(folder, mutation.path, mutation.within):
                is_reached = True
                yield tests
        if not is_reached and (files := importing(package, mutation.path)):
            yield files

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
    all_found = []
    with tempfile.TemporaryDirectory() as folder:
        results = results or Path(folder)
        ends = results / "ends.jsonl"
        known = {found.name: found for found in _read(ends)}
        workshop = Workshop(Path(folder), results / "reached.json", limit_s)
        samples = [(package, drawn(package, count, seed)) for package in packages]
        for package, sample in samples:
            for mutation in sample:
                found = known.get(mutation.name) or workshop.end_of(mutation, package)
                all_found.append(found)
                if mutation.name not in known:
                    with ends.open("a") as file:
                        file.write(json.dumps(found._asdict()) + "\n")
                if found.end == "survived":
                    print(f"{mutation.path}:{mutation.line}: survived, in {mutation.within}")
                    print(f"  - {mutation.old}\n  + {mutation.new}", flush=True)
        for test in sorted(workshop.sick):
            print(f"left out, for it fails without any fault: {test}")
    return all_found


def _read(ends: Path) -> Iterator[Found]:
    if ends.exists():
        for line in ends.read_text().splitlines():
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
    parser.add_argument("--results", type=Path, help="a folder to keep them in; what stands there is not run again")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if unknown := set(options.packages) - FOLDERS.keys():
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}; known: {', '.join(FOLDERS)}")
    all_found = run(options.packages or list(FOLDERS), options.sample, options.seed, options.limit, options.results)
    print(table(all_found))
    sys.exit(any(found.end == "survived" for found in all_found))


if __name__ == "__main__":
    main()
