"""A port that nobody has at this moment: for programs that are told theirs and cannot say which one the system chose."""

from __future__ import annotations

import socket


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
