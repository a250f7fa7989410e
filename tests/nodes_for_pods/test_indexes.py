"""What is kept of pods on nodes equals a recount, and `Cluster.check` would tell if it did not."""

from __future__ import annotations

import pytest

from pumice.api.selectors import Requirement
from pumice.scheduler.model.index import Index
from pumice.scheduler.plugins.kube.indexes.assumed_volumes import AssumedVolumes
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import ExistingTerms
from pumice.scheduler.plugins.kube.indexes.existing_pods import CountedPods, ExistingPods
from pumice.scheduler.plugins.kube.indexes.label_index import PodScope
from pumice.scheduler.plugins.kube.indexes.volume_uses import VolumeUses
from pumice.scheduler.plugins.kube.node_ports import UsedPorts
from pumice.scheduler.plugins.kube.node_volume_limits import Attachments
from pumice.testing import PodBuilder, cluster, pod
from tests.nodes_for_pods.asking import ZONE, zoned
from tests.nodes_for_pods.storage import claim, volume

TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
EVERYTHING = (
    pod("p")
    .label("app", "x")
    .having("spec", "containers", 0, "ports", value=[{"hostPort": 80}])
    .having("spec", "affinity", "podAntiAffinity", value={"requiredDuringSchedulingIgnoredDuringExecution": [TERM]})
    .having("spec", "volumes", value=[{"name": "d", "iscsi": {"iqn": "q"}}, {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}])
    .on("a")
)


@pytest.mark.parametrize("kind", [Attachments, ExistingPods, UsedPorts, ExistingTerms, VolumeUses])
def test_an_index_that_was_told_of_a_pod_twice_is_found_by_a_recount(kind: type[Index]) -> None:
    csi = {"driver": "csi.test", "volumeHandle": "h"}
    made = cluster(*zoned(a="1", b="2"), claim("c", "v"), volume("v", phase="Bound", csi=csi), EVERYTHING)
    made.index(ExistingPods).counts(CountedPods((PodScope((Requirement("app", "In", ("x",)),), None),)))
    kept = made.index(kind)
    made.check()
    kept.change(0, made.tasks["default/p"], 1)
    with pytest.raises(AssertionError, match=kind.__name__):
        made.check()


def test_of_two_addresses_of_a_port_one_may_go() -> None:
    def user(name: str, address: str) -> PodBuilder:
        return pod(name).having("spec", "containers", 0, "ports", value=[{"hostPort": 80, "hostIP": address}]).on("a")

    made = cluster(*zoned(a="1"), user("p", "10.0.0.1"), user("q", "10.0.0.2"))
    kept = made.index(UsedPorts)
    made.remove("Pod", "default/p")
    made.check()
    assert kept.taken("TCP", "10.0.0.2", 80, 1).all() and not kept.taken("TCP", "10.0.0.1", 80, 1).any()


def test_pods_without_claims_are_none_of_the_volumes_business() -> None:
    made = cluster(*zoned(a="1"), pod("p"))
    kept = made.index(AssumedVolumes)
    kept.change(0, made.tasks["default/p"], 1)
    assert not kept.by_claim
