"""The scheduler can be imported alone, and plugins written against the first release are told where things are now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pumice import scheduler
from pumice.api.errors import InputError
from pumice.extensions import of_folder
from pumice.scheduler.framework.plugin import Plugin

ALONE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("pumice.") and not name.startswith(("pumice.api", "pumice.scheduler")):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from pumice import scheduler
for name in scheduler.__all__:
    getattr(scheduler, name)
policy, _ = scheduler.read_policy('actions: "enqueue, allocate"\\ntiers:\\n- plugins:\\n  - name: gang\\n', scheduler.PLUGINS)
print(scheduler.cycle(scheduler.Cluster(), policy, 0.0).binds, "asyncio" in sys.modules, "ssl" in sys.modules)
"""


def test_the_scheduler_is_importable_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] False False\n", "")


def test_a_name_that_the_face_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Absent'"):
        _ = scheduler.Absent


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pumice.framework.plugin", "pumice.scheduler"),
        ("pumice.engine.rules", "pumice.scheduler"),
        ("pumice.plugins.gang", "pumice.scheduler.plugins"),
    ],
)
def test_a_plugin_against_the_old_paths_is_told_the_new_one(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "old.py").write_text(f"from {old} import Plugin")
    with pytest.raises(InputError, match=f"{old.rpartition('.')[0]} is now in {new}: write `from {new} import"):
        of_folder(str(tmp_path), Plugin)


def test_a_hook_of_the_first_release_is_told_its_new_name() -> None:
    with pytest.raises(TypeError, match="the hook 'on_ungate' is now 'on_gate_removed'"):
        type("Old", (Plugin,), {"name": "old", "on_ungate": lambda self, task: None})
