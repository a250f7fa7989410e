"""volcano-scheduler.conf: what Volcano goes on after is told, what it refuses is refused, each with its line."""

from __future__ import annotations

import pytest

from pumice.api.errors import InputError
from pumice.extensions import plugins
from pumice.scheduler.config import config_text
from pumice.scheduler.config.limits import LARGEST_TEXT, MOST_TIERS, MOST_VALUES
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.policy import Policy

ACTIONS = 'actions: "allocate"\n'


def read(text: str) -> tuple[Policy, list[str]]:
    policy, warnings = read_policy(text, plugins(), where="conf")
    return policy, [warning.removeprefix("conf:") for warning in warnings]


def plugin(entry: str) -> str:
    return f"{ACTIONS}tiers:\n- plugins:\n  - {entry}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", '1: is empty; write at least `actions: "enqueue, allocate, backfill"`'),
        ("#" * (LARGEST_TEXT + 1), f" has {LARGEST_TEXT + 1} characters; a configuration may have {LARGEST_TEXT}"),
        ("actions: '" + "allocate," * 100 + "backfill'", "1: actions: there are 101 actions; write at most 100"),
        (ACTIONS + f"tiers: [{'{}, ' * MOST_TIERS}{{}}]", f"2: tiers: there are {MOST_TIERS + 1} tiers; write at most {MOST_TIERS}"),
        (
            ACTIONS + f"tiers: [{'a,' * MOST_VALUES}]",
            f"1: there are {MOST_VALUES + 2} fields and entries of lists; write at most {MOST_VALUES}",
        ),
        ("- allocate", "1: is not a mapping; write `actions:` and `tiers:`"),
        ("tiers: []", '1: actions: "actions" must be one string, such as "enqueue, allocate, backfill"'),
        (ACTIONS + "tiers: gang", "2: tiers: must be a list"),
        (ACTIONS + "tiers:\n- gang", "3: tiers[0]: a tier is a mapping with the list `plugins`"),
        (plugin("gang"), "4: tiers[0].plugins[0]: a plugin is a mapping with a `name`"),
        (
            plugin("{name: gang, enableJobOrder: often}"),
            "4: tiers[0].plugins[0].enableJobOrder: switch \"enableJobOrder\" must be true or false, not 'often'",
        ),
        (
            plugin("{name: drf, enableHierarchy: true}\n  - name: proportion"),
            "4: tiers[0].plugins: proportion and drf with enableHierarchy conflict in one tier; remove one of them",
        ),
        (plugin("{name: gang, arguments: 3}"), '4: tiers[0].plugins[0].arguments: arguments of plugin "gang" must be a mapping'),
        (ACTIONS + "configurations: [3]", "2: configurations[0]: a configuration is a mapping with a `name`"),
        (ACTIONS + "metrics: prometheus", "2: metrics: must be a mapping of strings"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value) == f"conf:{told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (plugin("name: gnag"), '4: warning: there is no plugin "gnag" (skipped, as Volcano does); did you mean "gang"?'),
        (
            plugin("{name: gang, enableJobOrdr: true}"),
            '4: warning: plugin "gang" has no switch "enableJobOrdr" (ignored, as Volcano does); did you mean "enableJobOrder"?',
        ),
        (
            plugin("{name: binpack, binpack.weight: 3}"),
            '4: warning: plugin "binpack" has no switch "binpack.weight" (ignored, as Volcano does); '
            "it is an argument: write it below `arguments:`",
        ),
        (
            plugin("{name: gang, arguments: {enableJobOrder: true}}"),
            '4: warning: plugin "gang" has no argument "enableJobOrder" (ignored); did you mean the switch "enableJobOrder"?',
        ),
        (
            ACTIONS + "configurations:\n- name: alocate\n",
            '3: warning: configurations name no action "alocate" (ignored, as Volcano does); did you mean "allocate"?',
        ),
        (
            plugin("{name: predicates, arguments: {predicate.GPUSharingEnable: true}}"),
            '4: warning: plugin "predicates" has no argument "predicate.GPUSharingEnable" (ignored); '
            'it is "deviceshare.GPUSharingEnable" of plugin "deviceshare" now',
        ),
        *(
            (
                plugin("name: gang") + rest,
                "1: warning: what follows the first document is ignored, as by Volcano; remove the line `---` or `...` before it",
            )
            for rest in ("...\n- name: selector\n", "---\nactions: allocate\n")
        ),
        (ACTIONS + "configurations:\n- arguments: {}\n", '3: warning: configurations name no action "" (ignored, as Volcano does)'),
    ],
)
def test_what_is_ignored_is_told(text: str, told: str) -> None:
    assert read(text)[1] == [told]


def test_of_two_configurations_of_an_action_the_first_counts() -> None:
    given = "".join(f"- {{name: allocate, arguments: {{predicateErrorCacheEnable: {value}}}}}\n" for value in ("false", "true"))
    (action,) = read(f"{ACTIONS}configurations:\n{given}")[0].actions
    assert not action.args.predicate_error_cache_enable


def test_switches_are_read_in_both_spellings() -> None:
    policy, warnings = read(plugin("{name: gang, enabledJobOrder: false, enablejobready: false}"))
    ((choice,),) = policy.tiers
    assert {"enableJobOrder", "enableJobReady"} <= {switch.replace("enabled", "enable", 1) for switch in choice.off}
    assert warnings == []


def test_a_switch_without_a_value_is_not_set() -> None:
    policy, warnings = read(plugin("{name: gang, enableJobOrder: ~, enableHierarchy: }"))
    ((choice,),) = policy.tiers
    assert choice.off == {"enableHierarchy", "enabledClusterOrder"}
    assert warnings == []


def test_a_plugin_listed_twice_has_the_arguments_of_its_last_place_and_the_hierarchy_of_its_first() -> None:
    places = ("arguments: {binpack.weight: 2}, enableHierarchy: true", "arguments: {binpack.weight: 3}, enableNodeOrder: false")
    policy, _ = read(ACTIONS + "tiers:\n" + "".join(f"- plugins: [{{name: binpack, {place}}}]\n" for place in places))
    found = [(choice.args.weight, choice.hierarchy, "enableNodeOrder" in choice.off) for (choice,) in policy.tiers]
    assert found == [(3, True, False), (3, True, True)]


def test_an_integer_may_be_hexadecimal() -> None:
    policy, warnings = read(plugin("{name: binpack, arguments: {binpack.weight: 0xE}}"))
    assert (policy.tiers[0][0].args.weight, warnings) == (14, [])


def test_metrics_are_strings() -> None:
    policy, warnings = read(ACTIONS + "metrics: {type: prometheus, interval: 30}")
    assert policy.metrics == {"type": "prometheus", "interval": "30"}
    told = 'interval: "30" is not a duration; write one such as "30s", "5m" or "1h30m" (30s applies)'
    assert [warning.partition("warning: ")[2] for warning in warnings] == [told]
    assert read(ACTIONS + "metrics: {type: prometheus, interval: 1m}")[1] == []


def test_in_a_config_map_lines_are_those_of_its_file_if_they_are_known() -> None:
    with pytest.raises(InputError, match=r"^f:11: tiers: must be a list$"):
        read_policy(ACTIONS + "tiers: gang", plugins(), where="f", first_line=10)
    with pytest.raises(InputError, match=r"^f: its aliases expand"):
        aliases = "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True))
        read_policy("a: &a [1]\n" + aliases, plugins(), where="f", first_line=10)


def test_an_empty_file_is_a_configuration_of_volcano() -> None:
    assert config_text("", "f").source is None
