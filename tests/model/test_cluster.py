"""The kept state under events: objects that come in any order, change, go and come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.codec import convert
from pumice.api.errors import InputError
from pumice.api.pod import Pod
from pumice.framework.cycle import cycle
from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.resources import WIDTH, dominant_share, share
from pumice.model.template import Template
from pumice.plugins.registry import installed, plugins
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy


def test_a_pod_may_come_before_its_node_its_group_and_its_queue() -> None:
    made = Cluster()
    made.put(*pod("p").cpu(1).gang("g").on("n").build())
    made.put(*podgroup("g").queue("q").build())
    made.put(*node("n").cpu(4).build())
    made.put(*queue("q").build())
    made.check()
    assert made.nodes.used[0, 0] == 1000
    assert made.queues["q"].held[0] == 1000


def test_a_node_that_goes_and_comes_back_finds_its_pods() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g").on("n"))
    made.remove("Node", "n")
    made.check()
    assert made.tasks["default/p"].node == -1
    made.put(*node("n").cpu(4).build())
    made.check()
    assert made.nodes.used[0, made.nodes.rows["n"]] == 1000
    made.remove("Node", "absent")


def test_a_pod_recreated_under_its_name_is_another_pod() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g").having("metadata", "uid", value="1").on("n"))
    made.put(*pod("p").cpu(2).gang("g").having("metadata", "uid", value="2").build())
    made.check()
    assert made.tasks["default/p"].status == status.PENDING
    assert made.nodes.used[0, 0] == 0


def test_an_echo_from_before_our_bind_does_not_undo_it() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g"))
    cycle(made, policy("enqueue, allocate", ["gang"]), NOW)
    made.put(*pod("p").cpu(1).gang("g").build())
    assert made.tasks["default/p"].status == status.BINDING
    made.check()


def test_what_is_removed_takes_its_sums_along() -> None:
    made = cluster(node("n").cpu(4), podgroup("g").needs(cpu=2), pod("p").cpu(1).gang("g").on("n"), pod("w").cpu(1).gang("g"))
    made.settle()
    made.remove("PodGroup", "default/g")
    made.check()
    assert not made.queues["default"].held.any()
    assert not made.queues["default"].pending.any()
    made.remove("Pod", "default/p")
    made.remove("Pod", "default/w")
    made.check()
    assert not made.jobs
    made.remove("Pod", "default/absent")
    made.remove("PodGroup", "default/absent")


def test_a_queue_without_its_object_keeps_its_jobs_waiting() -> None:
    made = cluster(node("n").cpu(4), podgroup("g").queue("q"), pod("p").cpu(1).gang("g"))
    decide = policy("enqueue, allocate", ["gang"])
    assert not cycle(made, decide, NOW).binds
    made.put(*queue("q").build())
    assert cycle(made, decide, NOW).binds
    made.remove("Queue", "q")
    made.remove("Queue", "absent")
    assert not made.queues["q"].exists


def test_classes_give_jobs_their_priority_also_afterwards() -> None:
    made = cluster(podgroup("g").priority_class("gold"), podgroup("h"))
    made.put(*priority_class("gold", 7).build())
    made.put(*priority_class("plain", 3).having("globalDefault", value=True).build())
    assert (made.jobs["default/g"].priority, made.jobs["default/h"].priority) == (7, 3)
    made.remove("PriorityClass", "gold")
    assert made.jobs["default/g"].priority == 3


def test_more_resource_names_than_a_vector_is_wide_make_all_vectors_longer() -> None:
    made = cluster(node("a").cpu(4), podgroup("g").needs(cpu=1), pod("p").cpu(1).gang("g").on("a"), pod("w").cpu(1).gang("g"))
    made.settle()
    rich = node("b").cpu(4)
    for number in range(WIDTH + 4):
        rich = rich.resource(f"example.com/r{number}", 1)
    made.put(*rich.build())
    made.put(*pod("special").cpu(1).request(f"example.com/r{WIDTH}", 1).gang("g").build())
    made.check()
    assert made.dimensions.width == 2 * WIDTH
    binds = cycle(made, policy("enqueue, allocate", ["gang", "proportion", "predicates", "nodeorder"]), NOW).binds
    assert {bind.task.name: bind.node for bind in binds}["special"] == "b"
    made.check()


def test_pods_without_a_group_get_one_of_their_own_if_that_is_wanted() -> None:
    made = cluster(node("n").cpu(4))
    made.shadow_groups = True
    owner = {"name": "rs", "uid": "u", "controller": True}
    for name in ("a", "b"):
        made.put(*pod(name).cpu(1).having("metadata", "ownerReferences", value=[owner]).build())
    made.put(*pod("alone").cpu(1).annotation("scheduling.k8s.io/group-min-member", "2").build())
    made.put(*pod("foreign").cpu(1).scheduler("other").build())
    shared = made.jobs["default/shadow-u"]
    assert (len(shared.tasks), shared.min_member) == (2, 1)
    assert made.tasks["default/alone"].job is not None
    assert made.tasks["default/alone"].job.min_member == 2
    assert made.tasks["default/foreign"].job is None
    made.remove("Pod", "default/a")
    made.remove("Pod", "default/b")
    assert "default/shadow-u" not in made.jobs
    made.check()


RESIZE = {
    "spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": 2}}}, {"name": "side", "resources": {"requests": {"cpu": 1}}}]
    },
    "status": {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": 3}, "resources": {"requests": {"cpu": "2500m"}}}]},
}


@pytest.mark.parametrize(
    ("change", "cpu_milli"),
    [({}, 4000), ({"resize": "Infeasible"}, 4000), ({"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}, 4000)],
)
def test_a_container_that_is_being_resized_counts_at_its_greatest(change: dict[str, object], cpu_milli: int) -> None:
    document = {"metadata": {"name": "p"}, "spec": RESIZE["spec"], "status": RESIZE["status"] | change}
    assert Template(convert(document, Pod), Cluster().dimensions).request[0] == cpu_milli


def test_an_infeasible_resize_does_not_count_what_was_asked() -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 9}}}]}
    held = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": 3}}], "resize": "Infeasible"}
    document = {"metadata": {"name": "p"}, "spec": spec, "status": held}
    assert Template(convert(document, Pod), Cluster().dimensions).request[0] == 3000


def test_shares_of_nothing() -> None:
    zeros = Cluster().dimensions.zeros()
    assert (share(0, 0), share(1, 0), share(1, 4)) == (0.0, 1.0, 0.25)
    assert dominant_share(zeros, zeros) == 0.0


def test_a_folder_of_plugins_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        plugins(str(tmp_path / "absent"))
    (tmp_path / "broken.py").write_text("import absent_module_of_nobody\n")
    with pytest.raises(InputError, match=r"broken\.py: cannot be loaded: ModuleNotFoundError"):
        plugins(str(tmp_path))
    assert installed() == {}
