"""Arguments of plugins and actions: what cannot be understood is told by its name and line, and nothing else is lost with it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from pumice.api.errors import InputError
from pumice.extensions import plugins
from pumice.scheduler.config.volcano_conf import read_policy

HEAD = 'actions: "allocate"\ntiers:\n- plugins:\n'


def read(plugin: str, *lines: str) -> tuple[Any, list[str]]:
    """The arguments, and what was told after the file's name."""
    text = HEAD + f"  - name: {plugin}\n    arguments:\n" + "".join(f"      {line}\n" for line in lines)
    policy, warnings = read_policy(text, plugins(), where="conf")
    return policy.tiers[0][0].args, [warning.removeprefix("conf:") for warning in warnings]


def test_one_wrong_field_keeps_the_others_beside_and_around_it() -> None:
    args, told = read("usage", "usage.weight: 2", "thresholds:", "  cpu: busy", "  mem: 30", "estimator: {risk_factor: 3}")
    assert (args.weight, args.thresholds.cpu, args.thresholds.mem, args.estimator.risk_factor) == (2, None, 30, 3)
    assert told == [
        '8: warning: argument "thresholds.cpu" of plugin "usage" is \'busy\', which is not a number (the default applies, as in Volcano)'
    ]


def test_in_a_list_of_structs_only_the_wrong_field_is_lost() -> None:
    lines = ("strategies:", "- name: lowNodeUtilization", "  params: {thresholds: {cpu: 20, memory: much}, targetThresholds: {cpu: 50}}")
    args, told = read("rescheduling", *lines, "interval: 9m")
    (strategy,) = args.strategies
    assert (args.interval, strategy.params.thresholds.cpu, strategy.params.target_thresholds.cpu) == (540, 20, 50)
    assert strategy.params.thresholds.memory == 100
    assert [text.partition(" of plugin")[0] for text in told] == ['8: warning: argument "strategies[0].params.thresholds.memory"']


@pytest.mark.parametrize(
    ("plugin", "key", "default"),
    [
        ("lost-work", "minimumRunTime", 0),
        ("sla", "sla-waiting-time", 0),
        ("extender", "extender.httpTimeout", 1),
        ("tdm", "tdm.evict.period", 60),
        ("rescheduling", "interval", 300),
        ("rescheduling", "metricsPeriod", 300),
    ],
)
@pytest.mark.parametrize("time", ["soon", "-1m", "5"])
def test_a_time_that_is_none_is_told(plugin: str, key: str, default: float, time: str) -> None:
    args, told = read(plugin, f"{key}: {time}")
    (field,) = (each for each in structs.fields(args) if each.encode_name == key)
    assert getattr(args, field.name) == default
    wrong = repr(int(time) if time.isdigit() else time)
    reason = f"is {wrong}, which is not a duration such as 90m or 24h (the default applies, as in Volcano)"
    assert told == [f'6: warning: argument "{key}" of plugin "{plugin}" {reason}']


def test_a_default_estimate_that_is_no_time_is_told() -> None:
    text = 'actions: "in-order"\nconfigurations:\n- name: in-order\n  arguments: {defaultEstimate: soon}\n'
    policy, (warning,) = read_policy(text, plugins(), where="conf")
    assert [action.args.default_estimate for action in policy.actions if action.name == "in-order"] == [0]
    assert warning.startswith("conf:4: warning: argument \"defaultEstimate\" of action in-order is 'soon', which is not a duration")


def test_an_element_that_is_no_such_thing_is_left_out_of_its_list() -> None:
    args, told = read("rescheduling", "strategies:", "- params: {}", "- 7", "- {name: lowNodeUtilization}")
    assert [strategy.name for strategy in args.strategies] == ["lowNodeUtilization"]
    assert told == [
        '7: warning: argument "strategies[0]" of plugin "rescheduling" has no \'name\' (left out)',
        '8: warning: argument "strategies[1]" of plugin "rescheduling" is 7, which is not a mapping (left out)',
    ]


def test_a_wrong_entry_of_a_mapping_is_left_out_of_it() -> None:
    args, told = read("resource-strategy-fit", "sra: {enable: 'true', resourceWeight: {a: 3, b: heavy}}")
    assert (args.sra.enable, args.sra.resource_weight) == (True, {"a": 3})
    assert [text.partition(" of plugin")[0] for text in told] == ['6: warning: argument "sra.resourceWeight.b"']


@pytest.mark.parametrize(
    ("plugin", "line", "told"),
    [
        ("usage", "usage.weight: [1]", '"usage.weight" of plugin "usage" is [1], which is not an integer'),
        ("binpack", "binpack.weight: 10.0", '"binpack.weight" of plugin "binpack" is 10.0, which is not an integer'),
        ("binpack", "binpack.resources.x: 1E1", '"binpack.resources.x" of plugin "binpack" is 1E1, which is not an integer'),
        ("usage", "thresholds: high", '"thresholds" of plugin "usage" is \'high\', which is not a mapping'),
        ("usage", "estimator: {be_cpu: []}", '"estimator.be_cpu" of plugin "usage" is [], which is not an integer or a string'),
        ("rescheduling", "strategies: 3", '"strategies" of plugin "rescheduling" is 3, which is not a list'),
        ("tdm", "tdm.time-zone: 3", '"tdm.time-zone" of plugin "tdm" is 3, which is not a string'),
        ("nodegroup", "strict: maybe", '"strict" of plugin "nodegroup" is \'maybe\', which is not true or false'),
        (
            "resource-strategy-fit",
            "resources: {cpu: {type: Half}}",
            '"resources.cpu.type" of plugin "resource-strategy-fit" is \'Half\', which is not "LeastAllocated" or "MostAllocated"',
        ),
    ],
)
def test_a_warning_says_what_is_wanted(plugin: str, line: str, told: str) -> None:
    assert read(plugin, line)[1] == [f"6: warning: argument {told} (the default applies, as in Volcano)"]


def test_an_unknown_name_is_told_at_any_depth() -> None:
    args, told = read("usage", "thresholds: {cpus: 3, mem: 30}")
    assert args.thresholds.mem == 30
    assert told == ['6: warning: plugin "usage" has no argument "thresholds.cpus" (ignored); did you mean "cpu"?']


def test_strictly_all_oddities_are_errors_together() -> None:
    text = "actions: allocate\ncolour: red\ntiers:\n- plugins:\n  - name: gnag\n  - name: binpack\n    arguments: {binpack.wieght: 3}\n"
    with pytest.raises(InputError) as caught:
        read_policy(text, plugins(), where="conf", strict=True)
    assert [line.partition(" (")[0] for line in str(caught.value).splitlines()] == [
        'conf:2: there is no setting "colour"',
        'conf:5: there is no plugin "gnag"',
        'conf:7: plugin "binpack" has no argument "binpack.wieght"',
    ]
    with pytest.raises(InputError) as caught:
        read_policy(text.replace("allocate", "alocate"), plugins(), where="conf", strict=True)
    assert str(caught.value).splitlines() == [
        'conf:1: actions: there is no action "alocate"; did you mean "allocate"?',
        'conf:2: there is no setting "colour" (ignored, as Volcano does)',
    ]
