"""What the model says of itself to those who look for something else: attributes of other names, kinds that an input may lack."""

from __future__ import annotations

import pytest

from pumice.model.lacking import absent
from pumice.testing import cluster, node, pod, podgroup


@pytest.mark.parametrize(
    ("name", "hint"),
    [("minAvailable", '"min_member"'), ("tsks", '"tasks"'), ("scheduler_name_of_nobody", "")],
)
def test_a_wrong_attribute_is_answered_with_the_right_one(name: str, hint: str) -> None:
    job = cluster(podgroup("g")).jobs["default/g"]
    with pytest.raises(AttributeError) as missing:
        getattr(job, name)
    assert str(missing.value).startswith(f"Job has no attribute '{name}'") and hint in str(missing.value)
    with pytest.raises(AttributeError, match=r"^_private$"):
        job._private  # noqa: B018


def test_a_kind_that_a_dump_lacks_is_not_taken_for_empty() -> None:
    made = cluster(node("n"), pod("p"))
    assert absent(made, "StorageClass", "not found") == "not found"
    made.lacking = frozenset(["StorageClass"])
    text = "the input has no StorageClasses; say `pumice cycle --from-cluster` or add storageclasses to the dump"
    assert absent(made, "StorageClass", "not found") == text
