"""The part of CEL that device selectors use."""

from __future__ import annotations

import pytest

from pumice.api.cel.syntax import CelError, parse
from pumice.api.codec import convert
from pumice.api.devices import Device
from pumice.plugins.kube.device_facts import facts_of, satisfies

DEVICE = {
    "name": "gpu-0",
    "attributes": {
        "gpu.test/model": {"string": "A100"},
        "index": {"int": 3},
        "shared": {"bool": True},
        "driver": {"version": "1.10.3-rc.2"},
        "empty": {},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}
FACTS = facts_of(convert(DEVICE, Device), "drv")
MINE, OTHER, MEMORY = 'device.attributes["drv"]', 'device.attributes["gpu.test"]', 'device.capacity["drv"].memory'

TRUE = [
    'device.driver == "drv"',
    "device.driver != 'other'",
    f'{OTHER}.model == "A100"',
    f'{OTHER}["model"] == r"A100"',
    f'{OTHER}.model in ["A100", "H100"]',
    f'"model" in {OTHER}',
    f'!("size" in {OTHER})',
    f"has({OTHER}.model) && !has({OTHER}.size) && !has(device.attributes['none'].x) && has(device.driver)",
    f"has({OTHER}['model'])",
    f'{OTHER}.model.startsWith("A") && {OTHER}.model.endsWith("00") && {OTHER}.model.contains("10")',
    f'{OTHER}.model.matches("^A[0-9]+$") && {OTHER}.model.lowerAscii() == "a100" && "x".upperAscii() == "X"',
    f"{OTHER}.model.size() == 4 && size([1, 2]) == 2",
    f'{OTHER}.model + "x" == "A100x" && "a" < "b"',
    f"{MINE}.index == 3 && {MINE}.index > 2 && {MINE}.index >= 3 && {MINE}.index < 4 && {MINE}.index <= 3",
    f"{MINE}.shared",
    f"{MINE}.shared == true && {MINE}.index != true",
    f"{MINE}.index == 3.0",
    "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 / 2 == -3 && 7 % 4 == 3 && -7 % 4 == -3 && 7.0 / 2 == 3.5 && 5 - 2 == 3",
    f"{MINE}.index > 5 ? false : true",
    f'{MEMORY}.compareTo(quantity("40Gi")) == 0 && {MEMORY}.isGreaterThan(quantity("39Gi")) && {MEMORY}.isLessThan(quantity("1Ti"))',
    f'{MEMORY} > quantity("1Gi") && {MEMORY}.asInteger() == 42949672960 && {MEMORY} == quantity("40960Mi")',
    f'{MINE}.driver.isLessThan(semver("1.10.3")) && {MINE}.driver.isGreaterThan(semver("1.9.0"))',
    f'{MINE}.driver.compareTo(semver("1.10.3-rc.10")) == -1 && semver("1.0.0-alpha").isGreaterThan(semver("1.0.0-1"))',
    f"{MINE}.driver.major() == 1 && {MINE}.driver.minor() == 10 && {MINE}.driver.patch() == 3",
    f"{MINE}.missing == 1 || true",
    "[1, 2][1] == 2 && string(3) == '3' && string(true) == 'true' && string('x') == 'x' && int('4') == 4",
    f"{MINE}.empty == null",
    "'it\\'s' == \"it's\"",
    f"!'{'a' * 100}!'.matches('^(a+)+$') && '{'a' * 100}!'.find('^(a+)+$') == '' && '{'a' * 100}!'.findAll('^(a+)+$') == []",
]


@pytest.mark.parametrize("text", TRUE)
def test_these_hold(text: str) -> None:
    assert satisfies(parse(text), FACTS)


@pytest.mark.parametrize("text", [f"{MINE}.missing == 1 && false", f"{MINE}.index == '3'", "false || false", f"!{MINE}.shared"])
def test_these_do_not(text: str) -> None:
    assert not satisfies(parse(text), FACTS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{MINE}.missing == 1", "no such key: missing"),
        (f"{MINE}.missing || false", "no such key"),
        (f"{MINE}.index", "neither true nor false"),
        (f"{MINE}.index && true", "neither true nor false"),
        ("device.colour == 'red'", "device.colour is not known"),
        ("node.name == 'x'", "node is not known"),
        ("device.driver.x == 1", "no x here"),
        ("[1][3] == 1", "no 3 here"),
        ("device.driver > 1", "no such overload"),
        ("-device.driver == 1", "no such overload"),
        ("1 / 0 == 1", "division by zero"),
        ("1 in 2", "asks for a list"),
        ("has(1)", "asks for a member"),
        ("quantity('2 cores') == 1", "is not a quantity"),
        ("semver('1.x') == 1", "is no semantic version"),
        ("semver('1.0.0').isLessThan('1.0.0')", "no such overload"),
        ("quantity(1).startsWith('1')", "is for text"),
        ("'x'.matches('[')", "matches()"),
        ("'x'.asInteger() == 1", "asInteger()"),
    ],
)
def test_these_have_no_value(text: str, problem: str) -> None:
    with pytest.raises(CelError) as told:
        satisfies(parse(text), FACTS)
    assert problem in str(told.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1].exists(1, true)", "exists() is not supported"),
        ("device.driver.reverse()", "reverse() is not supported"),
        ("size(1, 2)", "size() takes 1 argument, not 2"),
        ("'x'.size(1)", "size() takes 0 arguments, not 1"),
        ("device.driver ==", "ends too early"),
        ("(1", '")" is missing'),
        ("device.driver == 1 2", '"2" is not expected'),
        ("[1 2]", '"," is missing before "2"'),
        ("== 1", '"==" is not expected'),
        ("a # b", "is not understood"),
    ],
)
def test_these_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(CelError) as told:
        parse(text)
    assert problem in str(told.value)
