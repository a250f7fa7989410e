"""A policy as it is understood, for people: actions in their order, plugins by tier with all their arguments."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from pumice.scheduler.framework.policy import PluginOption, Policy

Told = dict[str, Any]


def told_policy(policy: Policy) -> Told:
    plugins = [choice for tier in policy.tiers for choice in tier]
    usual = frozenset.intersection(*(choice.off for choice in plugins)) if plugins else frozenset()
    return {
        "actions": [{"name": action.name, "text": _promise(type(action)), "args": _args(action.args)} for action in policy.actions],
        "tiers": [[_plugin(choice, usual) for choice in tier] for tier in policy.tiers],
        "profiles": sorted(policy.profiles.by_name) if policy.profiles is not None else [],
    }


def _plugin(choice: PluginOption, usual: frozenset[str]) -> Told:
    """Switches that are off for all say nothing."""
    off = sorted(choice.off - usual)
    return {"name": choice.plugin.name, "text": _promise(choice.plugin), "args": _args(choice.args), "off": off}


def _promise(of: type) -> str:
    """What its module says first, without its name."""
    text = (sys.modules[of.__module__].__doc__ or "").strip().partition("\n")[0]
    name, colon, rest = text.partition(": ")
    return rest if colon and " " not in name else text


def _args(args: Any) -> dict[str, str]:
    """As text: they are only read."""
    if not isinstance(args, msgspec.Struct):
        return {}
    return {name: str(getattr(args, name)) for name in args.__struct_fields__}
