"""Older forms of kube-scheduler's configuration, converted to v1: v1alpha1, v1beta2, v1beta3, and the Policy of releases before 1.23.

A setting that has no counterpart any more is dropped with a note, so that users do not believe that it has an effect.
"""

from typing import Any

from pumice.api.yaml import Document
from pumice.scheduler.plugins.kube.catalogue import EXTENDS

V1 = "kubescheduler.config.k8s.io/v1"
OLD = {f"kubescheduler.config.k8s.io/{version}": version for version in ("v1alpha1", "v1beta2", "v1beta3")}
GONE = ("healthzBindAddress", "metricsBindAddress", "algorithmSource", "disablePreemption", "hardPodAffinitySymmetricWeight")
#: default weights that v1beta2 had, where v1 has others
V1BETA2_WEIGHTS = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}

PREDICATES: dict[str, tuple[str, ...]] = {
    "GeneralPredicates": ("NodeName", "NodePorts", "NodeAffinity", "NodeResourcesFit"),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "HostName": ("NodeName",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
}
MANDATORY = ("NodeUnschedulable", "TaintToleration")

PRIORITIES = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "RequestedToCapacityRatioPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "InterPodAffinityPriority": "InterPodAffinity",
    "ImageLocalityPriority": "ImageLocality",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "SelectorSpreadPriority": "PodTopologySpread",
}


def converted(document: Document) -> tuple[dict[str, Any], list[str]]:
    """The document's value in the form of v1, and notes. Raises InputError for a version that does not exist."""
    value = document.value
    version = value.get("apiVersion")
    if value.get("kind") == "Policy":
        return _Policy(document).convert()
    if version == V1:
        return value, []
    if version not in OLD:
        raise document.error(
            f'"{version}" is no version of KubeSchedulerConfiguration; write "{V1}"', ("apiVersion",), "KubeSchedulerConfiguration"
        )
    return _from_beta(document, OLD[version])


def _note(document: Document, path: tuple[str | int, ...], text: str) -> str:
    return f"{document.where}:{document.line(path)}: note: {text}"


def _from_beta(document: Document, version: str) -> tuple[dict[str, Any], list[str]]:
    value = {key: item for key, item in document.value.items() if key not in GONE} | {"apiVersion": V1}
    notes = [_note(document, ("apiVersion",), f"{version} is read as v1; write apiVersion: {V1}")]
    notes += [_note(document, (key,), f"{key} has no effect any more and is left out") for key in GONE[:3] if key in document.value]
    profiles = [dict(profile) for profile in value.get("profiles") or [{}] if isinstance(profile, dict)]
    for profile in profiles:
        if version == "v1beta2":
            _keep_weights(profile)
        if document.value.get("disablePreemption"):
            _extend(profile, "postFilter", "disabled", [{"name": "DefaultPreemption"}])
        weight = document.value.get("hardPodAffinitySymmetricWeight")
        if weight is not None:
            profile["pluginConfig"] = [
                *(profile.get("pluginConfig") or ()),
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}},
            ]
    return value | {"profiles": profiles}, notes


def _keep_weights(profile: dict[str, Any]) -> None:
    """Write v1beta2's default weights into the profile, for plugins that its multiPoint does not name."""
    multi = (profile.get("plugins") or {}).get("multiPoint") or {}
    named = {entry.get("name") for part in ("enabled", "disabled") for entry in multi.get(part) or () if isinstance(entry, dict)}
    if "*" not in named:
        kept = [{"name": name, "weight": weight} for name, weight in V1BETA2_WEIGHTS.items() if name not in named]
        _extend(profile, "multiPoint", "enabled", kept)


def _extend(profile: dict[str, Any], point: str, part: str, entries: list[dict[str, Any]]) -> None:
    plugins = dict(profile.get("plugins") or {})
    chosen = dict(plugins.get(point) or {})
    chosen[part] = [*(chosen.get(part) or ()), *entries]
    profile["plugins"] = plugins | {point: chosen}


