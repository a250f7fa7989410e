"""Quotas in a tree of queues: the level that binds is named, with what all below it hold, and what it is given helps."""

from __future__ import annotations

from pumice.answers import Because, TrialCluster, why
from pumice.answers.changes import make_all
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW, policy


def hierarchy() -> Policy:
    names = ("gang", "predicates", "capacity")
    return Policy(
        policy("enqueue, allocate, backfill", ()).actions, (tuple(PluginOption(PLUGINS[name], hierarchy=True) for name in names),)
    )


def test_the_level_of_the_tree_that_binds_is_named() -> None:
    queues = (queue("root"), queue("dept").parent("root").capability(cpu=4), queue("one").parent("dept"), queue("two").parent("dept"))
    groups = (podgroup("old").queue("one").phase("Running"), podgroup("j").queue("two").phase("Inqueue"))
    made = cluster(node("n1").cpu(16), *queues, *groups, pod("old").cpu(3).gang("old").on("n1"), pod("j").cpu(2).gang("j"))
    told = why(made, hierarchy(), NOW, "job/j")
    assert told.headline is not None
    assert told.headline.because == Because.QUOTA
    assert told.headline.text == "queue dept may hold 4 cpu, and holds 3; it asks for 2 (1 short)"
    with TrialCluster(made) as trial:
        make_all(trial, told.headline.remedy)
        after = why(made, hierarchy(), NOW, "job/j")
    assert after.state == "starts"
    made.check()


def test_what_a_queue_deserves_is_told_though_nothing_limits_it() -> None:
    queues = (queue("root"), queue("dept").parent("root"), queue("one").parent("dept").deserves(cpu=2), queue("two").parent("dept"))

    def told(name: str, job: str) -> list[str]:
        waits = (podgroup(job).queue(name).phase("Inqueue"), pod(job).cpu(2).gang(job))
        made = cluster(node("n1").cpu(4), *queues, pod("old").cpu(3).on("n1"), *waits)
        return [link.answer for link in why(made, hierarchy(), NOW, f"job/{job}").chain]

    assert "queue one: cpu 0 held, 2 deserved" in told("one", "j")
    assert "no limit" in told("two", "k")


def test_of_pods_of_several_sizes_it_is_asked_for_what_the_first_that_start_need() -> None:
    """The pods are tried in their order: with less than 7 the third finds nothing left."""
    sizes = (1, 4, 2, 6)
    pods = [pod(f"j-{n}").cpu(cpu).gang("j") for n, cpu in enumerate(sizes)]
    made = cluster(node("n1").cpu(16), queue("small").capability(cpu=4), podgroup("j", 3).queue("small"), *pods)
    told = why(made, policy("allocate", ("gang", "predicates", "capacity")), NOW, "job/j", advise=True)
    assert told.line == "queue small may hold 4 cpu, and holds 0; it asks for 7 (3 short)"
    assert [str(change) for change in told.advice] == ["capability of 7 cpu for queue small"]
