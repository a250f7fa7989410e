"""One setting for all property tests: in CI the same examples each time, elsewhere new ones; nothing is timed."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("pumice", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("pumice")
