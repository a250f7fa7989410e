"""What kube-scheduler refuses is refused, naming the field; what it accepts is accepted."""

from __future__ import annotations

import pytest

from pumice.api.errors import InputError
from pumice.scheduler.config import KUBE_DEFAULT
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.profiles import DefaultPreemptionArgs
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster
from tests.kube_scheduler.stage import document, machine, play, policy, profile, waiting

FIT = "pluginConfig: [{name: NodeResourcesFit, args: {%s}}]"
AT_FIT = "profiles[0].pluginConfig[0].args"
RATIO = "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [%s]}}"
SPREAD = "pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{%s}]}}]"
TERM = (
    "pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "{nodeSelectorTerms: [{%s}]}}}}]"
)
AT_TERM = f"{AT_FIT}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

REFUSED = [
    # the whole
    ("parallelism: 0", "parallelism", "Invalid value: 0: should be an integer value greater than zero"),
    ("percentageOfNodesToScore: 101", "percentageOfNodesToScore", "Invalid value: 101: not in valid range [0-100]"),
    ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds", "must be greater than 0"),
    ("podInitialBackoffSeconds: 20", "podMaxBackoffSeconds", "must be greater than or equal to PodInitialBackoffSeconds"),
    ("parallelsim: 4", "parallelsim", 'unknown field "parallelsim"; did you mean "parallelism"?'),
    ("parallelism: many", "parallelism", 'found "many" where an integer belongs'),
    ("clientConnection: {burst: -1}", "clientConnection.burst", "must be non-negative"),
    ("leaderElection: {leaseDuration: 5s}", "leaderElection.leaseDuration", "LeaseDuration must be greater than RenewDeadline"),
    ("leaderElection: {renewDeadline: 2s}", "leaderElection.renewDeadline", "must be greater than RetryPeriod*JitterFactor"),
    ("leaderElection: {retryPeriod: soon}", "leaderElection.retryPeriod", '"soon" is not a duration'),
    ("leaderElection: {resourceLock: configmaps}", "leaderElection.resourceLock", 'resourceLock value must be "leases"'),
    ("leaderElection: {resourceName: ''}", "leaderElection.resourceName", "resourceName is required"),
    # profiles
    ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName", "Required value"),
    ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName", 'Duplicate value: "a"'),
    ("profiles: [{percentageOfNodesToScore: -1}]", "profiles[0].percentageOfNodesToScore", "not in valid range [0-100]"),
    ("profiles: [{plugins: {score: {enabled: [{name: NoSuch}]}}}]", "plugins.score.enabled[0].name", 'ScorePlugin "NoSuch" does not exist'),
    ("profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]", "plugins.score.enabled[0].name", "does not extend ScorePlugin"),
    ("profiles: [{plugins: {multiPoint: {enabled: [{name: NoSuch}]}}}]", "plugins.multiPoint.enabled[0].name", "does not exist"),
    (
        "profiles: [{plugins: {filter: {enabled: [{name: NodePorts}, {name: NodePorts}]}}}]",
        "plugins.filter.enabled[1].name",
        'plugin "NodePorts" already registered as "FilterPlugin"',
    ),
    ("profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]", "score.enabled[0].weight", "must not be negative"),
    ("profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]", "plugins.queueSort", "only one queue sort plugin required"),
    ("profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]", "plugins.bind", "at least one bind plugin is needed"),
    ("profiles: [{plugins: {filters: {}}}]", "profiles[0].plugins.filters", 'did you mean "filter"?'),
    ("profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]", "pluginConfig[1].name", "repeated config for plugin"),
    ("profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: FitArgs}}]}]", "args.kind", "must be of kind NodeAffinityArgs"),
    # extenders
    ("extenders: [{filterVerb: f}]", "extenders[0].urlPrefix", "Required value"),
    ("extenders: [{urlPrefix: u, prioritizeVerb: p}]", "extenders[0].weight", "must have a positive weight applied to it"),
    ("extenders: [{urlPrefix: u, bindVerb: b}, {urlPrefix: u, bindVerb: b}]", "extenders", "only one extender can implement bind"),
    ("extenders: [{urlPrefix: u, managedResources: [{name: cpu}]}]", "extenders[0].managedResources[0].name", "extended resource"),
    ("extenders: [{urlPrefix: u, managedResources: [{name: a.b/-}]}]", "extenders[0].managedResources[0].name", "name part must consist"),
    (
        "extenders: [{urlPrefix: u, managedResources: [{name: a.b/c}, {name: a.b/c}]}]",
        "extenders[0].managedResources[1].name",
        "duplicate extender managed resource name",
    ),
    ("extenders: [{urlPrefix: u, httpTimeout: soon}]", "extenders[0].httpTimeout", '"soon" is not a duration'),
    ("extenders: [{urlPrefix: u, httpTimeout: 5}]", "extenders[0].httpTimeout", "found the number 5 where a string belongs"),
]

