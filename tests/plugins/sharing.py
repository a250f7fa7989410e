"""Nodes with cards to share, and who gets which."""

from __future__ import annotations

from typing import Any

from scene import only

from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.plugins.volcano.deviceshare.cards import Card, CardShortage
from pumice.scheduler.plugins.volcano.deviceshare.gpushare import GpuRequest
from pumice.scheduler.plugins.volcano.deviceshare.vgpu import VgpuRequest
from pumice.testing import NodeBuilder, node

INDEX = "volcano.sh/gpu-index"
IDS = "volcano.sh/vgpu-ids-new"


def rules(actions: str = "allocate", **arguments: Any) -> Policy:
    return only("deviceshare", {f"deviceshare.{key}": value for key, value in arguments.items()}, actions)


def gpu_node(name: str, cards: int = 2, each: int = 8192, **annotations: str) -> NodeBuilder:
    notes = {f"volcano.sh/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return node(name).cpu(8).volcano(gpu_number=cards, gpu_memory=cards * each).annotations(notes)


def picks(request: GpuRequest | VgpuRequest, *cards: Card) -> list[list[int]] | str:
    """Positions of the chosen cards by container, or why there are none."""
    choice = request.choose(cards)
    if isinstance(choice, CardShortage):
        return str(choice)
    return [[at for at, _, _ in container] for container in choice.picks]
