"""Names that Volcano gives by itself."""

from __future__ import annotations

SCHEDULER_NAME = "volcano"
DEFAULT_QUEUE = "default"  #: of whoever names none
ROOT_QUEUE = "root"  #: above all queues
