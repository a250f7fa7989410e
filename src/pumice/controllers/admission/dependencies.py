"""Who depends on whom: finding a loop in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def loop(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """A path that ends where it began, or nothing. Names without an entry depend on nothing."""
    done: set[str] = set()
    for start in graph:
        path, waiting = [start], [iter(graph[start])]
        while waiting:
            following = next(waiting[-1], None)
            if following is None:
                waiting.pop()
                done.add(path.pop())
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                path.append(following)
                waiting.append(iter(graph.get(following, ())))
    return []
