"""A heap whose order changes under it: who comes out next is told by the comparisons made on the way, as in Go's container/heap."""

from __future__ import annotations

from pumice.scheduler.placement.lazy_heap import LazyHeap


def test_while_nothing_changes_the_least_comes_out_first() -> None:
    heap: LazyHeap[int] = LazyHeap(lambda one, other: one < other)
    for number in (5, 3, 8, 1, 9, 2, 7):
        heap.push(number)
    assert [heap.pop() for _ in range(7)] == [1, 2, 3, 5, 7, 8, 9]
    assert not heap


def test_a_change_is_seen_only_by_those_that_are_compared_afterwards() -> None:
    rank = {"a": 1, "b": 2, "c": 3}
    heap: LazyHeap[str] = LazyHeap(lambda one, other: rank[one] < rank[other])
    for name in "abc":
        heap.push(name)
    rank["a"] = 9
    assert heap.pop() == "a"  # nobody has come past it
    heap.push("a")
    assert [heap.pop() for _ in range(3)] == ["b", "c", "a"]
