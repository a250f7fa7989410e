"""env: every container learns the index of its pod within the task, under Volcano's name and the old one."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.controllers.objects import Object
from pumice.controllers.volcano.job.plugins.plugin import Plugin, set_env


class Env(Plugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        """Takes no arguments."""

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        set_env(pod, VK_TASK_INDEX=str(index), VC_TASK_INDEX=str(index))
