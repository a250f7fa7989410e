"""A policy in a form for people: actions in their order, plugins by tier with all their arguments. And a policy as a configuration."""

import json
import sys
from typing import Any

import msgspec

from pumice.scheduler.config.arguments import REST
from pumice.scheduler.config.volcano_conf import OFF_BY_DEFAULT
from pumice.scheduler.framework.policy import SCHEDULE, PluginOption, Policy

Fields = dict[str, Any]


def policy_fields(policy: Policy) -> Fields:
    """The fields of a policy that the page shows."""
    return {
        "actions": [{"name": action.name, "text": _promise(type(action)), "args": _as_text(action.args)} for action in policy.actions],
        "tiers": [[_plugin(choice) for choice in tier] for tier in policy.tiers],
        "text": written(policy),
        "profiles": sorted(policy.profiles.by_name) if policy.profiles is not None else [],
    }


def written(policy: Policy) -> str:
    """The policy as a configuration with every argument, which a user can change and try. It does not contain kube-scheduler's profiles."""
    actions = [action for action in policy.actions if action.name != SCHEDULE]
    lines = [f'actions: "{", ".join(action.name for action in actions)}"', "tiers:"]
    for tier in policy.tiers:
        lines.append("- plugins:")
        for choice in tier:
            lines.append(f"  - name: {choice.plugin.name}")
            lines += [f"    {switch}: false" for switch in _off(choice)]
            lines += [f"    {switch}: true" for switch in OFF_BY_DEFAULT if switch not in choice.off]
            lines += _listed("    ", _as_written(choice.args, choice.plugin.wildcard_args))
    arguments = [(action.name, listed) for action in actions if (listed := _listed("  ", _as_written(action.args)))]
    lines += ["configurations:"] if arguments else []
    for name, listed in arguments:
        lines += [f"- name: {name}", *listed]
    return "\n".join(lines) + "\n"


def _listed(indent: str, args: Fields) -> list[str]:
    return [f"{indent}arguments:", *(f"{indent}  {name}: {json.dumps(value)}" for name, value in args.items())] if args else []


def _as_written(args: Any, wildcards: tuple[str, ...] = ()) -> Fields:
    """The arguments by the names that they have in configurations."""
    values: Fields = msgspec.to_builtins(args, enc_hook=str) if isinstance(args, msgspec.Struct) else {}
    prefix = wildcards[0] if len(wildcards) == 1 else ""
    return {name: value for name, value in values.items() if name != REST} | {f"{prefix}{k}": v for k, v in values.get(REST, {}).items()}


def _off(choice: PluginOption) -> list[str]:
    """The switches that are off, without those that are off by default."""
    return sorted(choice.off.difference(OFF_BY_DEFAULT))


def _plugin(choice: PluginOption) -> Fields:
    return {
        "name": choice.plugin.name,
        "text": _promise(choice.plugin),
        "args": _as_text(choice.args, choice.plugin.wildcard_args),
        "off": _off(choice),
    }


def _promise(of: type) -> str:
    """The first line of the module's docstring of a plugin or an action, without the name before its colon."""
    text = (sys.modules[of.__module__].__doc__ or "").strip().partition("\n")[0]
    name, colon, rest = text.partition(": ")
    return rest if colon and " " not in name else text


def _as_text(args: Any, wildcards: tuple[str, ...] = ()) -> dict[str, str]:
    """The arguments as texts, since the page only shows them."""
    return {name: str(value) for name, value in _as_written(args, wildcards).items()}
