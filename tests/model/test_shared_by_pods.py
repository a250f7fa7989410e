"""What equal pods share is one object, for as long as any of them is there."""

from __future__ import annotations

import gc
from typing import Any

from pumice.api.annotations import GROUP_NAME
from pumice.api.pod import Pod, PodSpec
from pumice.api.structs import convert
from pumice.scheduler.model.pod_request import requested_by_containers
from pumice.scheduler.model.rare_attributes import NOTHING
from pumice.scheduler.model.resources import MOST_SHARED, Dimensions, one_text
from pumice.scheduler.model.shared_templates import FEW, Pairs, Shared
from pumice.scheduler.model.template import Template
from pumice.testing import cluster, pod, podgroup


def test_equal_labels_are_one_object_and_those_that_nobody_has_any_longer_are_forgotten() -> None:
    before, shared = _pairs(), Shared(Dimensions(frozenset()))
    kept = [shared.pairs({"number": str(number)}) for number in range(FEW)]
    for number in range(10 * FEW):
        shared.pairs({"number": f"gone-{number}"})
    assert _pairs() - before <= 4 * FEW
    assert all(shared.pairs({"number": str(number)}) is each for number, each in enumerate(kept))


def test_labels_of_one_pod_are_its_own_for_as_long_as_they_stay_the_same() -> None:
    before, shared = _pairs(), Shared(Dimensions(frozenset()))
    labels = {"volcano.sh/task-index": "0", "app": "a"}
    own = shared.pairs(labels)
    assert shared.pairs(dict(labels), own) is own
    assert own == labels == dict(own) and list(own) == sorted(labels) and own.get("none") is None and "app" in own
    assert own["volcano.sh/task-index"] == own.get("volcano.sh/task-index") == "0" and own["app"] == own.get("app") == "a"
    assert shared.pairs(labels | {"app": "b"}, own) == labels | {"app": "b"}
    assert shared.pairs(labels | {"volcano.sh/task-index": "1"})._values is shared.pairs(labels)._values
    del own
    assert _pairs() == before


def test_places_of_labels_are_forgotten_where_all_pods_have_other_names() -> None:
    shared = Shared(Dimensions(frozenset()))
    kept = [shared.pairs({f"name-{number}": "x"}) for number in range(FEW + 1)]
    assert len(shared._places) == 1
    assert all(each == {f"name-{number}": "x"} for number, each in enumerate(kept))


def test_podgroups_are_kept_as_they_are_written_and_their_parts_are_shared_by_those_that_are_alike() -> None:
    read = cluster(*(podgroup(name, 2).annotation("a", "b") for name in ("one", "other")))
    one, other = (read.jobs[f"default/{name}"] for name in ("one", "other"))
    assert one.group is not None and other.group is not None
    assert one.group.metadata.name == "one" and one.group.metadata.annotations == {"a": "b"} and one.group.spec == other.group.spec
    assert all(mine is its for mine, its in zip(one.written, other.written, strict=True))
    read.remove("PodGroup", "default/one")
    assert one.group is None


def test_templates_that_no_pod_has_any_longer_are_forgotten() -> None:
    dimensions = Dimensions(frozenset())
    shared = Shared(dimensions)

    def template(cpu: int) -> Template:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        return shared.template(convert({"metadata": {"name": "p"}, "spec": {"containers": containers}}, Pod))

    kept = [template(number) for number in range(1, FEW)]
    for number in range(FEW, 5 * FEW):
        template(number)
    assert len(shared._templates) <= 3 * FEW
    assert all(template(number) is each for number, each in enumerate(kept, 1))


def test_texts_of_gangs_that_follow_each_other_are_shared_and_no_table_grows_with_them() -> None:
    shared = Shared(Dimensions(frozenset()))
    for number in range(2 * MOST_SHARED):
        own, other = (shared.pairs({GROUP_NAME: f"gang-{number}", "n": index})[GROUP_NAME] for index in "01")
        assert own is other
    assert one_text.cache_info().currsize == MOST_SHARED


def _pairs() -> int:
    return sum(type(each) is Pairs for each in gc.get_objects())


def test_an_attribute_that_few_have_is_kept_only_by_those() -> None:
    task = cluster(pod("p")).tasks["default/p"]
    assert not task.deleting and task.ended is None and task.seldom is NOTHING
    task.deleting, task.ended = True, 5.0
    task.deleting = False
    assert (task.deleting, task.ended, task.seldom) == (False, 5.0, {"ended": 5.0})
    task.ended = None
    assert task.ended is None and task.seldom is NOTHING


def test_sidecars_run_with_the_containers_and_with_the_init_containers_after_them() -> None:
    def asks(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}} | more

    late = {"containers": [asks("1")], "initContainers": [asks("3"), asks("1", restartPolicy="Always")]}
    early = {"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always"), asks("3")]}
    assert requested_by_containers(convert(late, PodSpec)) == {"cpu": 3000}
    assert requested_by_containers(convert(early, PodSpec)) == {"cpu": 4000}
