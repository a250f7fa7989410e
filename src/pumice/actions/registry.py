"""All actions by name."""

from __future__ import annotations

import pumice.actions as package
from pumice.framework.catalogue import Catalogue
from pumice.framework.policy import Action

ACTIONS: Catalogue[Action] = Catalogue(package, Action)
