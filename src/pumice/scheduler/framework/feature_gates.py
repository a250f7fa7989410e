"""The release of kube-scheduler whose rules hold, and its feature gates.

`GATES` has the gates that kube-scheduler itself declares, WorkloadWithJob of the Job controller and EvictionRequestAPI of the API server,
with their state in each release. A gate is refused as upstream refuses it: if no release here knows it, if it is locked, or if a gate that
it needs is off. An alpha gate whose rules are not built cannot be switched on. Where outcomes differ between releases, rules ask the
`Release`.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from pumice.api import did_you_mean

MINORS = (36, 37)
OFF, ON, LOCKED = "off", "on", "locked"  #: a gate's state by default; LOCKED: it is on, and stays so
NONE = ""

#: by gate: its state in 1.36 and in 1.37, NONE where it is not known
GATES: dict[str, tuple[str, str]] = {
    "CompositePodGroup": (NONE, OFF),
    "DRAAdminAccess": (LOCKED, LOCKED),
    "DRAConsumableCapacity": (ON, ON),
    "DRADerivedAttributes": (NONE, OFF),
    "DRADeviceBindingConditions": (ON, ON),
    "DRADeviceCompatibilityGroups": (NONE, OFF),
    "DRADeviceTaintRules": (OFF, ON),
    "DRADeviceTaints": (ON, ON),
    "DRAExtendedResource": (ON, LOCKED),
    "DRAFractionalCapacityRange": (NONE, OFF),  # on where a cluster need not be compatible with 1.36, which is not the default
    "DRAListTypeAttributes": (OFF, OFF),
    "DRANodeAllocatableResources": (OFF, OFF),
    "DRAOptionalNodeOperations": (NONE, OFF),
    "DRAPartitionableDevices": (ON, ON),
    "DRAPartitionableDevicesType": (NONE, OFF),
    "DRAPrioritizedList": (ON, LOCKED),
    "DRAResourceClaimDeviceStatus": (ON, LOCKED),
    "DRASchedulerFilterTimeout": (ON, ON),
    "DRAWorkloadResourceClaims": (OFF, OFF),
    "DynamicResourceAllocation": (LOCKED, LOCKED),
    "EvictionRequestAPI": (NONE, OFF),
    "GangScheduling": (OFF, NONE),
    "GenericWorkload": (OFF, OFF),
    "InPlacePodLevelResourcesVerticalScaling": (ON, ON),
    "InPlacePodVerticalScaling": (LOCKED, LOCKED),
    "InPlacePodVerticalScalingSchedulerPreemption": (NONE, OFF),
    "InterPodAffinityHostnameFastPath": (NONE, OFF),
    "MatchLabelKeysInPodTopologySpread": (ON, ON),
    "NodeDeclaredFeatures": (ON, LOCKED),
    "NodeInclusionPolicyInPodTopologySpread": (LOCKED, LOCKED),
    "NominatedNodeNameForExpectation": (ON, ON),
    "OpportunisticBatching": (ON, ON),
    "PodGroupPreemptionPolicy": (NONE, OFF),
    "PodLevelResources": (ON, ON),
    "SchedulerAsyncAPICalls": (OFF, OFF),
    "SchedulerAsyncPreemption": (ON, ON),
    "SchedulerPopFromBackoffQ": (ON, ON),
    "SchedulerPreQueueingHints": (NONE, OFF),
    "SchedulerQueueingHints": (LOCKED, NONE),
    "SidecarContainers": (LOCKED, NONE),
    "StorageCapacityScoring": (OFF, ON),
    "TaintTolerationComparisonOperators": (OFF, OFF),
    "TopologyAwareWorkloadScheduling": (OFF, OFF),
    "VolumeAttributesClass": (LOCKED, LOCKED),
    "VolumeLimitScaling": (OFF, ON),
    "WorkloadAwarePreemption": (OFF, NONE),
    "WorkloadWithJob": (OFF, OFF),
}
#: alpha gates without their rules, by the releases in which they have none
NOT_PROVIDED: dict[str, tuple[int, ...]] = {"DRANodeAllocatableResources": (36,), "GenericWorkload": (36,)}
#: the alpha gates of which each lets upstream's newest allocator of devices choose
ALLOCATOR = frozenset(["DRADerivedAttributes", "DRADeviceCompatibilityGroups", "DRAListTypeAttributes", "DRAOptionalNodeOperations"])
#: all gates that device allocation asks about
DEVICE_GATES = ALLOCATOR | {"DRANodeAllocatableResources", "DRAFractionalCapacityRange"}
#: the gates that a gate needs
NEEDS: dict[str, tuple[str, ...]] = {
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAOptionalNodeOperations": ("NodeDeclaredFeatures",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "GangScheduling": ("GenericWorkload",),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GenericWorkload",),
    "WorkloadWithJob": ("GenericWorkload",),
}
TRUE, FALSE = frozenset(["1", "t", "T", "true", "TRUE", "True"]), frozenset(["0", "f", "F", "false", "FALSE", "False"])


class Release(Struct, frozen=True):
    minor: int
    gates: frozenset[str]

    def has(self, gate: str) -> bool:
        return gate in self.gates

    @property
    def text(self) -> str:
        """The release, and the gates that are not as they are by default. `read_release` reads it."""
        usual = release(self.minor).gates
        changed = sorted({*self.gates} ^ {*usual})
        return f"1.{self.minor} {','.join(f'{name}={str(name in self.gates).lower()}' for name in changed)}".strip()

    @property
    def places_groups(self) -> bool:
        """Whether the pods of Kubernetes' own PodGroups are placed together."""
        return self.has("GenericWorkload")


