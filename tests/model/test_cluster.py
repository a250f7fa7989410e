"""The kept state under events: objects that come in any order, change, go and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from pumice.api.core import Namespace
from pumice.api.meta import Metadata
from pumice.api.pod import Pod
from pumice.api.quantity import quantity
from pumice.api.selectors import Requirement
from pumice.api.structs import convert
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model import inqueue_promises, nodes, status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import CPU, MOST_SHARED, dominant_share, unpacked
from pumice.scheduler.model.template import Template
from pumice.scheduler.plugins.kube.node_ports import UsedPorts
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.builders import Builder
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


def test_a_task_that_was_removed_is_put_back_where_it_was() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g").on("n"))
    task = made.tasks["default/p"]
    made.remove("Pod", task.key)
    made.put_back(task, status.RUNNING, "n", "g")
    made.check()
    assert (made.tasks[task.key], task.job, task.node) == (task, made.jobs["default/g"], 0)
    assert (made.nodes.used[0, 0], made.queues["default"].held[0]) == (1000, 1000)


def test_a_job_that_goes_with_all_of_its_pods_leaves_what_remains_when_each_is_removed() -> None:
    """Its pods run, wait, have succeeded, are on a node that is not known, belong to a native PodGroup."""

    def made() -> Cluster:
        found = cluster(
            node("n").cpu(9),
            queue("q"),
            podgroup("g", 2).queue("q").needs(cpu=3).phase("Inqueue"),
            podgroup("stays").queue("q"),
            pod("runs").cpu(1).gang("g").on("n"),
            pod("waits").cpu(1).gang("g"),
            pod("over").cpu(1).gang("g").on("n").phase("Succeeded"),
            pod("astray").cpu(1).gang("g").on("unknown"),
            pod("native").cpu(1).gang("g").having("spec", "schedulingGroup", "podGroupName", value="native"),
            pod("other").cpu(2).gang("stays").on("n"),
        )
        found.used_before(3600, lambda job: job.queue.name if job.queue else "")
        found.index(UsedPorts)
        found.refresh_sums()
        return found

    def state(of: Cluster) -> list[object]:
        of.refresh_sums()
        of.check()
        sums = [of.queues["q"].held, of.queues["q"].pending, of.queues["q"].inqueue, of.queues["q"].elastic, of.nodes.used, of.nodes.idle]
        tables: list[Iterable[str]] = [
            of.tasks,
            of.jobs,
            of.waiting,
            of.not_enqueued,
            of.stopped,
            of.members,
            of.changed,
            of._on_unknown_nodes["unknown"],
        ]
        return [*(each.tolist() for each in sums), *(list(each) for each in tables), [(row, sign) for row, _, sign in of.log]]

    one_by_one, together = made(), made()
    for key in [task.key for task in one_by_one.jobs["default/g"].tasks.values()]:
        one_by_one.remove("Pod", key)
    one_by_one.remove("PodGroup", "default/g")
    job = together.jobs["default/g"]
    tasks = [*job.tasks.values()]
    together.remove_job(job)
    assert state(together) == state(one_by_one) and list(together.tasks) == ["default/other"]
    assert not (job.tasks or job.pending or job.counts or job.ready_count or job.holding.any() or job.queue)
    assert all(task.job is None and task.node == -1 for task in tasks)


def namespace(name: str, ends: str | None = None) -> Namespace:
    return Namespace(Metadata(name=name, deletion_timestamp=ends))


def test_what_waits_in_a_namespace_that_is_being_deleted_is_placed_no_more() -> None:
    made = cluster(
        node("n").cpu(9),
        podgroup("g", 1, "going"),
        *(pod(name, "going").cpu(1).gang("g") for name in ("early", "changes", "goes")),
        pod("runs", "going").cpu(1).gang("g").on("n"),
        pod("alone", "going").cpu(1),
        pod("elsewhere").cpu(1),
    )

    def waits() -> set[str]:
        made.check()
        return {task.name for task in made.tasks.values() if task.status == status.PENDING}

    assert waits() == {"early", "changes", "goes", "alone", "elsewhere"}
    made.put("Namespace", namespace("going", ends="2026-01-01T00:00:00Z"))
    made.put(*pod("late", "going").cpu(1).gang("g").build())
    made.put(*pod("changes", "going").cpu(2).gang("g").build())
    assert waits() == {"elsewhere"} and not cycle(made, policy("allocate", ["gang"]), NOW).binds
    assert made.tasks["going/runs"].status == status.RUNNING

    goes = made.tasks["going/goes"]
    made.remove("Pod", goes.key)
    assert goes.uid not in made.stopped
    made.put_back(goes, status.RELEASING, "", "g")  # as it was
    made.remove("Pod", "going/early")
    made.remove("Namespace", "going")
    assert waits() == {"elsewhere"}, "its pods may be known for longer than itself"
    made.put("Namespace", namespace("other"))
    assert waits() == {"elsewhere"}
    made.put("Namespace", namespace("going"))
    assert waits() == {"late", "changes", "goes", "alone", "elsewhere"} and not made.stopped, "another one of its name"


def test_nodes_that_come_and_go_for_ever_make_nothing_longer() -> None:
    made = cluster(node("stays").cpu(1), pod("p").cpu(1).on("n0"))
    for number in range(100):
        for object_ in cluster(node(f"n{number}").cpu(4).label("zone", str(number)).taint("k", "v")).nodes.wire:
            made.put("Node", object_)
        made.check()
        assert (len(made.nodes), list(made.nodes.codes("zone")[1])) == (2, [str(number)])
        assert made.tasks["default/p"].node == (1 if number == 0 else -1)
        made.remove("Node", f"n{number}")
        made.check()
    assert made.nodes.total()[0] == 1000


def test_minimums_that_are_all_different_are_not_kept_for_ever() -> None:
    dimensions = cluster().dimensions
    for milli in range(2 * MOST_SHARED):
        found, _ = dimensions.packed({"cpu": quantity(f"{milli}m")})
    assert unpacked(found, 1)[0] == 2 * MOST_SHARED - 1
    assert len(dimensions._packed) <= MOST_SHARED


def test_equal_pods_share_a_template_though_the_server_gives_each_a_token_of_its_own() -> None:
    made = Cluster()
    for name, claim in (("a", "data"), ("b", "data"), ("c", "other")):
        token = {"name": f"kube-api-access-{name}{name}", "projected": {"sources": []}}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}, token]
        made.put("Pod", convert({"metadata": {"name": name}, "spec": {"volumes": volumes}}, Pod))
    one, other, different = (made.tasks[f"default/{name}"].template for name in "abc")
    assert one is other and one is not different


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


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "u", "controller": True}
SAME = ("uid", "labels", "annotations", "controller", "status", "node_name", "priority", "preemptable", "started")


@pytest.mark.parametrize(
    "told",
    [
        pod("p").cpu(1).gang("g").on("n").phase("Pending"),
        pod("p").cpu(1).gang("g").on("n").having("status", "startTime", value="2026-01-01T00:00:00Z"),
        pod("p").cpu(1).gang("g").on("other"),
        pod("p").cpu(2).gang("g").on("n"),
        pod("p").cpu(1).gang("h").on("n"),
        pod("p").cpu(1).on("n"),
        pod("p").cpu(1).gang("g").on("n").label("a", "b"),
        pod("p").cpu(1).gang("g").on("n").having("metadata", "ownerReferences", value=[OWNER]),
    ],
    ids=["bound", "runs", "elsewhere", "larger", "of another job", "of no job", "labelled", "owned"],
)
def test_what_the_server_tells_of_a_pod_that_we_bind_is_taken_over(told: Builder) -> None:
    objects = [node("n").cpu(4), node("other").cpu(4), podgroup("g"), podgroup("h")]
    made, expected = cluster(*objects, pod("p").cpu(1).gang("g")), cluster(*objects, told)
    made.move(made.tasks["default/p"], status.BINDING, made.nodes.rows["n"])
    made.put(*told.build())
    made.check()
    expected.check()
    task, anew = made.tasks["default/p"], expected.tasks["default/p"]
    assert [getattr(task, name) for name in SAME] == [getattr(anew, name) for name in SAME]
    assert (task.template.spec, task.job and task.job.uid) == (anew.template.spec, anew.job and anew.job.uid)
    assert (made.nodes.used == expected.nodes.used).all()


def test_a_pod_that_stays_gets_a_job_of_its_own_if_the_policy_wants_that_now() -> None:
    made = cluster(node("n").cpu(4), pod("p").cpu(1))
    made.move(made.tasks["default/p"], status.BINDING, 0)
    made.shadow_groups = True
    made.put(*pod("p").cpu(1).on("n").build())
    made.check()
    job = made.tasks["default/p"].job
    assert job is not None and job.count(status.RUNNING) == 1


def test_what_is_removed_takes_its_sums_along() -> None:
    made = cluster(node("n").cpu(4), podgroup("g").needs(cpu=2), pod("p").cpu(1).gang("g").on("n"), pod("w").cpu(1).gang("g"))
    made.refresh_sums()
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


def test_a_queue_is_forgotten_with_its_object_and_its_last_job() -> None:
    made = cluster(queue("q"), podgroup("a").queue("q"), queue("empty"))
    made.remove("Queue", "empty")
    made.remove("Queue", "q")
    assert "q" in made.queues and "empty" not in made.queues
    made.remove("PodGroup", "default/a")
    assert "q" not in made.queues


def test_classes_give_jobs_their_priority_also_afterwards() -> None:
    made = cluster(podgroup("g").priority_class("gold"), podgroup("h"))
    made.put(*priority_class("gold", 7).build())
    made.put(*priority_class("plain", 3).having("globalDefault", value=True).build())
    assert (made.jobs["default/g"].priority, made.jobs["default/h"].priority) == (7, 3)
    made.remove("PriorityClass", "gold")
    assert made.jobs["default/g"].priority == 3


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


def test_what_is_being_resized_counts_so_in_scores_too() -> None:
    read = Template(convert({"metadata": {"name": "p"}} | RESIZE, Pod), Cluster().dimensions)
    assert (read.scoring_cpu, read.scoring_memory) == (4000, 2 * 200 * 2**20)


def test_an_infeasible_resize_does_not_count_what_was_asked() -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 9}}}]}
    held = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": 3}}], "resize": "Infeasible"}
    document = {"metadata": {"name": "p"}, "spec": spec, "status": held}
    assert Template(convert(document, Pod), Cluster().dimensions).request[0] == 3000


@pytest.mark.parametrize(
    ("status", "cpu_milli"),
    [
        ({"allocatedResources": {"cpu": 3, "memory": "1Gi"}}, 2000),
        ({"allocatedResources": {"cpu": 3, "memory": "1Gi"}, "resources": {"requests": {"cpu": 1}}}, 3000),
        ({"allocatedResources": {"cpu": 1}, "resources": {"requests": {"cpu": "1500m"}}}, 2000),
        ({"allocatedResources": {"cpu": 1}, "resources": {"requests": {"cpu": "1500m"}}, "resize": "Infeasible"}, 1500),
        ({"allocatedResources": {"memory": 1}, "resources": {}, "resize": "Infeasible"}, 0),
    ],
)
def test_so_does_a_pod_with_requests_as_a_whole(status: dict[str, object], cpu_milli: int) -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}], "resources": {"requests": {"cpu": 2}}}
    document = {"metadata": {"name": "p"}, "spec": spec, "status": status}
    assert Template(convert(document, Pod), Cluster().dimensions).request[0] == cpu_milli


def test_a_container_status_without_resources_does_not_tell_pods_apart() -> None:
    made = cluster(pod("told").cpu(1), pod("untold").cpu(1))
    made.put(*pod("told").cpu(1).having("status", "containerStatuses", value=[{"name": "main"}]).build())
    assert made.tasks["default/told"].template is made.tasks["default/untold"].template


def test_status_that_grants_what_is_requested_does_not_tell_pods_apart_and_another_does() -> None:
    made = cluster(pod("same").cpu(1), pod("more").cpu(1), pod("plain").cpu(1))
    for name, cpu in (("same", "1000m"), ("more", "2")):
        granted = {"name": "main", "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": cpu}}}
        made.put(*pod(name).cpu(1).having("status", "containerStatuses", value=[granted]).build())
    assert made.tasks["default/same"].template is made.tasks["default/plain"].template
    assert made.tasks["default/more"].template.request[0] == 2000
    made.check()


def test_shares_of_nothing() -> None:
    zeros = Cluster().dimensions.zeros()
    assert dominant_share(zeros, zeros) == 0.0


def test_a_pod_group_that_changes_its_queue_takes_its_pods_along() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("r").cpu(1).gang("g").on("n"), pod("p").cpu(2).gang("g"))
    made.put(*podgroup("g").queue("q").build())
    made.check()
    assert (made.queues["default"].held[0], made.queues["default"].pending[0], made.queues["default"].jobs) == (0, 0, {})
    assert (made.queues["q"].held[0], made.queues["q"].pending[0]) == (1000, 2000)


def test_a_pod_group_that_was_never_seen_may_go() -> None:
    made = cluster(podgroup("g").queue("q"), pod("p").cpu(1).gang("g"), pod("other").gang("unseen"))
    made.remove("PodGroup", "default/unseen")
    made.remove("PodGroup", "default/g")
    made.remove("PodGroup", "default/g")
    made.check()
    assert "q" not in made.queues
    assert set(made.jobs) == {"default/g", "default/unseen"}


@pytest.mark.parametrize("more", ["cpu", "example.com/new"])
def test_a_decision_that_came_to_nothing_is_taken_back_by_the_pod_as_it_was_read(more: str) -> None:
    bare = pod("p").cpu(1).gang("g")
    made = cluster(node("n").cpu(4), podgroup("g"), bare)
    made.move(made.tasks["default/p"], status.BINDING, 0)
    made.put(*bare.build())
    assert made.tasks["default/p"].status == status.BINDING
    made.restore(bare.request(more, 1).build()[1])
    made.check()
    assert (made.tasks["default/p"].status, made.nodes.used[0, 0]) == (status.PENDING, 0)
    assert len(made.queues["default"].pending) == made.dimensions.width


def test_a_pod_that_goes_before_its_node_comes_is_not_put_on_it() -> None:
    early = pod("early").cpu(1).gang("g").on("n")
    made = cluster(podgroup("g"), early, pod("moved").cpu(1).gang("g").on("n"))
    made.remove("Pod", "default/early")
    made.put(*pod("moved").cpu(2).gang("g").on("n").build())
    made.put(*node("n").cpu(4).build())
    made.check()
    assert made.nodes.used[0, 0] == 2000


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda made: made.nodes.used.fill(7), "used of n"),
        (lambda made: made.nodes.idle.fill(7), "idle of n"),
        (lambda made: made.nodes.releasing.fill(7), "releasing of n"),
        (lambda made: made.nodes.pipelined.fill(7), "pipelined of n"),
        (lambda made: made.nodes.used_for_filters.fill(7), "used_for_filters of n"),
        (lambda made: made.nodes.nonzero_used.fill(7), "nonzero_used of n"),
        (lambda made: made.queues["default"].holding.fill(7), "held of <Queue default>"),
        (lambda made: made.queues["default"].asking.fill(7), "pending of <Queue default>"),
        (lambda made: made.jobs["default/g"].counts.update({status.RUNNING: 9}), "Running of <Job default/g Inqueue>"),
        (lambda made: made.jobs["default/g"].pending.clear(), "pending of <Job default/g Inqueue>"),
        (lambda made: made.waiting.clear(), "<Job default/g Inqueue> in waiting"),
        (lambda made: setattr(made.tasks["default/r"], "node", -1), "<Task default/r Running> does not know that it is on row 0"),
        (lambda made: setattr(made.tasks["default/r"], "status", status.FAILED), "<Task default/r Failed> cannot stand on a node"),
        (lambda made: setattr(made.tasks["default/w"], "node", 0), "place of <Task default/w Pending>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_check_of_the_sums_names_what_is_wrong(spoil: Callable[[Cluster], object], complaint: str) -> None:
    group = podgroup("g").phase("Inqueue")
    made = cluster(node("n").cpu(4), group, pod("r").cpu(1).gang("g").on("n"), pod("w").cpu(1).gang("g"))
    made.check()
    spoil(made)
    with pytest.raises(AssertionError, match=complaint):
        made.check()


def test_news_from_before_an_eviction_do_not_undo_it() -> None:
    existing = pod("p").cpu(1).gang("g").on("n")
    made = cluster(node("n").cpu(4), podgroup("g"), existing)
    made.move(made.tasks["default/p"], status.RELEASING, 0)
    made.put(*existing.label("beat", "2").build())
    assert made.tasks["default/p"].status == status.RELEASING
    made.put(*existing.having("status", "phase", value="Succeeded").build())
    assert made.tasks["default/p"].status == status.SUCCEEDED


def test_a_heartbeat_of_a_node_forgets_nothing_that_depends_on_its_labels() -> None:
    made = cluster(node("n").cpu(4))
    before = made.nodes.static_version
    made.put(*node("n").cpu(5).build())
    assert made.nodes.static_version == before
    made.put(*node("n").cpu(5).label("x", "y").build())
    assert made.nodes.static_version > before


@pytest.mark.parametrize(
    ("annotations", "cpu_milli"), [({"cpu": "1500"}, 5500), ({"cpu": "-9"}, 4000), ({"cpu": "much", "memory": "1024"}, 4000)]
)
def test_a_node_lends_out_what_its_agent_says_if_it_can_be_read(annotations: dict[str, str], cpu_milli: float) -> None:
    lending = node("n").cpu(4).memory(1024)
    for name, amount in annotations.items():
        lending = lending.annotation(f"volcano.sh/oversubscription-{name}", amount)
    made = cluster(lending)
    assert made.nodes.allocatable[0, 0] == cpu_milli
    assert made.nodes.allocatable[1, 0] == (2048 if "memory" in annotations else 1024)


@pytest.mark.parametrize(("text", "priority"), [("7", 7), ("-3", -3), ("2147483648", 5), ("high", 5), (" 7 ", 5), ("1_0", 5)])
def test_a_task_may_say_its_own_priority_within_its_job(text: str, priority: int) -> None:
    made = cluster(pod("p").priority(5).annotation("volcano.sh/task-priority", text))
    assert (made.tasks["default/p"].priority, made.tasks["default/p"].pod_priority) == (priority, 5)


def condition(kind: str, value: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": value, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def test_conditions_tell_since_when_a_pod_has_its_place_and_whether_it_was_preempted() -> None:
    def read(*conditions: dict[str, str]) -> tuple[float | None, bool]:
        made = cluster(pod("p").having("status", "conditions", value=list(conditions)))
        return made.tasks["default/p"].placed_at, made.tasks["default/p"].disrupted

    assert read(condition("Ready"), condition("PodScheduled")) == (NOW, False)
    assert read(condition("PodScheduled", "False"), condition("DisruptionTarget", reason="PreemptionByScheduler")) == (None, True)
    assert read(condition("DisruptionTarget", reason="EvictionByEvictionAPI")) == (None, False)


def test_a_pod_of_a_phase_that_nobody_knows_keeps_its_room_and_counts_for_nothing() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g").on("n").having("status", "phase", value="Unknown"))
    made.check()
    assert (made.nodes.used[0, 0], made.jobs["default/g"].ready_count) == (1000, 0)


def test_amounts_are_written_as_users_write_them() -> None:
    made = cluster(node("n").cpu(4), pod("p").cpu("1500m").memory("3Gi").gpu(2).request("example.com/none", 0))
    assert made.dimensions.quantities(made.tasks["default/p"].template.request) == {
        "cpu": "1500m",
        "memory": "3Gi",
        "pods": "1",
        "nvidia.com/gpu": "2",
    }


def test_limits_of_a_pod_are_the_greater_of_all_containers_and_any_init_container() -> None:
    def limited(**amounts: str) -> dict[str, object]:
        return {"name": "c", "resources": {"limits": amounts}}

    spec = {"initContainers": [limited(cpu="3", memory="1")], "containers": [limited(cpu="1", memory="1"), limited(cpu="1", memory="1")]}
    template = Template(convert({"metadata": {"name": "p"}, "spec": spec}, Pod), Cluster().dimensions)
    assert template.limits == {"cpu": 3, "memory": 2}


def test_requests_of_a_pod_as_a_whole_replace_those_of_containers_for_what_may_be_shared() -> None:
    whole = {"requests": {"cpu": "3", "nvidia.com/gpu": "9", "hugepages-2Mi": "4Mi"}}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}], "resources": whole}
    dimensions = Cluster().dimensions
    request = Template(convert({"metadata": {"name": "p"}, "spec": spec}, Pod), dimensions).request
    assert dimensions.quantities(request) == {"cpu": "3", "memory": "0", "pods": "1", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}


def test_a_part_of_a_job_is_gone_with_its_last_pod() -> None:
    made = cluster(podgroup("g").parts("rack", 1), *(pod(name).gang("g").label("rack", name[0]) for name in ("a1", "b1", "b2")))
    job = made.jobs["default/g"]
    assert [sorted(task.name for task in part.tasks.values()) for part in job.subjobs] == [["a1"], ["b1", "b2"]]
    made.remove("Pod", "default/b1")
    made.remove("Pod", "default/a1")
    assert [sorted(task.name for task in part.tasks.values()) for part in job.subjobs] == [["b2"]]


def test_the_version_of_a_kind_is_never_one_that_it_had() -> None:
    made, seen = cluster(), set()
    for number in range(3):
        kind, item = priority_class(f"c{number}", number).build()
        made.put(kind, item)
        seen.add(made.versions[kind])
        made.remove(kind, item.metadata.name)  # type: ignore[attr-defined]
        seen.add(made.versions[kind])
    assert len(seen) == 6


def test_what_is_known_of_jobs_that_are_alike_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten and found anew: the sums are the same."""
    sums = []
    for most in (inqueue_promises.MOST_KNOWN, 1):
        monkeypatch.setattr(inqueue_promises, "MOST_KNOWN", most)
        made = cluster(node("n").cpu(4), queue("q"))
        for number in range(6):
            made.put(*podgroup(f"j{number}").queue("q").phase("Inqueue").needs(cpu=1 + number % 3).build())
            made.put(*pod(f"p{number}").gang(f"j{number}").cpu("100m").on("n").build())
        made.refresh_sums()
        sums.append(made.queues["q"].inqueue.tolist())
        assert len(made._promises) <= most
    assert sums[0] == sums[1] and sums[0][CPU] == 11_400


