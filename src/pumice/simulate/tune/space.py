"""Which configurations a search looks at: those near the configuration that it starts from, in what may be changed.

A `Knob` is one choice: an argument that declares a range, a tunable plugin (off, or in which tier), or a part of the line `actions`:
whether jobs are let in by enqueue, what places them, what evicts, and when. Everything else stays as it is: gang, predicates, queues'
shares and whatever else says what is allowed, and plugins with switches of their own.

`Space.text` writes a configuration line by line. A line is what a user changes, and what an ablation takes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import structs

from pumice.api import InputError, yaml
from pumice.api.manifests import CONFIGURATION_KINDS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import SCHEDULE, Action
from pumice.scheduler.model import OneOf, Range
from pumice.scheduler.model.argument_ranges import range_of

Values = dict[str, Any]  #: by key of the knob; only of those that mean something beside the others

OFF = "off"
FIRST = "before all others"
AS_IT_WAS = "as it was"
EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
EVICTIONS = ("", "preempt", "reclaim", "reclaim, preempt", "gangpreempt", "gangreclaim, gangpreempt")
PLACING = ("allocate", "in-order")
ACTIONS = ("let in by enqueue", "placed by", "evicted by", "evicted")  #: the knobs of the line `actions`
ONLY_SCORES = frozenset(["scorers", "score", "score_node"])  #: hooks of plugins whose tier does not matter


@dataclass(frozen=True)
class Knob:
    """One choice, among `choices` or within `range`."""

    key: str
    line: str
    start: Any
    choices: tuple[Any, ...] = ()
    range: Range | None = None
    whole: bool = False  #: the range is one of integers
    needs: Callable[[Values], bool] = field(default=lambda values: True, compare=False)


@dataclass
class PluginEntry:
    """A plugin as the configuration has it."""

    name: str
    arguments: dict[str, Any]
    switches: dict[str, Any]


class Space:
    """The configurations near one."""

    def __init__(self, text: str, where: str, plugins: Mapping[str, type[Plugin]], actions: Mapping[str, type[Action]]) -> None:
        """Raises InputError if the configuration is none of Volcano's form."""
        document = next(iter(yaml.documents(text, where)), None)
        value = document.value if document is not None else None
        if not isinstance(value, dict) or value.get("kind") in CONFIGURATION_KINDS or SCHEDULE in str(value.get("actions", "")):
            raise InputError("tune changes configurations with `actions` and `tiers`, not profiles of kube-scheduler", where=where)
        self._plugins, self._known_actions = plugins, actions
        self._actions = [part.strip() for part in str(value["actions"]).split(",")]
        self._metrics = value.get("metrics")
        self._action_arguments: dict[str, dict[str, Any]] = {
            str(each["name"]): dict(each.get("arguments") or {}) for each in value.get("configurations") or ()
        }
        self._tiers = [
            [_entry(plugin) for plugin in (tier or {}).get("plugins") or () if isinstance(plugin, dict) and "name" in plugin]
            for tier in value.get("tiers") or [{}]
        ]
        self.knobs = [*self._knobs()]
        self.start = self.chosen(lambda knob: knob.start)

    # -- the knobs

    def without_evictions(self) -> Space:
        """The same space, in which what evicts, and when, stays as it is."""
        space = copy(self)
        space.knobs = [replace(knob, choices=(knob.start,)) if knob.key in ACTIONS[2:] else knob for knob in self.knobs]
        return space

    def chosen(self, choose: Callable[[Knob], Any]) -> Values:
        """What `choose` says for each knob that means something beside what was chosen before."""
        values: Values = {}
        for knob in self.knobs:
            if knob.needs(values):
                values[knob.key] = choose(knob)
        return values

    def _knobs(self) -> Iterator[Knob]:
        yield from self._knobs_of_actions()
        present = {entry.name: tier for tier, entries in enumerate(self._tiers) for entry in entries}
        fixed = {entry.name for entries in self._tiers for entry in entries if entry.switches}
        for name in sorted({*present, *(each for each in self._plugins if self._plugins[each].tunable)}):
            plugin = self._plugins.get(name)
            if plugin is None:
                continue
            key = f"plugin {name}"
            if plugin.tunable and name not in fixed:
                last = len(self._tiers) - 1
                tiers = [present.get(name, last)] if ONLY_SCORES.issuperset(plugin.hooks()) else range(len(self._tiers))
                choices = (OFF, *(_tier(tier) for tier in tiers), *([FIRST] if len(tiers) > 1 else ()))
                yield Knob(key, key, _tier(present[name]) if name in present else OFF, choices)
                needs = _is_on(key)
            else:
                needs = _always
            arguments = next((entry.arguments for entries in self._tiers for entry in entries if entry.name == name), {})
            yield from _knobs_of_arguments(name, plugin.Args, arguments, needs)

    def _knobs_of_actions(self) -> Iterator[Knob]:
        placing = next((name for name in self._actions if name in PLACING), "")
        evicting = ", ".join(name for name in self._actions if name in EVICTING)
        if placing:
            yield Knob(ACTIONS[0], "actions", "enqueue" in self._actions, (False, True))
            yield Knob(ACTIONS[1], "actions", placing, PLACING)
            yield Knob(ACTIONS[2], "actions", evicting, tuple(dict.fromkeys((evicting, *EVICTIONS))))
            start = {ACTIONS[0]: "enqueue" in self._actions, ACTIONS[1]: placing, ACTIONS[2]: evicting}
            fits = [where for where in ("last", "before they are placed") if self._composed(start | {ACTIONS[3]: where}) == self._actions]
            where = fits[0] if fits else AS_IT_WAS
            yield Knob(
                ACTIONS[3],
                "actions",
                where,
                tuple(dict.fromkeys((where, "last", "before they are placed"))),
                needs=lambda values: bool(values[ACTIONS[2]]),
            )
        for name in dict.fromkeys((*self._actions, *(PLACING if placing else ()))):
            if name in self._known_actions:
                uses = _uses(name) if name in PLACING and placing else _always
                yield from _knobs_of_arguments(name, self._known_actions[name].Args, self._action_arguments.get(name, {}), uses)

    # -- configurations

    def _composed(self, values: Values) -> list[str]:
        """The actions in order."""
        placed, evicted = values[ACTIONS[1]], [name for name in values[ACTIONS[2]].split(", ") if name]
        names = [placed if name in PLACING else name for name in self._actions if name not in (*EVICTING, "enqueue")]
        at = names.index(placed) if values.get(ACTIONS[3]) == "before they are placed" else len(names)
        return [*(["enqueue"] if values[ACTIONS[0]] else ()), *names[:at], *evicted, *names[at:]]

    def actions(self, values: Values) -> list[str]:
        mine = {key: values[key] for key in ACTIONS if key in values}
        same = mine == {key: self.start[key] for key in ACTIONS if key in self.start}
        return self._actions if same else self._composed(values)

    def lines(self, values: Values) -> dict[str, str]:
        """The lines of the configuration, by what they set. Lines that only give structure are left out."""
        return {key: text for key, text in self._written(values) if key}

    def text(self, values: Values, notes: Mapping[str, str] | None = None) -> str:
        """The configuration; `notes` are comments, by line. A note about a plugin that is left out is a line of its own."""
        notes = notes or {}
        written = [*self._written(values)]
        there = {key for key, _ in written}
        gone = [f"# without {key}: {note}" for key, note in notes.items() if key not in there]
        return "\n".join([*gone, *(f"{text}  # {notes[key]}" if key in notes else text for key, text in written)]) + "\n"

    def _written(self, values: Values) -> Iterator[tuple[str, str]]:
        actions = self.actions(values)
        yield "actions", f'actions: "{", ".join(actions)}"'
        arguments = {
            name: dict(self._arguments(name, self._action_arguments.get(name, {}), values))
            for name in dict.fromkeys((*self._action_arguments, *actions))
        }
        if any(arguments.values()):
            yield "", "configurations:"
            for name, given in arguments.items():
                if given:
                    yield "", f"- name: {name}\n  arguments:"
                    yield from ((f"{name}.{argument}", f"    {argument}: {_yaml(value)}") for argument, value in given.items())
        yield "", "tiers:"
        for tier in self._placed(values):
            yield "", "- plugins:" if tier else "- plugins: []"
            for entry in tier:
                yield f"plugin {entry.name}", f"  - name: {entry.name}"
                for switch, value in entry.switches.items():
                    yield "", f"    {switch}: {_yaml(value)}"
                given = dict(self._arguments(entry.name, entry.arguments, values))
                if given:
                    yield "", "    arguments:"
                    yield from ((f"{entry.name}.{argument}", f"      {argument}: {_yaml(value)}") for argument, value in given.items())
        if self._metrics:
            yield "", f"metrics: {_yaml(self._metrics)}"

    def _arguments(self, name: str, given: Mapping[str, Any], values: Values) -> Iterator[tuple[str, Any]]:
        """The arguments of a plugin or action that are written: those that were, and those that are no longer as before."""
        mine = {key.removeprefix(f"{name} "): value for key, value in values.items() if key.startswith(f"{name} ")}
        starts = {knob.key.removeprefix(f"{name} "): knob.start for knob in self.knobs if knob.key.startswith(f"{name} ")}
        for argument in dict.fromkeys((*given, *mine)):
            value = mine.get(argument, given.get(argument))
            if argument in given or value != starts[argument]:
                yield argument, value

    def _placed(self, values: Values) -> list[list[PluginEntry]]:
        """The plugins of each tier."""
        tiers: list[list[PluginEntry]] = [[] for _ in self._tiers]
        written = {entry.name: (number, entry) for number, entries in enumerate(self._tiers) for entry in entries}
        for number, entries in enumerate(self._tiers):
            tiers[number] += [entry for entry in entries if values.get(f"plugin {entry.name}", _tier(number)) == _tier(number)]
        for key, place in values.items():
            if not key.startswith("plugin ") or place == OFF:
                continue
            number, entry = written.get(key.removeprefix("plugin "), (-1, PluginEntry(key.removeprefix("plugin "), {}, {})))
            if place == FIRST:
                tiers[0].insert(0, entry)
            elif place != _tier(number):
                tiers[int(place.removeprefix("tier ")) - 1].append(entry)
        return tiers

    # -- what differs

    def differing(self, values: Values) -> list[str]:
        """The lines that differ from the start, or are not there; not the arguments of a plugin that is left out."""
        before, after = self.lines(self.start), self.lines(values)
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        moved = {key for key in values if key.startswith("plugin ") and values[key] != self.start[key]}
        gone = {f"{key.removeprefix('plugin ')}." for key in moved if values[key] == OFF}
        changed = [key for key in changed if not key.startswith(tuple(gone))] if gone else changed
        return [*changed, *(key for key in values if key in moved and key not in changed)]

    def parts(self, values: Values) -> list[str]:
        """What can be taken back alone: the lines that differ, and of the line `actions` each choice in it."""
        lines = self.differing(values)
        chosen = [key for key in ACTIONS if key in values and values[key] != self.start.get(key, values[key])]
        return [*chosen, *(line for line in lines if line != "actions" or not chosen)]

    def reverted(self, values: Values, part: str) -> Values:
        """The values with one line, or one choice in it, as it was at the start."""
        return self.chosen(lambda knob: knob.start if part in (knob.line, knob.key) else values.get(knob.key, knob.start))

    def was(self, line: str, values: Values) -> str:
        """What the line was at the start, in words."""
        if line.startswith("plugin "):
            if self.start[line] == OFF:
                return "new"
            return f"was in {self.start[line]}"
        if line == "actions":
            return f'was "{", ".join(self._actions)}"'
        start = next(knob.start for knob in self.knobs if knob.line == line)
        return f"was {_yaml(start)}" if start is not None else "was not set"


