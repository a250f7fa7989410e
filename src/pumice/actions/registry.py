"""All actions by name: those of this package, of installed packages (entry-point group `pumice.actions`), of a folder."""

from __future__ import annotations

import pumice.actions as package
from pumice.framework.catalogue import Catalogue
from pumice.framework.policy import Action
from pumice.plugins.registry import installed, of_folder

GROUP = "pumice.actions"
ACTIONS: Catalogue[Action] = Catalogue(package, Action)


def actions(folder: str | None = None) -> Catalogue[Action]:
    """Later sources replace earlier ones, as with plugins."""
    return Catalogue(package, Action, installed(Action, GROUP) | (of_folder(folder, Action) if folder else {}))
