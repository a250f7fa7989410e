"""What holds for all source files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pumice

PROSE = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)


def test_no_name_of_a_module_is_given_twice() -> None:
    doubled = {}
    for path in Path(pumice.__file__).parent.rglob("*.py"):
        names = Counter(name for node in ast.parse(path.read_text()).body for name in given(node))
        if found := [name for name, times in names.items() if times > 1]:
            doubled[path.name] = found
    assert doubled == {}


def given(node: ast.stmt) -> list[str]:
    """The names that a statement of a module assigns or defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


#: What Volcano writes, and what the scheduler keeps of it, have one name.
NAMES_OF_TWO = {"HyperNode", "Queue"}


def test_name_of_a_class_tells_which_one_is_meant() -> None:
    found = Counter(
        node.name
        for path in Path(pumice.__file__).parent.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in found.items() if times > 1} == NAMES_OF_TWO


def test_what_docstrings_and_comments_call_by_name_exists() -> None:
    """Of names in backticks those that can be nothing but code: with an underscore or a dot inside."""
    root = Path(pumice.__file__).parent
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    known = {part for path in texts for part in (path.stem, *path.parts)}
    for text in texts.values():
        known.update(re.findall(r"\w+", PROSE.sub("", text)))
    gone = {
        f"{path.relative_to(root)}: {name}"
        for path, text in texts.items()
        for name in re.findall(r"`([a-zA-Z]\w*[._]\w[\w.]*)`", "".join(PROSE.findall(text)))
        if not known.issuperset(name.removesuffix(".py").split("."))
    }
    assert gone == set()


def test_files_that_docstrings_point_to_are_there_and_have_what_is_named() -> None:
    """A file alone is in the same folder. A name in capitals or with one is in the module before it; before it may be a plugin, too."""
    root, top = Path(pumice.__file__).parent, Path(__file__).parents[2]
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    paths = [f"/{path}" for path in (*texts, *(top / "tests").rglob("*.py"), *(top / "bench").rglob("*.py"))]
    packages = {path.parent.name for path in texts}
    gone = set()
    for path, text in texts.items():
        prose = "".join(PROSE.findall(text))
        for name in re.findall(r"`([\w/]+\.py)`", prose):
            if not any(each.endswith(f"/{name}") for each in paths) or not ("/" in name or (path.parent / name).exists()):
                gone.add(f"{path.relative_to(root)}: {name}")
        for module, name in re.findall(r"`([a-z_]+)\.([A-Z]\w+)`", prose):
            given_there = (given_name for file, other in texts.items() if file.stem == module for given_name in names_of(other))
            if module not in packages and name not in given_there:
                gone.add(f"{path.relative_to(root)}: {module}.{name}")
    assert gone == set()


def names_of(text: str) -> list[str]:
    return [name for node in ast.parse(text).body for name in given(node)]


def test_only_the_store_writes_into_its_storage() -> None:
    """Whoever passes by the steps of a write says so, by `put_trusted`; and there are few."""
    root = Path(pumice.__file__).parent
    texts = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    assert [path for path, text in texts.items() if re.search(r"storage\.(put|remove)\(", text)] == ["cluster/apiserver/store.py"]
    trusted = Counter({path: len(re.findall(r"\.(put|remove)_trusted\(", text)) for path, text in texts.items()})
    assert +trusted == {
        "cluster/apiserver/aggregation.py": 1,
        "cluster/apiserver/scheme/crd.py": 3,
        "cluster/apiserver/archive.py": 2,
        "cluster/apiserver/binding.py": 1,
        "cluster/apiserver/deletion.py": 2,
        "cluster/apiserver/eviction.py": 1,
        "cluster/apiserver/service_allocator.py": 2,
        "cluster/control_plane.py": 1,
        "cluster/apiserver/garbage_collector.py": 2,
        "cluster/nodes/kubelet.py": 1,
        "cluster/nodes/metrics_server.py": 3,
        "cluster/nodes/node_heartbeats.py": 2,
    }


def test_page_about_conformance_counts_the_specs_that_pass() -> None:
    root = Path(__file__).parents[2]
    specs = [line for line in (root / "tests/cluster/conformance.txt").read_text().splitlines() if not line.startswith("#")]
    areas = Counter(line[len("[sig-") : line.index("]")] for line in specs)
    page = (root / "docs/conformance.md").read_text()
    assert f"{len(specs)} pass on `pumice up`" in page and len(set(specs)) == len(specs)
    assert {area: int(count) for area, count in re.findall(r"^\| ([a-z-]+) \| (\d+) \|$", page, re.MULTILINE)} == areas


def test_page_about_conformance_counts_what_passes_of_suites_of_others() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/conformance.md").read_text()
    for path in (root / "tests/cluster/kubectl_suite.txt", *(root / "tests/cluster/passing").iterdir()):
        passing = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert len(set(passing)) == len(passing)
        (row,) = (line for line in page.splitlines() if f"{path.name}`" in line)
        assert f" {len(passing)} of " in row, path


def test_no_comment_stands_for_a_module_of_its_own() -> None:
    """A file is about one noun. What begins a second one is a file of its own; what is said of a definition is its docstring."""
    found = []
    for path in Path(pumice.__file__).parent.rglob("*.py"):
        text = path.read_text()
        nodes = ast.parse(text).body
        if not any(isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes):
            continue
        within = {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        lines = enumerate(text.splitlines(), 1)
        found += [f"{path.name}:{at}" for at, line in lines if line.startswith("#") and not line.startswith("#:") and at not in within]
    assert found == []


#: words of our own for what Kubernetes, Volcano or the code beside it has a word for: storage, pending tasks, outcome, message ...
PRIVATE_WORDS = (
    "sheet outlook backlog residents originals ledger shelf shelves wish behaviour told said heard news standing happening misfit amiss"
)


def test_names_are_of_the_field() -> None:
    """Word for word: `_told` and `EvictionLedger` as well. Names that are only used are given by others."""
    words = frozenset(PRIVATE_WORDS.split())
    found = set()
    for path in Path(pumice.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for name in names_given_by(node):
                if words & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}:
                    found.add(f"{path.name}: {name}")
    assert found == set()


def names_given_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []


#: The circles of modules that there still are, imports for types included: the first module, and how many there are. Only fewer!
CIRCLES = {
    "pumice.cluster.apiserver.admission.builtin_admission": 15,
    "pumice.scheduler.eviction.gang_attempt": 2,
    "pumice.scheduler.framework.at_rest": 17,
    "pumice.scheduler.model.cluster": 2,
    "pumice.scheduler.model.inqueue_promises": 5,
}


def test_no_further_modules_import_each_other_in_a_circle() -> None:
    imports = imports_between_modules()
    reached = {module: reachable(module, imports) for module in imports}
    circles = {frozenset(other for other in reached[module] if module in reached[other]) for module in imports} - {frozenset()}
    found = Counter({min(circle): len(circle) for circle in circles})
    assert {name: size for name, size in found.items() if size > CIRCLES.get(name, 0)} == {}


def imports_between_modules() -> dict[str, set[str]]:
    """Each module with those that it imports at its left margin or below TYPE_CHECKING. Packages, which hand names on, do not count."""
    root = Path(pumice.__file__).parent
    paths = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in root.rglob("*.py")}
    trees = {name: ast.parse(path.read_text()) for name, path in paths.items()}
    found: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in [part for top in tree.body for part in (top.body if isinstance(top, ast.If) else [top])]:
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                found[name] |= named & trees.keys()
    return found


def reachable(module: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [module]
    while ahead:
        further = imports[ahead.pop()] - found
        found |= further
        ahead += further
    return found