REFUSED_PROFILES = [
    (FIT % "scoringStrategy: {type: First}", f"{AT_FIT}.scoringStrategy.type", 'Unsupported value: "First": supported values: "LeastAll'),
    (FIT % "scoringStrategy: {resources: [{name: cpu, weight: 101}]}", f"{AT_FIT}.scoringStrategy.resources[0].weight", "(0, 100]"),
    (FIT % (RATIO % ""), f"{AT_FIT}.scoringStrategy.requestedToCapacityRatio.shape", "at least one point must be specified"),
    (FIT % (RATIO % "{utilization: -1, score: 0}"), "shape[0].utilization", "Invalid value: -1: not in valid range [0, 100]"),
    (FIT % (RATIO % "{utilization: 1, score: 11}"), "shape[0].score", "Invalid value: 11: not in valid range [0, 10]"),
    (FIT % (RATIO % "{utilization: 9}, {utilization: 9}"), "shape[1].utilization", "values must be sorted in increasing order"),
    (FIT % "ignoredResources: ['b@d']", f"{AT_FIT}.ignoredResources[0]", "name part must consist"),
    (FIT % "ignoredResources: ['B/a']", f"{AT_FIT}.ignoredResources[0]", "prefix part must be"),
    (FIT % "ignoredResourceGroups: ['a.b/c']", f"{AT_FIT}.ignoredResourceGroups[0]", "resource group name can't contain '/'"),
    (FIT % "ignoredResourceGroups: ['b@d']", f"{AT_FIT}.ignoredResourceGroups[0]", "name part must consist"),
    (
        "pluginConfig: [{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 1}, {name: cpu, weight: 1}]}}]",
        f"{AT_FIT}.resources[1].name",
        'Duplicate value: "cpu"',
    ),
    (
        SPREAD % "maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule",
        "defaultConstraints[0].maxSkew",
        "not in valid range (0, inf)",
    ),
    (SPREAD % "maxSkew: 1, whenUnsatisfiable: DoNotSchedule", "defaultConstraints[0].topologyKey", "can not be empty"),
    (SPREAD % "maxSkew: 1, topologyKey: '-', whenUnsatisfiable: DoNotSchedule", "defaultConstraints[0].topologyKey", "name part"),
    (SPREAD % "maxSkew: 1, topologyKey: z", "defaultConstraints[0].whenUnsatisfiable", "can not be empty"),
    (SPREAD % "maxSkew: 1, topologyKey: z, whenUnsatisfiable: Never", "defaultConstraints[0].whenUnsatisfiable", "Unsupported value"),
    (
        SPREAD
        % "maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule",
        "defaultConstraints[1]",
        "Duplicate value",
    ),
    ("pluginConfig: [{name: PodTopologySpread, args: {defaultingType: Mine}}]", "args.defaultingType", 'Unsupported value: "Mine"'),
    ("pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: -1}}]", "args.bindTimeoutSeconds", "should not be a negative value"),
    ("pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}]", "args.shape", "StorageCapacityScoring is off"),
    ("pluginConfig: [{name: DynamicResources, args: {filterTimeout: -1s}}]", "args.filterTimeout", "must be non-negative"),
    ("pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 10ms}}]", "args.bindingTimeout", "must be at least 1 second"),
    ("pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesAbsolute: -1}}]", "minCandidateNodesAbsolute", "[0, inf)"),
    ("pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 101}}]", "minCandidateNodesPercentage", "[0, 100]"),
    (TERM.replace("[{%s}]", "[]"), AT_TERM, "must have at least one node selector term"),
    (TERM % "matchExpressions: [{key: a, operator: In}]", f"{AT_TERM}[0].matchExpressions[0].values", "must be specified when"),
    (
        TERM % "matchExpressions: [{key: a, operator: Exists, values: [b]}]",
        f"{AT_TERM}[0].matchExpressions[0].values",
        "may not be specified",
    ),
    (TERM % "matchExpressions: [{key: a, operator: Gt, values: [1, 2]}]", "matchExpressions[0].values", "found the number 1"),
    (
        TERM % "matchExpressions: [{key: a, operator: Gt, values: ['1', '2']}]",
        "matchExpressions[0].values",
        "must be specified single value",
    ),
    *(
        (TERM % f"matchExpressions: [{{key: a, operator: Gt, values: ['{value}']}}]", "matchExpressions[0].values[0]", "must be an integer")
        for value in ("x", 2**63)
    ),
    (
        TERM % "matchExpressions: [{key: a, operator: NotIn, values: [b, 'b c']}]",
        "matchExpressions[0].values[1]",
        'Invalid value: "b c": a valid label must be an empty string',
    ),
    (TERM % "matchExpressions: [{key: a, operator: Lt, values: ['-3']}]", "matchExpressions[0].values[0]", "a valid label must be"),
    (TERM % "matchExpressions: [{key: '-', operator: Exists}]", "matchExpressions[0].key", "name part must consist"),
    (TERM % "matchFields: [{key: metadata.name, operator: Exists}]", "matchFields[0].operator", "not a valid selector operator"),
    (TERM % "matchFields: [{key: metadata.name, operator: In, values: [a, b]}]", "matchFields[0].values", "must be only one value"),
    (TERM % "matchFields: [{key: spec.x, operator: In, values: [a]}]", "matchFields[0].key", "not a valid field selector key"),
    (
        "pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
        "[{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}}]",
        "preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        "must be in the range 1-100",
    ),
]


