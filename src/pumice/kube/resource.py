"""The old name of `pumice.api.kinds`, until nobody imports it."""

from pumice.api.kinds import *  # noqa: F403
from pumice.api.kinds import Kind as Resource  # noqa: F401
