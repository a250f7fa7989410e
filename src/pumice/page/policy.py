"""A policy as it is understood, for people: actions in their order, plugins by tier with all their arguments; and written anew."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from pumice.scheduler.config.arguments import REST
from pumice.scheduler.framework.policy import SCHEDULE, PluginOption, Policy

Fields = dict[str, Any]


def policy_fields(policy: Policy) -> Fields:
    """What the page shows of it."""
    usual = _usual(policy)
    return {
        "actions": [{"name": action.name, "text": _promise(type(action)), "args": _as_text(action.args)} for action in policy.actions],
        "tiers": [[_plugin(choice, usual) for choice in tier] for tier in policy.tiers],
        "text": written(policy),
        "profiles": sorted(policy.profiles.by_name) if policy.profiles is not None else [],
    }


def written(policy: Policy) -> str:
    """A configuration that means the same, with every argument, to be changed and tried. kube-scheduler's profiles are no part of it."""
    actions = [action for action in policy.actions if action.name != SCHEDULE]
    lines = [f'actions: "{", ".join(action.name for action in actions)}"', "tiers:"]
    for tier in policy.tiers:
        lines.append("- plugins:")
        for choice in tier:
            lines.append(f"  - name: {choice.plugin.name}")
            lines += [f"    {switch}: false" for switch in sorted(choice.off - _usual(policy))]
            lines += ["    enableHierarchy: true"] if choice.hierarchy else []
            lines += _listed("    ", _as_written(choice.args, choice.plugin.wildcard_args))
    arguments = [(action.name, listed) for action in actions if (listed := _listed("  ", _as_written(action.args)))]
    lines += ["configurations:"] if arguments else []
    for name, listed in arguments:
        lines += [f"- name: {name}", *listed]
    return "\n".join(lines) + "\n"


def _listed(indent: str, args: Fields) -> list[str]:
    return [f"{indent}arguments:", *(f"{indent}  {name}: {json.dumps(value)}" for name, value in args.items())] if args else []


def _as_written(args: Any, wildcards: tuple[str, ...] = ()) -> Fields:
    """Under the names that configurations have for them."""
    values: Fields = msgspec.to_builtins(args, enc_hook=str) if isinstance(args, msgspec.Struct) else {}
    prefix = wildcards[0] if len(wildcards) == 1 else ""
    return {name: value for name, value in values.items() if name != REST} | {f"{prefix}{k}": v for k, v in values.get(REST, {}).items()}


def _usual(policy: Policy) -> frozenset[str]:
    """What is switched off for all plugins."""
    plugins = [choice for tier in policy.tiers for choice in tier]
    return frozenset.intersection(*(choice.off for choice in plugins)) if plugins else frozenset()


def _plugin(choice: PluginOption, usual: frozenset[str]) -> Fields:
    """Switches that are off for all say nothing."""
    off = sorted(choice.off - usual)
    return {
        "name": choice.plugin.name,
        "text": _promise(choice.plugin),
        "args": _as_text(choice.args, choice.plugin.wildcard_args),
        "off": off,
    }


def _promise(of: type) -> str:
    """What its module says first, without its name."""
    text = (sys.modules[of.__module__].__doc__ or "").strip().partition("\n")[0]
    name, colon, rest = text.partition(": ")
    return rest if colon and " " not in name else text


def _as_text(args: Any, wildcards: tuple[str, ...] = ()) -> dict[str, str]:
    """They are only read."""
    return {name: str(value) for name, value in _as_written(args, wildcards).items()}
