"""Older configurations do what they did, with a note on what they are read as."""

from __future__ import annotations

import pytest

from pumice.api.errors import InputError
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from tests.kube_scheduler.stage import cluster, document, existing, machine, play, run, waiting

OLD_POLICY = """\
apiVersion: v1
kind: Policy
predicates: [{name: GeneralPredicates}]
priorities:
- name: RequestedToCapacityRatioPriority
  weight: 2
  argument:
    requestedToCapacityRatioArguments:
      shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
      resources: [{name: cpu, weight: 1}]
- {name: NodePreferAvoidPodsPriority, weight: 1}
hardPodAffinitySymmetricWeight: 5
extenders: [{urlPrefix: http://x, filterVerb: f, enableHttps: true, httpTimeout: 2000000000}]
"""


def read(text: str) -> tuple[Policy, list[str]]:
    return read_kube(document(text), {})


@pytest.mark.parametrize("version", ["v1beta3", "v1beta2", "v1alpha1"])
def test_a_beta_is_read_with_a_note(version: str) -> None:
    chosen, notes = read(f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\nhealthzBindAddress: x\n")
    assert any(f"{version} is read as v1" in note for note in notes)
    assert any("healthzBindAddress has no effect" in note for note in notes)
    assert chosen.profiles is not None


def weights_in(chosen: Policy) -> dict[str, float]:
    assert chosen.profiles is not None
    with Session(cluster(chosen), chosen, 0.0) as session:
        rules = [rule for make in chosen.profiles.by_name["default-scheduler"].scorers for rule in make(session)]
    return {rule.name: rule.weight for rule in rules}


def beta(version: str, body: str) -> str:
    return f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n{body}\n"


def test_v1beta2_keeps_its_default_weights_unless_the_profile_says_otherwise() -> None:
    weights = weights_in(read(beta("v1beta2", "profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}}}]"))[0])
    assert (weights["TaintToleration"], weights["NodeAffinity"], weights["PodTopologySpread"]) == (1, 9, 2)


def test_v1beta2_adds_no_weight_to_a_profile_that_turns_all_defaults_off() -> None:
    points = "{enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: ImageLocality, weight: 3}], disabled: [{name: '*'}]}"
    assert weights_in(read(beta("v1beta2", f"profiles: [{{plugins: {{multiPoint: {points}}}}}]"))[0]) == {"ImageLocality": 3}


def test_the_weight_of_required_affinity_of_v1alpha1_is_heeded() -> None:
    with pytest.raises(InputError, match=r"pluginConfig\[0\].*hardPodAffinityWeight: Invalid value: 101"):
        read(beta("v1alpha1", "hardPodAffinitySymmetricWeight: 101"))


def test_the_weights_of_a_policy_are_those_of_its_plugins() -> None:
    chosen, _ = read("apiVersion: v1\nkind: Policy\npriorities: [{name: ImageLocalityPriority, weight: 3}]\n")
    assert weights_in(chosen) == {"ImageLocality": 3}


def test_disable_preemption_of_v1alpha1_is_heeded() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\ndisablePreemption: true\n"
    full = (machine("a", 1), existing("low", "a"), waiting("high", priority=9))
    assert play(*full).evictions == ["low"]
    assert play(*full, conf=text).evictions == []


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(InputError, match="is no version of KubeSchedulerConfiguration"):
        read("apiVersion: kubescheduler.config.k8s.io/v7\nkind: KubeSchedulerConfiguration\n")


def test_a_policy_becomes_a_profile() -> None:
    chosen, notes = read(OLD_POLICY)
    assert any("a Policy is read as a KubeSchedulerConfiguration" in note for note in notes)
    assert any("NodePreferAvoidPodsPriority has no counterpart" in note for note in notes)
    assert chosen.profiles is not None
    extender = chosen.profiles.extenders[0]
    assert (extender.timeout_s, extender.options["https"]) == (2.0, True)


def test_a_policy_packs_by_its_curve() -> None:
    text = OLD_POLICY[: OLD_POLICY.index("extenders")]
    chosen, _ = read(text)
    made = cluster(chosen, machine("a", 4), machine("b", 4), existing("x", "b"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_a_policy_without_lists_keeps_the_defaults() -> None:
    chosen, _ = read("apiVersion: v1\nkind: Policy\n")
    made = cluster(chosen, machine("a", 4), machine("b", 4), existing("x", "a"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_of_two_strategies_the_last_is_taken_with_a_note() -> None:
    two = (
        "apiVersion: v1\nkind: Policy\npriorities: [{name: LeastRequestedPriority, weight: 1}, {name: MostRequestedPriority, weight: 1}]\n"
    )
    chosen, notes = read(two)
    assert any("MostAllocated takes the place of LeastAllocated" in note for note in notes)
    made = cluster(chosen, machine("a", 4), machine("b", 4), existing("x", "b"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_a_policy_entry_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"priorities\[0\]"):
        read("apiVersion: v1\nkind: Policy\npriorities: [{weight: 1}]\n")


def test_a_policy_rejects_no_pod_for_predicates_that_it_does_not_name() -> None:
    chosen, _ = read("apiVersion: v1\nkind: Policy\npredicates: [{name: PodFitsResources}]\npriorities: []\n")
    asker = waiting("p").having("spec", "volumes", value=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])
    assert run(cluster(chosen, machine("a"), asker), chosen).binds == {"p": "a"}
