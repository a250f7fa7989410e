"""What equal pods share is there once, and gone with the last of them."""

from __future__ import annotations

from sys import intern
from weakref import WeakValueDictionary

from msgspec.structs import replace

from pumice.api.pod import Pod
from pumice.api.structs import encode
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.task import Pairs
from pumice.scheduler.model.template import Template, resize_state, volumes_that_matter


class Shared:
    """Templates, and labels and annotations as a whole. Each is one object for all that are equal."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._templates: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._pairs: WeakValueDictionary[int, Pairs] = WeakValueDictionary()  #: by their hash, which takes less than they

    def template(self, pod: Pod) -> Template:
        spec = replace(pod.spec, node_name=None, volumes=volumes_that_matter(pod.spec))
        key = encode((pod.metadata.namespace, spec, resize_state(pod)))
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = Template(replace(pod, spec=spec), self._dimensions)
        return known

    def pairs(self, pairs: dict[str, str] | None) -> Pairs:
        given = pairs or {}
        key = hash(frozenset(given.items()))
        known = self._pairs.get(key)
        if known is None or known != given:
            known = self._pairs[key] = Pairs((name, intern(given[name])) for name in sorted(given))
        return known

    def widen(self) -> None:
        for template in self._templates.values():
            template.widen(self._dimensions)
