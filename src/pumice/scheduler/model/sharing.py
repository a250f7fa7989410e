"""What equal pods share is there once, and gone with the last of them, or some time after.

Nearly each pod of a gang has labels of its own, and a weak reference takes half as much memory as labels: those that nobody has any longer
are looked for instead, whenever there are twice as many as the last time.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount, intern
from weakref import WeakValueDictionary, ref

from msgspec.structs import replace

from pumice.api.pod import Pod
from pumice.api.structs import encode
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.task import Pairs
from pumice.scheduler.model.template import Template, resize_state, volumes_that_matter

FEW = 1000  #: labels and annotations that are not worth looking through
_nobodys = {0: Pairs()}
UNUSED = getrefcount(_nobodys[0])  #: of what stands in a dictionary alone


class Shared:
    """Templates, and labels and annotations as a whole. Each is one object for all that are equal."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._templates: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._latest: Callable[[], Template | None] = lambda: None  #: that the next pod has often, too
        self._pairs: dict[int, Pairs] = {}  #: by their hash, which takes less than they
        self._bound = FEW  #: pairs after which those that nobody has are looked for

    def template(self, pod: Pod) -> Template:
        spec = replace(pod.spec, node_name=None, volumes=volumes_that_matter(pod.spec))
        resized, latest = resize_state(pod), self._latest()
        if latest is not None and resized is None and latest.namespace == pod.metadata.namespace and latest.spec == spec:
            return latest
        key = encode((pod.metadata.namespace, spec, resized))
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = Template(replace(pod, spec=spec), self._dimensions)
        if resized is None:
            self._latest = ref(known)
        return known

    def pairs(self, pairs: dict[str, str] | None) -> Pairs:
        given = pairs or {}
        key = hash(frozenset(given.items()))
        known = self._pairs.get(key)
        if known is None or known != given:
            known = self._pairs[key] = Pairs((name, intern(given[name])) for name in sorted(given))
            if len(self._pairs) > self._bound:
                self._forget_unused()
        return known

    def _forget_unused(self) -> None:
        for key in [key for key in self._pairs if getrefcount(self._pairs[key]) == UNUSED]:
            del self._pairs[key]
        self._bound = FEW + 2 * len(self._pairs)

    def widen(self) -> None:
        for template in self._templates.values():
            template.widen(self._dimensions)
