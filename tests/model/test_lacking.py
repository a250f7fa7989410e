"""What the model says to those who look for a kind that an input may lack."""

from __future__ import annotations

from pumice.testing import cluster, node, pod, podgroup, schedule


def test_a_kind_that_a_dump_lacks_is_not_taken_for_empty() -> None:
    made = cluster(node("n"), pod("p"))
    assert made.absent("StorageClass", "not found") == "not found"
    made.lacking = frozenset(["StorageClass"])
    text = "the input has no StorageClasses; say `pumice cycle --from-cluster` or add storageclasses to the dump"
    assert made.absent("StorageClass", "not found") == text


def test_a_gang_that_must_stay_together_is_not_told_of_room_where_the_input_lacks_hypernodes() -> None:
    made = cluster(node("a").cpu(1), podgroup("g", 2).topology(1), *pod("p").cpu(1).gang("g").times(2))
    made.lacking = frozenset(["HyperNode"])
    told = schedule(made, "enqueue, allocate", "gang", "predicates", "network-topology-aware").waiting
    assert any("the input has no HyperNodes; say `pumice cycle --from-cluster`" in text for text in told.values())