def test_a_pod_without_a_job_keeps_its_place_when_its_status_changes() -> None:
    bound = pod("p").cpu(1).on("n").having("status", "phase", value="Pending")
    made = cluster(node("n").cpu(4), bound)
    before = made.tasks["default/p"]
    assert before.status == status.BOUND
    made.put(*bound.having("status", "phase", value="Running").build())
    assert made.tasks["default/p"] is before and before.status == status.RUNNING
    assert made.nodes.tasks[before.node] == {before.uid: before}
    made.check()


def test_requirements_without_number_are_answered_and_little_is_kept_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MOST_CELLS", 10)
    table = cluster(node("a").label("zone", "x"), node("b").label("zone", "y"), node("c")).nodes
    for number in range(20):
        here, never = Requirement("zone", "NotIn", ("x", f"{number}")), Requirement(f"k{number}", "NotIn", ("v",))
        assert table.satisfying(here).tolist() == [False, True, True]
        assert table.satisfying(never).tolist() == [True, True, True]
        assert table.satisfying(Requirement(f"k{number}", "Exists")).tolist() == [False, False, False]
        assert table.codes(f"k{number}")[0].tolist() == [nodes.ABSENT] * 3
        assert table.satisfying(Requirement(nodes.NAME, "In", ("b",))).tolist() == [False, True, False]
    assert len(table._labels) == 2
    assert len(table._masks) * 3 <= 10


def test_a_key_that_a_node_gets_later_is_seen() -> None:
    made = cluster(node("a"), node("b"))
    assert made.nodes.codes("zone")[1] == []
    made.put(*node("b").label("zone", "y").build())
    assert made.nodes.codes("zone")[0].tolist() == [nodes.ABSENT, 0]
    made.remove("Node", "b")
    assert made.nodes.codes("zone")[1] == []


def test_labels_of_a_job_are_those_of_its_pod_group() -> None:
    """Plugins read them."""
    jobs = cluster(podgroup("a").label("team", "red"), podgroup("b"), pod("single")).jobs
    assert dict(jobs["default/a"].labels) == {"team": "red"}
    assert not jobs["default/b"].labels and not any(job.labels for job in jobs.values() if job.group is None)
