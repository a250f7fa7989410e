"""Each happening that may help a pod refused by a rule does help one: nothing else happens, and the pod gets its node."""

from __future__ import annotations

import pytest

from pumice.scheduler.kube.queueing_hints import HINTS
from tests.live import hints_of_claims, hints_of_pods, hints_of_room
from tests.live.wakes import Story, is_left_waiting, is_tried_again_and_gets_a_node

STORIES = [*hints_of_pods.STORIES, *hints_of_claims.STORIES, *hints_of_room.STORIES]
IN_VAIN = [*hints_of_pods.IN_VAIN, *hints_of_claims.IN_VAIN, *hints_of_room.IN_VAIN]


def test_every_hint_has_its_story() -> None:
    pairs = {(by, what) for by, hints in HINTS.items() for what in hints}
    assert not pairs - {(story.by, story.what) for story in STORIES} - hints_of_claims.HELD_IN_BETWEEN


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_what_may_help_helps(story: Story) -> None:
    is_tried_again_and_gets_a_node(story)


@pytest.mark.parametrize("story", IN_VAIN, ids=str)
def test_what_cannot_help_wakes_nobody(story: Story) -> None:
    is_left_waiting(story)
