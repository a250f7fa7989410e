"""A world in which extenders can be reached; what that takes is loaded when there is one."""

from __future__ import annotations

from typing import Any

from pumice.framework.world import Extender, Nowhere


class HttpWorld(Nowhere):
    """Extenders over HTTP, nothing else."""

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> Extender:
        from pumice.sim.extenders import HttpExtender

        return HttpExtender(url, timeout_s, options)
