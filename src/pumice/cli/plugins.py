"""`pumice plugins`: the plugins and actions that exist, read from the code itself."""

from typing import Any

import click
import msgspec
from msgspec import structs

from pumice.api import InputError, did_you_mean
from pumice.cli.tables import print_table, say
from pumice.extensions import actions, plugins as known
from pumice.scheduler.config.arguments import REST
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import OneOf, Range
from pumice.scheduler.model.argument_ranges import range_of, type_of
from pumice.text_table import columns


@click.command()
@click.argument("name", required=False, shell_complete=lambda context, argument, begun: [n for n in sorted(known()) if n.startswith(begun)])
@click.option("--plugins-dir", help="A folder of Python files with plugins.")
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plugins(name: str | None, plugins_dir: str | None, output: str) -> None:
    """The plugins with their hooks and arguments; with NAME, one of them in full."""
    every = known(plugins_dir)
    found = {key: plugin for key, plugin in sorted(every.items()) if name in (None, key)}
    if not found:
        raise InputError(f'there is no plugin "{name}"{did_you_mean(name or "", every)}', where="NAME")
    described = {key: describe(plugin) for key, plugin in found.items()}
    if output == "json":
        say(msgspec.json.format(msgspec.json.encode({"plugins": described, "actions": sorted(actions(plugins_dir))}, enc_hook=str)))
    elif name:
        _one(name, described[name])
    else:
        rows = [(key, about["summary"], ", ".join(about["hooks"])) for key, about in described.items()]
        print_table(columns(("PLUGIN", "WHAT IT DOES", "HOOKS"), rows))
        say(f"\nActions: {', '.join(sorted(actions(plugins_dir)))}")


def describe(plugin: type[Plugin]) -> dict[str, Any]:
    """The summary, description, hooks and arguments of a plugin class."""
    text = (plugin.__doc__ or __import__(plugin.__module__, fromlist=["_"]).__doc__ or "").strip()
    summary = text.split("\n\n")[0].replace("\n", " ").removeprefix(f"{plugin.name}: ")
    arguments = [
        {"name": field.encode_name, "type": _type(type_of(field)), "default": _default(field), "range": _range(range_of(field))}
        for field in structs.fields(plugin.Args)
        if field.encode_name != REST
    ]
    arguments += [{"name": f"{prefix}<name>", "type": "", "default": None, "range": None} for prefix in plugin.wildcard_args]
    return {
        "summary": summary,
        "description": text,
        "hooks": [hook for hook in plugin.hooks() if hook not in ("open", "close")],
        "arguments": arguments,
        "tunable": plugin.tunable,
    }


def _type(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _range(declared: Range | OneOf | None) -> str | None:
    return None if declared is None else str(declared)


def _default(field: structs.FieldInfo) -> Any:
    return field.default if isinstance(field.default, bool | int | float | str) else None


def _one(name: str, about: dict[str, Any]) -> None:
    say(f"{about['description']}\n\nHooks: {', '.join(about['hooks'])}")
    if about["arguments"]:
        rows = [(a["name"], a["type"], "" if a["default"] is None else repr(a["default"]), a["range"] or "") for a in about["arguments"]]
        say("\n" + columns(("ARGUMENT", "TYPE", "DEFAULT", "SEARCHED BY TUNE"), rows))
