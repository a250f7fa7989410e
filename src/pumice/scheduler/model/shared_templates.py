"""What equal pods share exists once, and is dropped some time after the last of these pods.

Nearly every pod of a gang has labels of its own, and a weak reference takes half as much memory as labels. So there are no weak
references: whenever the number of labels or templates has doubled, those that no task has any longer are searched for and dropped.
"""

from collections.abc import ItemsView, Iterator, Mapping
from sys import getrefcount
from typing import Any

from msgspec.structs import replace

from pumice.api.annotations import GROUP_NAME
from pumice.api.pod import Pod, PodSpec
from pumice.scheduler.model.pod_request import resize_state
from pumice.scheduler.model.resources import Dimensions, one_text
from pumice.scheduler.model.template import Template, volumes_that_matter, written

FEW = 1000  #: so few of a kind are not worth a search
MOST_SPECS = 16  #: that are known by their identity
#: Labels whose value is that of one pod of its owner. Who has one has labels like no other pod, so that nobody shares them.
OF_ONE_POD = frozenset(
    [
        "volcano.sh/task-index",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
        "batch.kubernetes.io/job-completion-index",
    ]
)


class Pairs(Mapping[str, str]):
    """Labels or annotations. Equal ones are the same object, so its identity can be the key, unless they are those of one pod or gang.

    They are values, and their places by name, which all with the same names share. The value that is that of one pod is by itself, so that
    the others are shared by the pods of an owner. Dictionaries would take three times the memory.
    """

    __slots__ = ("_own", "_values", "places")

    def __init__(self, places: dict[str, int], values: tuple[str, ...], own: str = "") -> None:
        """`places`: by name, the place of the value; that of `own` is -1. Whoever looks for a few names looks there."""
        self.places, self._values, self._own = places, values, own

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, name: str) -> str:
        place = self.places[name]
        return self._own if place < 0 else self._values[place]

    def get(self, name: str, default: Any = None) -> Any:
        place = self.places.get(name)
        if place is None:
            return default
        return self._own if place < 0 else self._values[place]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def items(self) -> ItemsView[str, str]:
        return {name: self[name] for name in self.places}.items()


NO_PAIRS = Pairs({}, ())
_nobodys = {0: Pairs({}, ())}
UNUSED = getrefcount(_nobodys[0])  #: reference count of an object that is only in a dictionary


class Shared:
    """Templates, and labels and annotations as a whole. Equal ones are the same object."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._templates: dict[bytes, Template] = {}
        self._latest: tuple[PodSpec, Template] | None = None  #: often also that of the next pod
        self._by_spec: dict[int, tuple[PodSpec, Template]] = {}  #: by the identity of a pod's spec, which simulated pods share
        self._pairs: dict[int, Pairs] = {}  #: by their hash, which takes less memory than they do
        self._most_templates = self._most_pairs = FEW  #: if there are more, unused ones are searched for
        self._of_gang = NO_PAIRS  #: the annotations of the latest pod that names its PodGroup
        self._places: dict[tuple[str, ...], dict[str, int]] = {}  #: the places of values in pairs, by their names
        self._values: tuple[str, ...] = ()  #: those of the latest pairs

    def template(self, pod: Pod) -> Template:
        is_plain = not pod.status.charges and resize_state(pod) is None
        same = self._by_spec.get(id(pod.spec)) if is_plain else None
        if same is not None and same[0] is pod.spec and same[1].namespace == pod.metadata.namespace:
            return same[1]
        spec = replace(pod.spec, node_name=None, volumes=volumes_that_matter(pod.spec), scheduling_group=None)
        if is_plain and self._latest is not None:
            before, latest = self._latest
            if latest.namespace == pod.metadata.namespace and before == spec:
                return latest
        bare = replace(pod, spec=spec)
        key = written(bare)
        known = self._templates.get(key)
        if known is None:
            if len(self._templates) >= self._most_templates:
                self._by_spec.clear()
                self._most_templates = _without_unused(self._templates)
            known = self._templates[key] = Template(bare, self._dimensions, key)
        if is_plain:
            if len(self._by_spec) >= MOST_SPECS:
                self._by_spec.clear()
            self._latest, self._by_spec[id(pod.spec)] = (spec, known), (pod.spec, known)
        return known

    def pairs(self, pairs: dict[str, str] | None, before: Pairs = NO_PAIRS) -> Pairs:
        """These labels or annotations. `before`: those that the pod has had until now."""
        if not pairs:
            return NO_PAIRS
        if before is not NO_PAIRS and before.items() == pairs.items():
            return before
        if not OF_ONE_POD.isdisjoint(pairs):
            return self._made(pairs)
        if GROUP_NAME in pairs:  # those of a gang, whose pods come one after another as a rule
            if self._of_gang.get(GROUP_NAME) != pairs[GROUP_NAME] or self._of_gang.items() != pairs.items():
                self._of_gang = self._made(pairs)
            return self._of_gang
        key = hash(frozenset(pairs.items()))
        known = self._pairs.get(key)
        if known is None or known != pairs:
            if len(self._pairs) >= self._most_pairs:
                self._most_pairs = _without_unused(self._pairs)
            known = self._pairs[key] = self._made(pairs)
        return known

    def _made(self, pairs: dict[str, str]) -> Pairs:
        places = self._places_of(pairs)
        values = tuple([one_text(pairs[name]) for name, place in places.items() if place >= 0])
        if values == self._values:  # as the pod's before, which as a rule has the same owner
            values = self._values
        self._values = values
        return Pairs(places, values, "" if len(values) == len(places) else one_text(pairs[next(reversed(places))]))

    def _places_of(self, pairs: dict[str, str]) -> dict[str, int]:
        names = tuple(sorted(pairs))
        found = self._places.get(names)
        if found is None:
            if len(self._places) >= FEW:
                self._places.clear()
            own = next((name for name in names if name in OF_ONE_POD), None)
            found = {name: place for place, name in enumerate(name for name in names if name != own)}
            found = self._places[names] = found if own is None else found | {own: -1}
        return found

    def widen(self) -> None:
        for template in self._templates.values():
            template.widen(self._dimensions)


def _without_unused(kept: dict[Any, Any]) -> int:
    """Drop what is only in this dictionary, and return how large it may become."""
    for key in [key for key in kept if getrefcount(kept[key]) == UNUSED]:
        del kept[key]
    return FEW + 2 * len(kept)
