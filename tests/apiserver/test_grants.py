"""Rights are compared by rules: as exactly as act by act, and with a work that is bounded whatever the rules are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.cluster.apiserver import StatusError, UserInfo, WriteOptions
from pumice.cluster.apiserver.auth.grants import MOST_STEPS, Attributes, Grants, TooMuchToCompare
from pumice.cluster.apiserver.auth.rbac import allowed
from pumice.cluster.apiserver.patches.patch import PatchRequest
from tests.apiserver.made import store
from tests.hostile.test_cost import lines

RBAC = "rbac.authorization.k8s.io"
Rules = list[dict[str, Any]]


def some(values: str, smallest: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values.split()), min_size=smallest, max_size=3)


ABOUT_RESOURCES = st.fixed_dictionaries(
    {"verbs": some("get list *"), "apiGroups": some("apps batch *"), "resources": some("a b a/x */x *"), "resourceNames": some("n m", 0)}
)
ABOUT_PATHS = st.fixed_dictionaries({"verbs": some("get list *"), "nonResourceURLs": some("/a /ab /a* /b * /ab/*")})
RULES = st.lists(ABOUT_RESOURCES | ABOUT_PATHS, max_size=4)


def granted(rules: Rules) -> Iterator[Attributes]:
    """Every act of the rules, one by one."""
    for rule in rules:
        for verb, path in itertools.product(rule["verbs"], rule.get("nonResourceURLs", [])):
            yield Attributes(verb, path=path)
        for verb, group, resource in itertools.product(rule["verbs"], rule.get("apiGroups", []), rule.get("resources", [])):
            plural, _, subresource = resource.partition("/")
            for name in rule["resourceNames"] or [""]:
                yield Attributes(verb, group, plural, subresource, "", name)


def holding(rules: Rules) -> Any:
    """A store in which the user ann holds the rules."""
    made = store()
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "own"}, "rules": rules})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    reference = {"kind": "ClusterRole", "name": "own", "apiGroup": RBAC}
    made.create(f"clusterrolebindings.{RBAC}", {"metadata": {"name": "own"}, "roleRef": reference, "subjects": [subject]})
    return made


@given(RULES, RULES)
def test_rules_are_compared_as_if_act_by_act(held: Rules, wanted: Rules) -> None:
    made = holding(held)
    lacking = [act for act in granted(wanted) if not allowed(made, UserInfo("ann"), act)]
    found = Grants(held).lacking(wanted)
    assert found in lacking if lacking else found is None


def big(size: int, distinct: bool) -> dict[str, Any]:
    sides = {"verbs": "get", "apiGroups": "apps", "resources": "deployments"}
    return {side: [f"{value}{number}" if distinct else value for number in range(size)] for side, value in sides.items()}


@pytest.mark.parametrize("distinct", [False, True], ids=["equal values", "values of their own"])
def test_a_rule_of_many_values_costs_no_more_than_its_size(distinct: bool) -> None:
    """300 of each in 6 kB are 27 million acts."""
    Grants([]).lacking([big(10, distinct)])
    once, twice = (lines(lambda size=size: Grants([big(size, distinct)]).lacking([big(size, distinct)])) for size in (300, 600))
    assert twice < 2.5 * once


def test_rules_that_cut_each_other_into_pieces_are_not_compared_for_ever() -> None:
    names = [f"x{number}" for number in range(40)]
    held = [
        {"verbs": names[n : n + 20], "apiGroups": names[20 - n % 7 :: 2], "resources": names[n::3], "resourceNames": names[n % 5 :: 2]}
        for n in range(400)
    ]
    wanted = {"verbs": names, "apiGroups": names, "resources": names, "resourceNames": names}
    held.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["nothing"]})
    steps = lines(lambda: _compared(held, wanted))
    assert steps < 20 * MOST_STEPS


def _compared(held: Rules, wanted: dict[str, Any]) -> None:
    try:
        assert Grants(held).lacking([wanted]) is not None
    except TooMuchToCompare:
        return


MAKES_ROLES = {"verbs": ["create", "update", "patch"], "apiGroups": [RBAC], "resources": ["clusterroles"]}
READS_ALL = {"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
ANY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}


@pytest.mark.parametrize(("held", "accepted"), [([MAKES_ROLES], False), ([READS_ALL, MAKES_ROLES], False), ([EVERYTHING, ANY_PATH], True)])
def test_who_gathers_a_role_from_others_must_hold_every_right(held: Rules, accepted: bool) -> None:
    """The parts that such a role will have are not known when it is written."""
    made = holding(held)
    options = WriteOptions(user=UserInfo("ann"))
    gathered = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "plain"}, "rules": []})
    for write in (
        lambda: made.create(f"clusterroles.{RBAC}", {"metadata": {"name": "new"}, "rules": []} | gathered, options=options),
        lambda: made.patch(f"clusterroles.{RBAC}", "plain", PatchRequest("merge", gathered), options=options),
    ):
        if accepted:
            write()
            continue
        with pytest.raises(StatusError) as refused:
            write()
        assert refused.value.code == 403
