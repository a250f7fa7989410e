"""The relations between the roles of a job, read from its PodGroup's annotations.

Groups of roles are separated by `;`, roles in a group by `,`. A group of one role is about the tasks of that role, a larger group about
every pair of its roles. A role that no task has, or that occurs twice in a group, makes the whole topology void.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import permutations

from pumice.api.annotations import TASK_AFFINITY, TASK_ANTI_AFFINITY, TASK_ORDER

KEYS = (TASK_AFFINITY, TASK_ANTI_AFFINITY, TASK_ORDER)

SELF_ANTI, INTER_AFFINITY, SELF_AFFINITY, INTER_ANTI = 4, 3, 2, 1  #: what a relation adds to its role's importance

Neighbours = dict[str, set[str]]


class Relations:
    """Which roles attract each other, and which avoid each other. A role that attracts or avoids its own tasks is its own neighbour."""

    def __init__(self, affinity: Iterable[list[str]] = (), anti_affinity: Iterable[list[str]] = (), order: Iterable[str] = ()) -> None:
        self.attracts = _neighbours(affinity)
        self.avoids = _neighbours(anti_affinity)
        order = list(order)
        self._precedence = {role: len(order) - position for position, role in enumerate(order)}

    def knows(self, role: str) -> bool:
        """Whether the role has any relation."""
        return role in self.attracts or role in self.avoids

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key of a role: first the roles that the user put first, then those with the stronger relations."""
        return -self._precedence.get(role, 0), -self._importance(role)

    def _importance(self, role: str) -> int:
        attracts, avoids = self.attracts.get(role, set()), self.avoids.get(role, set())
        return max(
            SELF_ANTI * (role in avoids),
            INTER_AFFINITY * bool(attracts - {role}),
            SELF_AFFINITY * (role in attracts),
            INTER_ANTI * bool(avoids - {role}),
        )

    def pull(self, role: str, company: Mapping[str, int]) -> int:
        """How much a task of the role is drawn to other tasks. `company`: their numbers by role."""
        return sum(number for mate, number in company.items() if mate in self.attracts.get(role, ())) + self.push(role, company)

    def push(self, role: str, company: Mapping[str, int]) -> int:
        """The repelling part of `pull`: 0 or less."""
        return -sum(number for mate, number in company.items() if mate in self.avoids.get(role, ()))


def _neighbours(groups: Iterable[list[str]]) -> Neighbours:
    found: Neighbours = {}
    for group in groups:
        for role, mate in permutations(group, 2) if len(group) > 1 else [(group[0], group[0])]:
            found.setdefault(role, set()).add(mate)
    return found


def read_relations(annotations: Mapping[str, str], roles: Collection[str]) -> Relations | None:
    """The relations that the annotations give for a job whose tasks have these roles; None if they give none, or are not valid."""
    if not any(key in annotations for key in KEYS):
        return None
    affinity = _groups(annotations.get(TASK_AFFINITY))
    anti_affinity = _groups(annotations.get(TASK_ANTI_AFFINITY))
    order = annotations[TASK_ORDER].split(",") if TASK_ORDER in annotations else []
    for group in (*affinity, *anti_affinity, order):
        if len(set(group)) < len(group) or not set(group) <= set(roles):
            return None
    return Relations(affinity, anti_affinity, order)


def _groups(text: str | None) -> list[list[str]]:
    return [group.split(",") for group in text.split(";")] if text is not None else []
