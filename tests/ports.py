"""A port that nobody has at this moment: for programs that are told theirs and cannot say which one the system chose.

Below the range from which the system takes the near ends of connections (32768 and above): a server that is killed and comes back finds its
port free, whatever was connected meanwhile.
"""

from __future__ import annotations

import random
import socket

LOWEST, BELOW = 20_000, 32_000


def free_port() -> int:
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(LOWEST, BELOW)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
