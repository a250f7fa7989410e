"""What policies get to see says which attribute was meant, also to who knows it by a field of the API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pumice.api.errors import did_you_mean

#: words of the API, and of Volcano's code, for attributes here
OTHER_WORDS = {
    "min_available": "min_member",
    "min_task_member": "role_minimum",
    "pods": "tasks",
    "requests": "template.request",
    "request": "template.request",
    "resreq": "template.request",
    "limits": "template.limits",
    "scheduler_name": "template.scheduler_name",
    "allocated": "held",
}


class Suggesting:
    """Asked only for what is not there, so it costs nobody else anything."""

    __slots__ = ()

    if not TYPE_CHECKING:  # pragma: no branch  # to a type checker every attribute would exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [each for each in dir(self) if not each.startswith("_")]
            plain = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
            meant = OTHER_WORDS.get(plain, "")
            hint = f'; did you mean "{meant}"?' if meant.partition(".")[0] in known else did_you_mean(plain, known)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
