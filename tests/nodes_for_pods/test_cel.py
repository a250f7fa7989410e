"""CEL as device selectors have it. `cel.txt` is a table of expressions, each with its value, its refusal or its error: here is how it is
read, and what expressions may cost."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pumice.api.cel.check import Environment
from pumice.api.cel.cost import EACH_EXPRESSION, CostBudget
from pumice.api.cel.errors import CompileError, CostError, EvaluationError
from pumice.api.cel.program import Program
from pumice.api.cel.values import ANY, DYN, equal
from pumice.api.device_expressions import selection
from pumice.api.devices import Device
from pumice.api.structs import convert
from pumice.scheduler.plugins.kube.devices.device_attributes import facts_of, satisfies

DEVICE = {
    "name": "gpu-0",
    "allowMultipleAllocations": True,
    "attributes": {
        "gpu.test/model": {"string": "A100"},
        "index": {"int": 3},
        "shared": {"bool": True},
        "driver": {"version": "1.10.3-rc.2"},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}
FACTS = facts_of(convert(DEVICE, Device), "drv")
SELF = {"self": {"a": 1, "b": "x", "l": [1, 2, 3], "m": {"k": "v"}}}
ANYTHING = Environment({"self": DYN}, {})
LINE = re.compile(r"(?P<expression>.+?) +(?P<outcome>=>|refused:|error:) (?P<rest>.*)")
TABLE = [line for line in (Path(__file__).parent / "cel.txt").read_text().splitlines() if line and not line.startswith("#")]


def program(expression: str) -> Program:
    for_devices = re.search(r"\bdevice\b|\bcel\.", expression)
    return selector(expression) if for_devices else Program(expression, ANYTHING)


def selector(expression: str) -> Program:
    found = selection(expression)
    if isinstance(found, str):
        raise CompileError(found)
    return found


def value(expression: str, **names: Any) -> Any:
    return program(expression).value({**SELF, **FACTS, **names})


@pytest.mark.parametrize("line", TABLE)
def test_expressions_have_these_values_and_faults(line: str) -> None:
    match = LINE.fullmatch(line)
    assert match is not None
    expression, rest = match["expression"], match["rest"]
    if match["outcome"] == "=>":
        found, wanted = value(expression), value(rest)
        assert type(found) is type(wanted)
        assert equal(found, wanted, CostBudget()), f"{found} is not {wanted}"
        return
    with pytest.raises(CompileError if match["outcome"] == "refused:" else EvaluationError) as told:
        read = program(expression)
        read.holds(FACTS) if read.kind == ANY else read.value({**SELF, **FACTS})
    assert str(told.value).split("\n")[0].startswith(rest.removesuffix("..."))


LOOP = "[1,2,3,4,5,6,7,8,9,10]"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("self.replace('a', self).size()", "a" * 20_000),
        ("self.replace('', self).size()", "a" * 20_000),
        ("[self, self, self, self, self].join(self).size()", "a" * 4_000_000),
        ("lists.range(5000).map(i, self).join().size()", "a" * 20_000),
        ("(self + self + self + self).size()", "a" * 4_000_000),
        ("'%s%s%s%s'.format([self, self, self, self]).size()", "a" * 4_000_000),
        ("'%.999999999f'.format([double(self)]).size()", "1"),
        ("lists.range(9000000000).size()", ""),
        ("self.split('').size()", "é" * 1_000_000),
        ("self.find('a*b') == 'b'", "a" * 10_000_000),
    ],
)
def test_what_costs_too_much_is_given_up_before_it_is_made(expression: str, text: str) -> None:
    read = Program(expression, ANYTHING)
    tracemalloc.start()
    try:
        with pytest.raises(CostError, match="actual cost limit exceeded"):
            read.value({"self": text})
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(2000).distinct().size()",
        "lists.range(2000).sort().size()",
        "sets.contains(lists.range(2000), lists.range(2000))",
        f"{LOOP}.all(a, {LOOP}.all(b, {LOOP}.all(c, {LOOP}.all(d, {LOOP}.all(e, a + b + c + d + e > 0)))))",
        f"{LOOP}.exists(a, {LOOP}.exists(b, {LOOP}.exists(c, {LOOP}.exists(d, {LOOP}.exists(e, a / 0 == 1)))))",
        f"{LOOP}.map(a, {LOOP}.map(b, {LOOP}.map(c, {LOOP}.map(d, {LOOP}.map(e, a)))))",
        "self.findAll('').size()",
        "self.findAll('a').size()",
    ],
)
def test_what_takes_long_is_given_up(expression: str) -> None:
    with pytest.raises(CostError):
        Program(expression, ANYTHING).value({"self": "a" * 5000}, CostBudget(20_000))


def test_doubling_lists_costs_more_each_time() -> None:
    doubled = "self"
    for level in range(24):
        doubled = f"cel.bind(v{level}, {doubled}, v{level} + v{level})" if level else "self + self"
    environment = Environment({"self": DYN}, {}, frozenset({"cel.bind"}))
    with pytest.raises(CostError):
        Program(doubled, environment).value({"self": list(range(100))})


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("1 + 2", 1),
        ("[1][0]", 2),
        ("self.a == 1", 3),
        ("self.l.all(x, x > 0)", 18),
        ("[1, 2].map(x, x * 2)", 29),
        ("[1, 2].exists(x, x > 1)", 13),
        ("[1, 2].filter(x, x > 1)", 18),
        ("{'a': 1}.transformMap(k, v, v + 1)", 6),
        ("[3, 1, 2].sort()", 29),
        ("lists.range(5)", 16),
        ("['bb', 'a'].sortBy(x, x.size())", 50),
        ("'abc 123 45'.find('[0-9]+')", 4),
        ("format.dns1123Subdomain().validate('a')", 16),
        ("url('https://u:p@ex.com:80/a%20b/c?k=v&k=w&x=#frag').getPort()", 6),
    ],
)
def test_costs_are_those_of_the_api_server(expression: str, cost: int) -> None:
    budget = CostBudget()
    Program(expression, ANYTHING).value(SELF, budget)
    assert EACH_EXPRESSION - budget.left == cost


@pytest.mark.parametrize("expression", ["(" * 5000, "[" * 5000, "!" * 5000, "1 + " * 5000 + "1", "self" + ".a" * 5000, "1" * 100_001])
def test_expressions_that_are_too_long_or_too_deep_are_refused(expression: str) -> None:
    with pytest.raises(CompileError):
        program(expression)


def test_many_conditions_are_not_deep() -> None:
    assert value(" && ".join(["self.a == 1"] * 2000))


def test_a_device_whose_facts_cannot_be_read_has_no_verdict() -> None:
    for attribute, problem in (({"version": "1.x"}, "attribute odd: parse semantic version: No Major"), ({}, "attribute odd: unsupported")):
        facts = facts_of(convert({"name": "d", "attributes": {"odd": attribute}}, Device), "drv")
        with pytest.raises(EvaluationError, match=problem):
            satisfies(selector("device.driver == 'drv'"), facts)


def test_evaluations_may_share_a_budget() -> None:
    budget = CostBudget(10)
    assert satisfies(selector("device.driver == 'drv'"), FACTS, budget)
    with pytest.raises(CostError):
        for _ in range(4):
            satisfies(selector("device.driver == 'drv'"), FACTS, budget)