def _knobs_of_arguments(name: str, args: type[msgspec.Struct], given: Mapping[str, Any], needs: Callable[[Values], bool]) -> Iterator[Knob]:
    for each in structs.fields(args):
        declared, key = range_of(each), f"{name} {each.encode_name}"
        if declared is None:
            continue
        line = f"{name}.{each.encode_name}"
        start = given.get(each.encode_name, each.default)
        if isinstance(declared, OneOf):
            start = start if each.encode_name in given or start in declared else None
            yield Knob(key, line, start, tuple(dict.fromkeys((start, *declared))), needs=needs)
        elif isinstance(start, int | float):
            wider = declared._replace(low=min(declared.low, start), high=max(declared.high, start))
            yield Knob(key, line, start, range=wider, whole=isinstance(each.default, int), needs=needs)


def _always(values: Values) -> bool:
    return True


def _is_on(key: str) -> Callable[[Values], bool]:
    return lambda values: values[key] != OFF


def _uses(action: str) -> Callable[[Values], bool]:
    return lambda values: values[ACTIONS[1]] == action


def _tier(number: int) -> str:
    return f"tier {number + 1}"


def _entry(plugin: dict[str, Any]) -> PluginEntry:
    switches = {key: value for key, value in plugin.items() if key not in ("name", "arguments")}
    return PluginEntry(plugin["name"], dict(plugin.get("arguments") or {}), switches)


def _yaml(value: Any) -> str:
    """The value in YAML's flow style, which JSON is a part of."""
    return msgspec.json.encode(value, enc_hook=str).decode()
