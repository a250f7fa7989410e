"""Expressions that cost much: nobody waits for them but the write that they judge. Work on the event loop is counted in lines of Python."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pumice.cluster.apiserver import StatusError, Store
from pumice.cluster.apiserver.pending_calls import Pending, attempted, until_done
from tests.apiserver.made import store
from tests.apiserver.test_crd_rules import box, ruled
from tests.apiserver.test_policies import GROUP, config_map, mutating, validating
from tests.hostile.test_cost import lines

MOST_LINES = 400_000  #: of a turn of the event loop
LARGE = "object.data.k.split(',')"
COSTLY = f"{LARGE}.all(a, {LARGE}.all(b, a == b || a != b))"
TEXT = ",".join(str(number) for number in range(150))
NAMES = [str(number) for number in range(400)]


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Pending:
        raise
    except StatusError as error:
        return f"{error.code} {error}"


class Turns:
    """Does work that can wait, and counts how many lines each turn of the event loop runs."""

    def __init__(self, made: Store) -> None:
        self.lines: list[int] = []
        self._store = made

    def _turn(self, work: Callable[[], Any]) -> Any:
        found: list[Any] = []
        pending: list[Pending] = []

        def counted() -> None:
            try:
                found.append(outcome(work))
            except Pending as error:
                pending.append(error)

        self.lines.append(lines(counted))
        if pending:
            raise pending[0]
        return found[0]

    def do(self, work: Callable[[], Any]) -> Any:
        async def main() -> Any:
            try:
                return attempted(self._store, lambda: self._turn(work))
            except Pending as pending:
                return await until_done(self._store, lambda: self._turn(work), pending)
            finally:
                await self._store.expressions.close()

        return asyncio.run(main())


def by_rule(rule: str, **spec: Any) -> tuple[Store, Callable[[Store], Any]]:
    return ruled({"rule": rule, **spec}), lambda made: box(made, names=NAMES)["spec"]["names"]


def by_policy(expression: str, **spec: Any) -> tuple[Store, Callable[[Store], Any]]:
    made = store()
    validating(made, {"expression": expression}, **spec)
    return made, lambda made: config_map(made, k=TEXT)["data"]


def by_mutation(expression: str) -> tuple[Store, Callable[[Store], Any]]:
    made = store()
    found = f"Object{{data: {{'found': string({expression})}}}}"
    mutating(made, {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": found}})
    return made, lambda made: config_map(made, k=TEXT)["data"]


def by_condition(expression: str) -> tuple[Store, Callable[[Store], Any]]:
    made = store()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {
        "name": "h.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "matchConditions": [{"name": "c", "expression": expression}],
    }
    made.create(f"validatingwebhookconfigurations.{GROUP}", {"metadata": {"name": "w"}, "webhooks": [hook]})
    return made, lambda made: config_map(made, k=TEXT)["data"]


ALL_NAMES = "self.names.all(a, self.names.all(b, a == b || a != b))"


@pytest.mark.parametrize(
    "case",
    [
        lambda: by_rule(ALL_NAMES),
        lambda: by_rule(f"!({ALL_NAMES})", message="no"),
        lambda: by_rule("self.names.all(a, self.names.all(b, self.names.all(c, a == b || a != b)))"),
        lambda: by_rule("self.names.size() == 0", messageExpression=f"{ALL_NAMES} ? 'all' : 'some'"),
        lambda: by_policy(COSTLY),
        lambda: by_policy(f"!({COSTLY})"),
        lambda: by_policy("variables.all", variables=[{"name": "all", "expression": COSTLY}]),
        lambda: by_policy("false", matchConditions=[{"name": "c", "expression": f"!({COSTLY})"}]),
        lambda: by_policy(f"{COSTLY} && !authorizer.group('').resource('secrets').check('get').allowed()"),
        lambda: by_policy("1 / 0 == 1", variables=[{"name": "all", "expression": COSTLY}]),
        lambda: by_mutation(COSTLY),
        lambda: by_condition(f"!({COSTLY})"),
    ],
)
def test_what_costs_much_comes_to_the_same_on_a_thread(case: Callable[[], tuple[Store, Callable[[Store], Any]]]) -> None:
    (direct, work), (made, _) = case(), case()
    expected = outcome(lambda: work(direct))
    turns = Turns(made)
    assert turns.do(lambda: work(made)) == expected
    assert len(turns.lines) > 1 and max(turns.lines) < MOST_LINES


def test_what_costs_little_is_evaluated_at_once() -> None:
    made, work = by_rule("self.names.size() == 400")
    turns = Turns(made)
    assert turns.do(lambda: work(made)) == NAMES
    assert len(turns.lines) == 1 and "expressions" not in " ".join(thread.name for thread in threading.enumerate())
