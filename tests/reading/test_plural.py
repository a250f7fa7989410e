"""Words that go with a number."""

from __future__ import annotations

from pumice.api.plural import counted, part_of, plural


def test_a_word_goes_with_its_number() -> None:
    assert [counted(number, "pod") for number in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]
    assert [plural(number, "waits", "wait") for number in (1, 2)] == ["waits", "wait"]
    assert plural(1.0, "GPU") == "GPU" and plural(0.5, "GPU") == "GPUs"
    assert [part_of(*of, "pod") for of in ((1, 1), (0, 1), (1, 3))] == ["its only pod", "0 of its 1 pod", "1 of its 3 pods"]
