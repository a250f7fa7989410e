"""Older configurations do what they did, with a note on what they are read as."""

from __future__ import annotations

import pytest

from pumice.api.errors import InputError
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.framework.policy import Policy
from tests.kube_scheduler.stage import cluster, document, machine, play, run, standing, waiting

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


def test_v1beta2_keeps_its_default_weights_unless_the_profile_says_otherwise() -> None:
    from pumice.scheduler.framework.session import Session

    body = "profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}}}]"
    chosen, _ = read(f"apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n{body}\n")
    assert chosen.profiles is not None
    with Session(cluster(chosen), chosen, 0.0) as session:
        rules = [rule for make in chosen.profiles.by_name["default-scheduler"].scorers for rule in make(session)]
    weights = {rule.name: rule.weight for rule in rules}
    assert (weights["TaintToleration"], weights["NodeAffinity"], weights["PodTopologySpread"]) == (1, 9, 2)


def test_disable_preemption_of_v1alpha1_is_heeded() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\ndisablePreemption: true\n"
    full = (machine("a", 1), standing("low", "a"), waiting("high", priority=9))
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
    made = cluster(chosen, machine("a", 4), machine("b", 4), standing("x", "b"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_a_policy_without_lists_keeps_the_defaults() -> None:
    chosen, _ = read("apiVersion: v1\nkind: Policy\n")
    made = cluster(chosen, machine("a", 4), machine("b", 4), standing("x", "a"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_of_two_strategies_the_last_is_taken_with_a_note() -> None:
    two = (
        "apiVersion: v1\nkind: Policy\npriorities: [{name: LeastRequestedPriority, weight: 1}, {name: MostRequestedPriority, weight: 1}]\n"
    )
    chosen, notes = read(two)
    assert any("MostAllocated takes the place of LeastAllocated" in note for note in notes)
    made = cluster(chosen, machine("a", 4), machine("b", 4), standing("x", "b"), waiting("p"))
    assert run(made, chosen).binds == {"p": "b"}


def test_a_policy_entry_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"priorities\[0\]"):
        read("apiVersion: v1\nkind: Policy\npriorities: [{weight: 1}]\n")
