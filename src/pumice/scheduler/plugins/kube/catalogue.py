"""The plugins of kube-scheduler, in the order in which it asks them by default, and the extension points at which each runs."""

from pumice.scheduler.framework.feature_gates import Release
from pumice.scheduler.framework.profiles import DefaultPreemptionArgs
from pumice.scheduler.plugins.kube import (
    KubePlugin,
    dynamic_resources,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)

FEATURES = node_declared_features.PLUGIN.name  #: its gate has the same name
GANG, TOPOLOGY_PLACEMENTS, PODS_COUNT = "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"

#: the plugins that filter or score
PLUGINS: tuple[KubePlugin, ...] = (
    node_unschedulable.PLUGIN,
    node_name.PLUGIN,
    taint_toleration.PLUGIN,
    node_affinity.PLUGIN,
    node_ports.PLUGIN,
    node_resources_fit.PLUGIN,
    volume_restrictions.PLUGIN,
    node_volume_limits.PLUGIN,
    volume_binding.PLUGIN,
    volume_zone.PLUGIN,
    pod_topology_spread.PLUGIN,
    inter_pod_affinity.PLUGIN,
    dynamic_resources.PLUGIN,
    node_resources_balanced_allocation.PLUGIN,
    image_locality.PLUGIN,
    node_declared_features.PLUGIN,
)
#: the plugins that do neither here: they are part of the scheduling loop, or belong to feature gates that are off
_OTHERS = (
    KubePlugin("SchedulingGates", "preEnqueue"),
    KubePlugin("PrioritySort", "queueSort"),
    KubePlugin("DefaultPreemption", "preEnqueue postFilter podGroupPostFilter", args=DefaultPreemptionArgs),
    KubePlugin("DefaultBinder", "bind"),
    KubePlugin(GANG, "preEnqueue permit"),
    KubePlugin(TOPOLOGY_PLACEMENTS, "placementGenerate"),
    KubePlugin(PODS_COUNT, "placementScore", weight=1),
)
ALL = {each.name: each for each in (*PLUGINS, *_OTHERS)}
ARGS = {each.name: each.args for each in ALL.values() if each.args is not None}
_ORDER = (
    *("SchedulingGates", "PrioritySort", *(each.name for each in PLUGINS[:-3])),
    *("DefaultPreemption", *(each.name for each in PLUGINS[-3:-1]), "DefaultBinder", "NodeDeclaredFeatures"),
)


def defaults(release: Release) -> dict[str, int]:
    """The plugins that a release runs by default, in order, with their weights."""
    names = list(_ORDER)
    if release.minor >= 37:
        names.remove(node_name.PLUGIN.name)
        names.insert(names.index(node_unschedulable.PLUGIN.name), node_name.PLUGIN.name)
    if release.places_groups:
        names.append(GANG)
        names += [TOPOLOGY_PLACEMENTS, PODS_COUNT] if release.has("TopologyAwareWorkloadScheduling") else []
    return {name: ALL[name].weight for name in names}


POINTS = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind"),
    *("postBind", "placementGenerate", "placementScore", "podGroupPostFilter"),
)
#: from an extension point, as the configuration writes it, to the names of the plugins that implement it
EXTENDS = {point: frozenset(each.name for each in ALL.values() if point in each.points.split()) for point in POINTS}
KNOWN = frozenset(name for names in EXTENDS.values() for name in names)
