"""Pods that no action looks at are told what is missing."""

from __future__ import annotations

from pumice.extensions import plugins
from pumice.inputs.cluster_from_files import run_cycles
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW, policy

KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: volcano}]\n"


def told(made: Cluster, decide: Policy) -> dict[str, str]:
    return {name: why["message"] for name, why in run_cycles(made, decide, NOW, 1)[0]["pending"].items()}


def test_what_is_missing_is_said_with_the_nearest_right_name() -> None:
    made = cluster(
        node("a").cpu(4),
        queue("research"),
        podgroup("train").queue("research"),
        podgroup("lost").queue("reserch"),
        pod("p").cpu(1).gang("train"),
        pod("typo").cpu(1).gang("trian"),
        pod("queueless").cpu(1).gang("lost"),
        pod("alone").cpu(1),
        pod("elsewhere").cpu(1).having("spec", "schedulerName", value="default-scheduler"),
    )
    assert told(made, policy("enqueue, allocate", ["gang", "predicates"])) == {
        "default/typo": 'PodGroup default/trian does not exist; did you mean "train"?',
        "default/queueless": 'queue reserch does not exist; did you mean "research"?',
        "default/alone": "it has no PodGroup; name one in the annotation scheduling.k8s.io/group-name, "
        "or have Volcano's controllers make one",
        "default/elsewhere": 'it asks for scheduler "default-scheduler"; this one serves volcano',
    }


def test_pods_of_a_profile_need_no_group() -> None:
    made = cluster(node("a").cpu(4), pod("alone").cpu(1), pod("grouped").cpu(1).gang("none"), pod("big").cpu(8))
    decide = read_configurations([config_text(KUBE, "conf")], plugins())[0]
    assert list(told(made, decide)) == ["default/big"]
