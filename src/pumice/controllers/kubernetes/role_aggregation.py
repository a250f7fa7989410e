"""ClusterRoles that are made of others: whoever labels a role adds its rules to each role whose `aggregationRule` selects these labels."""

from collections.abc import Hashable, Iterable
from json import dumps

from pumice.api import Key, Object, key_of, kinds, name_of
from pumice.api.selectors import matches_selector
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.writes import patch

ROLE = kinds.CLUSTER_ROLES.name


class RoleAggregation:
    name = "clusterrole-aggregation"

    def __init__(self) -> None:
        self.watches = {ROLE: _aggregated}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        role = lister.get(ROLE, *key)
        if role is None or not role.get("aggregationRule"):
            return NOTHING
        parts = (part for part in lister.all(ROLE) if name_of(part) != key.name and _selects(role, part))
        rules = list({dumps(rule, sort_keys=True): rule for part in parts for rule in part.get("rules") or ()}.values())
        return NOTHING if rules == (role.get("rules") or []) else result([patch(role, {"rules": rules})])


def _aggregated(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    return [key_of(role) for role in lister.all(ROLE) if role.get("aggregationRule")]


def _selects(role: Object, part: Object) -> bool:
    labels = part["metadata"].get("labels") or {}
    return any(matches_selector(each, labels) for each in role["aggregationRule"].get("clusterRoleSelectors") or ())
