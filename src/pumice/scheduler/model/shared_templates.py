"""What equal pods share exists once, and is dropped with the last of these pods, or some time after.

Nearly every pod of a gang has labels of its own, and a weak reference takes half as much memory as labels. So there are no weak
references to labels: whenever their number has doubled, those that no task has any longer are searched for and dropped.
"""

from _blake2 import blake2b  # as hashlib has it, which would load OpenSSL besides
from collections.abc import Callable
from sys import getrefcount, intern
from weakref import WeakValueDictionary, ref

from msgspec.structs import replace

from pumice.api.pod import Pod
from pumice.api.structs import encode
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.template import Template, resize_state, volumes_that_matter

FEW = 1000  #: so few labels and annotations are not worth a search


class Pairs(dict[str, str]):
    """Labels or annotations. Equal ones are the same object, so its identity can be the key."""

    __slots__ = ("__weakref__",)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


NO_PAIRS = Pairs()
_nobodys = {0: Pairs()}
UNUSED = getrefcount(_nobodys[0])  #: reference count of an object that is only in a dictionary


class Shared:
    """Templates, and labels and annotations as a whole. Equal ones are the same object."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._templates: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._latest: Callable[[], Template | None] = lambda: None  #: often also that of the next pod
        self._pairs: dict[int, Pairs] = {}  #: by their hash, which takes less memory than they do
        self._bound = FEW  #: with more pairs than this, unused ones are searched for

    def template(self, pod: Pod) -> Template:
        spec = replace(pod.spec, node_name=None, volumes=volumes_that_matter(pod.spec), scheduling_group=None)
        resized, latest = resize_state(pod), self._latest()
        if latest is not None and resized is None and latest.namespace == pod.metadata.namespace and latest.spec == spec:
            return latest
        key = blake2b(encode((pod.metadata.namespace, spec, resized)), digest_size=16).digest()
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = Template(replace(pod, spec=spec), self._dimensions)
        if resized is None:
            self._latest = ref(known)
        return known

    def pairs(self, pairs: dict[str, str] | None) -> Pairs:
        if not pairs:
            return NO_PAIRS
        key = hash(frozenset(pairs.items()))
        known = self._pairs.get(key)
        if known is None or known != pairs:
            known = self._pairs[key] = Pairs((name, intern(pairs[name])) for name in sorted(pairs))
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
