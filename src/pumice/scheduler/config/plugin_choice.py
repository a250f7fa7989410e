"""Which of kube-scheduler's plugins run at which extension point, and in which order.

A profile lists plugins by point, or for all points at once (`multiPoint`). The list of a point overrides `multiPoint`, and that
overrides the defaults. Order: first the plugins that override multiPoint, then the others of multiPoint, then the rest of the point's.
"""

from collections.abc import Collection

from pumice.api import did_you_mean
from pumice.api.problems import Path, Problems
from pumice.scheduler.config.kube_document import PluginRef, PluginSet, PluginSets
from pumice.scheduler.plugins.kube.catalogue import EXTENDS, KNOWN

Chosen = dict[str, int]  #: plugin to weight, in order


class PluginChoice:
    """Resolves the plugin lists of one profile. `given`: the default plugins. `own`: Pumice's own plugins, which may filter and score."""

    def __init__(self, sets: PluginSets, path: Path, problems: Problems, given: Chosen, own: Collection[str] = ()) -> None:
        self.path, self.problems, self.given, self.own = path, problems, given, own
        self.multi = self._merged_defaults(sets.multi_point)
        self.sets = sets

    def _merged_defaults(self, multi: PluginSet) -> Chosen:
        """The default plugins with the changes that multiPoint makes."""
        here = (*self.path, "multiPoint", "enabled")
        custom = self._listed(multi.enabled, here, "MultiPoint")
        off = {ref.name for ref in multi.disabled or ()}
        merged = {name: custom.get(name, weight) for name, weight in self.given.items() if "*" not in off and name not in off}
        return merged | custom

    def _listed(self, refs: list[PluginRef] | None, path: Path, point: str) -> Chosen:
        chosen: Chosen = {}
        for index, ref in enumerate(refs or ()):
            at = (*path, index, "name")
            if ref.name in chosen:
                self.problems.add(at, f'plugin "{ref.name}" already registered as "{point}"')
            if ref.name not in KNOWN and ref.name not in self.own:
                self.problems.add(at, f'{point} "{ref.name}" does not exist{did_you_mean(ref.name, KNOWN | set(self.own))}')
            elif ref.weight < 0:
                self.problems.invalid((*path, index, "weight"), ref.weight, "must not be negative")
            chosen[ref.name] = ref.weight
        return chosen

    def at(self, point: str, chosen: PluginSet) -> Chosen:
        """The plugins of an extension point with their weights, in the order in which they are called."""
        title = f"{point[0].upper()}{point[1:]}Plugin"
        here = (*self.path, point, "enabled")
        listed = self._listed(chosen.enabled, here, title)
        for index, name in enumerate(listed):
            if name in KNOWN and name not in EXTENDS[point]:
                self.problems.add((*here, index, "name"), f'plugin "{name}" does not extend {title} plugin')
        off = {ref.name for ref in chosen.disabled or ()}
        common = {} if "*" in off else {n: w for n, w in self.multi.items() if self._extends(n, point) and n not in off}
        override = {name: weight or 1 for name, weight in listed.items() if name in common}
        rest = {name: weight or 1 for name, weight in listed.items() if name not in common}
        return override | {name: weight or 1 for name, weight in common.items() if name not in override} | rest

    def _extends(self, name: str, point: str) -> bool:
        return name in EXTENDS[point] or (name in self.own and point in ("filter", "score"))
