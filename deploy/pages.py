"""The sources of the site: `python deploy/pages.py FOLDER` lays out the documents, and makes the pages that are made of the code.

Links that lead out of the documents, to code and manifests, become their text.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath

from man import commands
from reference import page as reference

from pumice.cli.main import cli

ROOT = Path(__file__).parents[1]
ABOVE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def linked(text: str, folder: str) -> str:
    """A page of this folder of the project, with links as they are in the site."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if not target or "://" in target:
            return found[0]
        path = normpath(PurePosixPath(folder, target).as_posix())
        if path in ABOVE:
            return f"[{words}]({ABOVE[path]}{anchor})"
        return f"[{words}]({path.removeprefix('docs/')}{anchor})" if path.startswith("docs/") else words

    return _LINK.sub(link, text)


def manual() -> str:
    """All commands with their help."""
    parts = ["# Manual\n\nEach command's own help; `make dist` has the same as manual pages.\n"]
    for names, command, context in commands(("pumice",), cli):
        parts.append(f"\n## {' '.join(names)}\n\n```text\n{command.get_help(context)}\n```\n")
    return "".join(parts)


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for path in folder.glob("*.md"):
        path.write_text(linked(path.read_text(), "docs"))
    for name, target in ABOVE.items():
        (folder / target).write_text(linked((ROOT / name).read_text(), "").replace('src="docs/', 'src="').replace("](docs/", "]("))
    (folder / "reference.md").write_text(reference())
    (folder / "manual.md").write_text(manual())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