@pytest.mark.parametrize(("body", "field", "text"), [*REFUSED, *((f"profiles: [{{{b}}}]", f, t) for b, f, t in REFUSED_PROFILES)])
def test_a_fault_is_told_with_its_field(body: str, field: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_kube(document(f"{KUBE_DEFAULT}{body}\n"), {})
    said = str(caught.value)
    assert field in said
    assert text in said
    assert said.startswith("test.yaml:")


def test_the_shape_of_storage_may_be_set_where_storage_is_scored() -> None:
    shape = "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [%s]}}]}]\n"
    read_kube(document(KUBE_DEFAULT + shape % "{utilization: 0, score: 0}, {utilization: 100, score: 10}"), {}, release(37))
    with pytest.raises(InputError, match="values must be sorted in increasing order"):
        read_kube(document(KUBE_DEFAULT + shape % "{utilization: 50, score: 0}, {utilization: 10, score: 10}"), {}, release(37))


def test_without_its_gate_no_declared_feature_is_needed() -> None:
    for on in (True, False):
        (profile,) = read_kube(document(KUBE_DEFAULT), {}, release(36, {"NodeDeclaredFeatures": on}))[0].profiles.by_name.values()  # type: ignore[union-attr]
        made = Cluster()
        names = {rule.name for make in profile.filters for rule in make(Session(made, policy(), 0.0))}
        assert ("NodeDeclaredFeatures" in names) == on


def test_all_faults_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        policy(
            f"{KUBE_DEFAULT}parallelism: 0\npodInitialBackoffSeconds: -1\n"
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {x: 1}}]}]\n"
        )
    assert len(str(caught.value).splitlines()) == 3


ACCEPTED = [
    "profiles: null",
    "leaderElection: {leaderElect: false, leaseDuration: 1s}",
    "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {score: {disabled: [{name: '*'}]}}}]",
    "profiles: [{pluginConfig: [{name: SomebodyElses, args: {anything: [1]}}]}]",
    "profiles: [{pluginConfig: [{name: NodeAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}}]}]",
    "profiles: [{plugins: {preEnqueue: {disabled: [{name: DefaultPreemption}]}, placementScore: {}}}]",
    "extenders: [{urlPrefix: http://x, filterVerb: f, httpTimeout: 100ms, tlsConfig: {insecure: true}}]",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_kube_scheduler_accepts_is_accepted(body: str) -> None:
    read_kube(document(f"{KUBE_DEFAULT}{body}\n"), {})


def test_a_single_profile_needs_no_name() -> None:
    profiles = policy(profile()).profiles
    assert profiles is not None
    assert list(profiles.by_name) == ["default-scheduler"]


def test_a_profile_of_its_own_percentage_wins_over_the_global_one() -> None:
    profiles = policy(
        f"{KUBE_DEFAULT}percentageOfNodesToScore: 30\n"
        "profiles: [{schedulerName: a, percentageOfNodesToScore: 60}, {schedulerName: b}]\n"
    ).profiles
    assert profiles is not None
    assert {name: each.percentage for name, each in profiles.by_name.items()} == {"a": 60, "b": 30}


def test_back_off_and_candidates_are_taken_over() -> None:
    args = "pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 5, minCandidateNodesAbsolute: 7}}]"
    profiles = policy(f"{KUBE_DEFAULT}podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 60\nprofiles: [{{{args}}}]\n").profiles
    assert profiles is not None
    assert (profiles.initial_backoff_s, profiles.max_backoff_s) == (2.0, 60.0)
    assert profiles.by_name["default-scheduler"].preemption == DefaultPreemptionArgs(
        min_candidate_nodes_percentage=5, min_candidate_nodes_absolute=7
    )


class NotOnB(Plugin):
    """For the test: a plugin of ours that refuses a node."""

    name = "not-on-b"

    def filter_node(self, task, node):  # type: ignore[no-untyped-def]
        return "b is mine" if node.name == "b" else None


def test_a_plugin_of_ours_may_be_named_in_a_profile() -> None:
    from tests.kube_scheduler.stage import cluster, run

    text = profile("{plugins: {filter: {enabled: [{name: not-on-b}]}}}")
    chosen, _ = read_kube(document(text), {"not-on-b": NotOnB})
    outcome = run(cluster(chosen, machine("b"), waiting("p")), chosen)
    assert outcome.waiting["p"].startswith("0/1 nodes are available: 1 b is mine.")


def test_a_plugin_without_its_filter_does_not_refuse() -> None:
    tainted = machine("a").taint("t")
    assert play(tainted, waiting("p")).binds == {}
    off = profile("{plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}")
    assert play(tainted, waiting("p"), conf=off).binds == {"p": "a"}