def release(minor: int, gates: Mapping[str, bool] | None = None) -> Release:
    """The release with its default gates, changed by `gates`. Raises ValueError with the words of upstream."""
    known = {name: states[MINORS.index(minor)] for name, states in GATES.items() if states[MINORS.index(minor)]}
    enabled = {name: state != OFF for name, state in known.items()}
    for name, on in (gates or {}).items():
        if name not in known:
            raise ValueError(f"unrecognized feature gate: {name}{did_you_mean(name, known)}")
        if known[name] == LOCKED and not on:
            raise ValueError(f"cannot set feature gate {name} to false, feature is locked to true")
        if on and minor in NOT_PROVIDED.get(name, ()):
            raise ValueError(f"feature gate {name} is alpha in Kubernetes 1.{minor}, and Pumice does not provide it there")
        enabled[name] = on
    faults = list(_lacking(enabled))
    if faults:
        raise ValueError("; ".join(faults))
    return Release(minor, frozenset(name for name, on in enabled.items() if on))


def _lacking(enabled: Mapping[str, bool]) -> Iterator[str]:
    for name, needed in NEEDS.items():
        missing = [each for each in needed if not enabled.get(each)]
        if enabled.get(name) and missing:
            yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"


DEFAULT = release(MINORS[0])


def read_gates(text: str) -> dict[str, bool]:
    """The gates of a text such as `A=true,B=false`. Raises ValueError."""
    found: dict[str, bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for {name}")
        if value not in TRUE | FALSE:
            raise ValueError(f"invalid value of {name}={value}: write true or false")
        found[name] = value in TRUE
    return found


def read_release(text: str) -> Release:
    """The release of a `Release.text`. Raises ValueError."""
    version, _, gates = text.partition(" ")
    return release(minor_of(version), read_gates(gates))


def minor_of(text: str) -> int:
    """The minor version whose rules hold for a version such as 1.37, v1.37.2 or 1.38. Raises ValueError."""
    parts = text.strip().removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not (digits := parts[1].rstrip("+")).isdecimal():
        raise ValueError(f'"{text}" is no version; write one such as 1.37')
    return min(max(int(digits), MINORS[0]), MINORS[-1])
