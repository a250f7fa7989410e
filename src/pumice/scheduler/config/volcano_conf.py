"""volcano-scheduler.conf, and kube-batch's file of the same form, read into a Policy.

A file that Volcano accepts is accepted; a file that it refuses (no or unknown actions, wrong structure, drf with hierarchy beside
proportion) is refused with the line and a remedy. Volcano's built-in configuration is DEFAULT.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from pumice.api import InputError, did_you_mean, duration, yaml
from pumice.api.errors import raise_all
from pumice.scheduler.config.arguments import Path, Warnings, bind
from pumice.scheduler.config.implied import with_implied
from pumice.scheduler.config.limits import MOST_ACTIONS, MOST_TIERS, check_document, check_list, check_text
from pumice.scheduler.framework.hooks import SWITCHES
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action, PluginOption, Policy
from pumice.scheduler.registry import ACTIONS

DEFAULT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

#: kube-batch's built-in configuration
KUBE_BATCH = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

TOP = ("actions", "tiers", "configurations", "metrics")
OFF_BY_DEFAULT = ("enableHierarchy", "enabledClusterOrder")
OTHER_PLACES = {"arguments", "name"}


def read_policy(
    text: str,
    known: Mapping[str, type[Plugin]],
    *,
    where: str = "built-in configuration",
    first_line: int = 1,
    strict: bool = False,
    actions: Mapping[str, type[Action]] = ACTIONS,
) -> tuple[Policy, list[str]]:
    """The policy, and warnings. With `strict`, warnings are errors. Raises InputError."""
    warnings = Warnings(shift=first_line - 1, where=where)
    try:
        check_text(text, where)
        documents = yaml.documents(text, where)
        document = next(documents, None)
        if document is None:
            raise InputError('is empty; write at least `actions: "enqueue, allocate, backfill"`', where=where, line=1)
        policy = _policy(document, known, actions, warnings)
        if _goes_on(documents):
            warnings.add(
                document, (), "what follows the first document is ignored, as by Volcano; remove the line `---` or `...` before it"
            )
    except InputError as error:
        if error.line and error.where == where:
            error.line += first_line - 1
        error.document = 0
        raise_all([error, *(warnings.errors if strict else ())])
    if strict:
        raise_all(warnings.errors)
    return policy, warnings.texts


def _goes_on(documents: Iterator[yaml.Document]) -> bool:
    """Whether something follows the document that was read, be it YAML or not."""
    try:
        return next(documents, None) is not None
    except InputError:
        return True


def _policy(document: yaml.Document, known: Mapping[str, type[Plugin]], actions: Mapping[str, type[Action]], warnings: Warnings) -> Policy:
    value = document.value
    if not isinstance(value, dict):
        raise document.error("is not a mapping; write `actions:` and `tiers:`")
    check_document(document)
    for key in value:
        if key not in TOP:
            warnings.add(document, (str(key),), f'there is no setting "{key}" (ignored, as Volcano does){did_you_mean(str(key), TOP)}')
    chosen, tiers = _actions(document, value, actions, warnings), _tiers(document, value, known, warnings)
    return Policy(with_implied(chosen, tiers, actions), tiers, _metrics(document, value, warnings))


def _actions(document: yaml.Document, value: dict[str, Any], known: Mapping[str, type[Action]], warnings: Warnings) -> tuple[Action, ...]:
    listed = value.get("actions")
    if not isinstance(listed, str):
        raise document.error('"actions" must be one string, such as "enqueue, allocate, backfill"', ("actions",))
    given = _action_arguments(document, value, known, warnings)
    names = [part.strip() for part in listed.split(",")]
    check_list(document, names, "actions", MOST_ACTIONS)
    actions = []
    for name in names:
        if name not in known:
            raise document.error(f'there is no action "{name}"{did_you_mean(name, known) or "; known: " + ", ".join(known)}', ("actions",))
        arguments, path = given.get(name, (None, ()))
        actions.append(known[name](bind(known[name].Args, arguments, f"action {name}", (), document, path, warnings)))
    return tuple(actions)


def _action_arguments(
    document: yaml.Document, value: dict[str, Any], known: Mapping[str, type[Action]], warnings: Warnings
) -> dict[str, tuple[Any, Path]]:
    found: dict[str, tuple[Any, Path]] = {}
    for index, entry in enumerate(_list(document, value.get("configurations"), ("configurations",))):
        path: Path = ("configurations", index)
        if not isinstance(entry, dict):
            raise document.error("a configuration is a mapping with a `name`", path)
        name = str(entry.get("name", ""))
        if name not in known:
            warnings.add(document, path, f'configurations name no action "{name}" (ignored, as Volcano does){did_you_mean(name, known)}')
            continue
        found.setdefault(name, (entry.get("arguments"), (*path, "arguments")))
    return found


def _tiers(
    document: yaml.Document, value: dict[str, Any], known: Mapping[str, type[Plugin]], warnings: Warnings
) -> tuple[tuple[PluginOption, ...], ...]:
    check_list(document, value.get("tiers"), "tiers", MOST_TIERS)
    tiers = []
    for number, tier in enumerate(_list(document, value.get("tiers"), ("tiers",))):
        path: Path = ("tiers", number, "plugins")
        if not isinstance(tier, dict):
            raise document.error("a tier is a mapping with the list `plugins`", path[:2])
        entries = _list(document, tier.get("plugins"), path)
        choices = [_choice(document, entry, (*path, index), known, warnings) for index, entry in enumerate(entries)]
        present = [choice for choice in choices if choice is not None]
        names = {choice.plugin.name for choice in present}
        if "proportion" in names and any(c.plugin.name == "drf" and c.hierarchy for c in present):
            raise document.error("proportion and drf with enableHierarchy conflict in one tier; remove one of them", path)
        tiers.append(tuple(present))
    return _as_one(tiers)


def _as_one(tiers: list[tuple[PluginOption, ...]]) -> tuple[tuple[PluginOption, ...], ...]:
    """A plugin that is listed more than once has the arguments of its last place, and the hierarchy of its first, as in Volcano."""
    listed = [choice for tier in tiers for choice in tier]
    first, last = {choice.plugin: choice for choice in listed[::-1]}, {choice.plugin: choice for choice in listed}
    return tuple(
        tuple(structs.replace(choice, args=last[choice.plugin].args, hierarchy=first[choice.plugin].hierarchy) for choice in tier)
        for tier in tiers
    )


def _choice(document: yaml.Document, entry: Any, path: Path, known: Mapping[str, type[Plugin]], warnings: Warnings) -> PluginOption | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise document.error("a plugin is a mapping with a `name`", path)
    name = entry["name"]
    plugin = known.get(name)
    if plugin is None:
        warnings.add(document, (*path, "name"), f'there is no plugin "{name}" (skipped, as Volcano does){did_you_mean(name, known)}')
        return None
    switches = {}
    for key, setting in entry.items():
        if key in OTHER_PLACES or setting is None:
            continue
        switch = _switch(key)
        if switch is None:
            warnings.add(
                document, (*path, key), f'plugin "{name}" has no switch "{key}" (ignored, as Volcano does){_misplaced(key, plugin)}'
            )
        elif not isinstance(setting, bool):
            raise document.error(f'switch "{key}" must be true or false, not {setting!r}', (*path, key))
        else:
            switches[switch] = setting
    arguments = bind(
        plugin.Args, entry.get("arguments"), f'plugin "{name}"', plugin.wildcard_args, document, (*path, "arguments"), warnings
    )
    off = frozenset(switch for switch in SWITCHES if not switches.get(switch, switch not in OFF_BY_DEFAULT))
    return PluginOption(plugin, arguments, off, switches.get("enableHierarchy", False))


def _switch(key: str) -> str | None:
    """The switch with this spelling, in which "enable" and "enabled" are the same; None if there is none."""
    spellings = {switch.replace("enabled", "enable", 1).lower(): switch for switch in SWITCHES}
    return spellings.get(str(key).replace("nabled", "nable", 1).lower())


def _misplaced(key: str, plugin: type[Plugin]) -> str:
    if key in {field.encode_name for field in structs.fields(plugin.Args)} or key.startswith(plugin.wildcard_args or ("\0",)):
        return "; it is an argument: write it below `arguments:`"
    return did_you_mean(key, SWITCHES)


def _metrics(document: yaml.Document, value: dict[str, Any], warnings: Warnings) -> dict[str, str]:
    metrics = value.get("metrics") or {}
    if not isinstance(metrics, dict):
        raise document.error("must be a mapping of strings", ("metrics",))
    found = {str(key): str(setting) for key, setting in metrics.items()}
    try:
        duration(found.get("interval", "30s"))
    except ValueError as error:
        warnings.add(document, ("metrics", "interval"), f"interval: {error} (30s applies)")
    return found


def _list(document: yaml.Document, value: Any, path: Path) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error("must be a list", path)
    return value
