"""Actions that configurations do not name, because others imply them."""

from collections.abc import Iterable, Mapping

from pumice.scheduler.framework.policy import Action, PluginOption


def with_implied(
    actions: tuple[Action, ...], tiers: Iterable[Iterable[PluginOption]], known: Mapping[str, type[Action]]
) -> tuple[Action, ...]:
    """The configured actions; before them `comeback` if consolidate is among them, and after them `giveback` if the plugin gang is used."""
    names = {action.name for action in actions}
    if "consolidate" in names and "comeback" not in names:
        actions = (known["comeback"](), *actions)
    if any(choice.plugin.name == "gang" for tier in tiers for choice in tier) and "giveback" not in names:
        actions = (*actions, known["giveback"]())
    return actions