class _Policy:
    """Converts a `kind: Policy` with predicates and priorities to a configuration with one profile."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.value = document.value
        self.notes = [_note(document, (), "a Policy is read as a KubeSchedulerConfiguration with one profile")]
        self.config: dict[str, dict[str, Any]] = {}

    def convert(self) -> tuple[dict[str, Any], list[str]]:
        plugins: dict[str, Any] = {}
        if self.value.get("predicates") is not None:
            filters = dict.fromkeys((*MANDATORY, *(name for entry in self._entries("predicates") for name in entry)))
            for point in ("preFilter", "filter"):
                enabled = [{"name": name} for name in filters if point == "filter" or name in EXTENDS[point]]
                plugins[point] = {"disabled": [{"name": "*"}], "enabled": enabled}
        if self.value.get("priorities") is not None:
            weights = {name: weight for entry in self._entries("priorities") for name, weight in entry.items()}
            plugins["score"] = {"disabled": [{"name": "*"}], "enabled": [{"name": n, "weight": w} for n, w in weights.items()]}
        if (weight := self.value.get("hardPodAffinitySymmetricWeight")) is not None:
            self.config["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        profile = {
            "schedulerName": "default-scheduler",
            "plugins": plugins,
            "pluginConfig": [{"name": name, "args": args} for name, args in self.config.items()],
        }
        extenders = [self._extender(extender) for extender in self.value.get("extenders") or ()]
        return {"apiVersion": V1, "kind": "KubeSchedulerConfiguration", "profiles": [profile], "extenders": extenders}, self.notes

    def _entries(self, part: str) -> list[dict[str, int]]:
        """For each entry of predicates or priorities, the plugins that it becomes, with weights."""
        found = []
        for index, entry in enumerate(self.value[part]):
            path: tuple[str | int, ...] = (part, index)
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise self.document.error("an entry is a mapping with a `name`", path, "Policy")
            plugins = self._predicate(entry) if part == "predicates" else self._priority(entry)
            if not plugins:
                self.notes.append(_note(self.document, path, f"{entry['name']} has no counterpart any more and is left out"))
            found.append(plugins)
        return found

    def _predicate(self, entry: dict[str, Any]) -> dict[str, int]:
        return dict.fromkeys(PREDICATES.get(entry["name"], ()), 0)

    def _priority(self, entry: dict[str, Any]) -> dict[str, int]:
        ratio = (entry.get("argument") or {}).get("requestedToCapacityRatioArguments")
        plugin = "NodeResourcesFit" if ratio else PRIORITIES.get(entry["name"])
        if plugin is None:
            return {}
        if plugin == "NodeResourcesFit":
            strategy = self._strategy(entry["name"], ratio)
            if "NodeResourcesFit" in self.config:
                before = self.config["NodeResourcesFit"]["scoringStrategy"]["type"]
                self.notes.append(
                    _note(self.document, ("priorities",), f"{strategy['type']} takes the place of {before}: a profile has one strategy")
                )
            self.config["NodeResourcesFit"] = {"scoringStrategy": strategy}
        return {plugin: entry.get("weight") or 1}

    def _strategy(self, name: str, ratio: dict[str, Any] | None) -> dict[str, Any]:
        if not ratio:
            return {"type": "MostAllocated" if name == "MostRequestedPriority" else "LeastAllocated"}
        strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": ratio.get("shape")}}
        return strategy | ({"resources": ratio["resources"]} if ratio.get("resources") else {})

    def _extender(self, extender: dict[str, Any]) -> dict[str, Any]:
        renamed = {{"enableHttps": "enableHTTPS"}.get(key, key): item for key, item in extender.items()}
        timeout = renamed.get("httpTimeout")
        return renamed | ({"httpTimeout": f"{timeout}ns"} if isinstance(timeout, int) else {})
