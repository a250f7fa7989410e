"""The faults that are tried: each is one change, can be compiled, and leaves alone what no test should have to see."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from bench.mutants import FOLDERS, ROOT, Reached, drawn, importing, noting
from bench.mutations import mutations

SOURCE = '''"""Text."""

def limit(number: int, most: int = 3) -> int:
    """Not this."""
    if number > most and not most == 7:
        log.info("nor this %d", number)
        return min(number, most)
    raise ValueError("nor " + "this")
'''


def test_each_is_one_change_where_it_says() -> None:
    found = [(each.line, " ".join(each.old.split())[:20], " ".join(each.new.split())[:26]) for each in mutations("a.py", SOURCE)]
    assert (3, "3", "(4)") in found
    assert (5, "number > most", "(number <= most)") in found and (5, "number > most", "(number >= most)") in found
    assert (5, "not most == 7", "(most == 7)") in found and (5, "most == 7", "(most != 7)") in found
    assert (7, "return min(number, m", "return None") in found and (7, "min(number, most)", "(min(most, number))") in found
    assert {each.within for each in mutations("a.py", SOURCE)} == {"limit"}


def test_all_can_be_compiled_and_none_touches_texts_logs_and_errors() -> None:
    for each in mutations("a.py", SOURCE):
        ast.parse(each.text)
        assert each.text != SOURCE
        assert all(line in each.text for line in ("Not this", "nor this %d")) or each.line == 5
        assert each.line not in (1, 4, 6, 8)


def test_characters_of_several_bytes_do_not_move_the_place() -> None:
    (found,) = mutations("a.py", 'x = "µ µ"; y = 1\n')
    assert found.text == 'x = "µ µ"; y = (2)\n'


@pytest.mark.parametrize("package", FOLDERS)
def test_each_package_has_faults_and_tests(package: str) -> None:
    assert len(drawn(package, 5, seed=1)) == 5
    assert all((ROOT / "tests" / folder).is_dir() for folder in FOLDERS[package])


def test_files_that_import_the_module_are_found() -> None:
    assert "tests/framework/test_job_classes.py" in importing("scheduler/framework", "src/pumice/scheduler/framework/job_classes.py")


def test_each_call_of_a_function_is_noted_by_its_name() -> None:
    source = '"""Text."""\nfrom __future__ import annotations\n\nclass C:\n    def f(self):\n        """F."""\n        return lambda: 1\n'
    noted = noting("a.py", source)
    told: list[str] = []
    scope: dict[str, object] = {}
    exec(noted.replace("from pumice.noted import note as _noted_by_mutants", ""), scope | {"_noted_by_mutants": told.append}, scope)
    scope["C"]().f()  # type: ignore[operator]
    assert told == ["a.py | C.f"] and ast.get_docstring(ast.parse(noted)) == "Text."


def test_what_was_recorded_once_is_known(tmp_path: Path) -> None:
    kept = tmp_path / "reached.json"
    kept.write_text(json.dumps({"engine": {"a.py | f": ["tests/engine/test_a.py::test_a"]}}))
    reached = Reached(tmp_path, kept)
    assert reached.tests("engine", "a.py", "f") == ["tests/engine/test_a.py::test_a"] and reached.tests("engine", "a.py", "g") == []
