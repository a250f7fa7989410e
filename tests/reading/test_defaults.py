"""What an argument is if the configuration says nothing of it: as Volcano has it, plugin by plugin and action by action."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.scheduler.registry import ACTIONS, PLUGINS as CATALOGUE

HUNDRED = {"cpu": 100, "memory": 100, "pods": 100}
ON = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits", "VolumeZone", "PodTopologySpread", "VolumeBinding")
ASKED = ("onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused", "jobEnqueueable")
ASKED += ("jobEnqueued", "jobReady", "allocateFunc", "deallocateFunc")
GANGS = {"maxDomains": 8, "allowWholeBundle": True, "spareVictims": True}  # the last is ours
CACHE = {"predicateErrorCacheEnable": True}
BUDGET = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 1, "maxCandidateNodesAbsolute": 100}
SPARED = BUDGET | {"spareVictims": False}  # of reclaim all four are ours, of preempt the last

PAST = {"usage.halfLife": 0, "usage.weight": 1}  # which are ours
TIES = {"tieBreak": "name", "seed": 0}  # of the packing policies, which are ours

PLUGINS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("best-fit", "dot-product", "gpu-clustering", "gpu-packing", "random-node"), TIES),
    "fgd": TIES | {"typicalPods": []},
    "binpack": {"binpack.weight": 1, "binpack.cpu": 1, "binpack.memory": 1, "binpack.resources": ""},
    "capacity": {
        "ancestorReclaimLevel": 0,
        "capacity.DynamicResourceAllocationEnable": True,
        "capacity.DRAConsumableCapacityEnable": False,
        **PAST,
    },
    "deviceshare": {
        **{f"deviceshare.{name}Enable": False for name in ("GPUSharing", "GPUNumber", "NodeLock", "VGPU")},
        "deviceshare.SchedulePolicy": "",
        "deviceshare.ScheduleWeight": 0,
        "deviceshare.GPUExclusiveRules": [],
    },
    "drf": PAST,
    "extender": {
        **{f"extender.{name}Verb": "" for name in ASKED},
        "extender.urlPrefix": "",
        "extender.httpTimeout": 1,
        "extender.ignorable": False,
        "extender.managedResources": [],
    },
    "network-topology-aware": {
        "weight": 1,
        "hypernode.binpack.cpu": 1,
        "hypernode.binpack.memory": 1,
        "hypernode.binpack.resources": "",
        "hypernode.binpack.normal-pod.enable": True,
        "hypernode.binpack.normal-pod.fading": 0.8,
        "hypernode.gradient.evict.max-hypernodes": 8,
    },
    "nodegroup": {"strict": True, "enablePreferredOrder": False},
    "nodeorder": {
        "leastrequested.weight": 1,
        "mostrequested.weight": 0,
        "nodeaffinity.weight": 2,
        "podaffinity.weight": 2,
        "balancedresource.weight": 1,
        "tainttoleration.weight": 3,
        "imagelocality.weight": 1,
        "podtopologyspread.weight": 2,
    },
    "numa-aware": {"weight": 1},
    "lost-work": {"minimumRunTime": 0, "evictionsPerHour": 0},
    "overcommit": {"overcommit-factor": 1.2},
    "predicates": {
        **{f"predicate.{name}Enable": True for name in (*ON, "DynamicResourceAllocation")},
        "predicate.CacheEnable": False,
        "volumebinding.bindTimeoutSeconds": 600,
        "volumebinding.weight": 1,
        "volumebinding.shape": [],
        "dynamicresources.filterTimeoutSeconds": 10,
    },
    "rescheduling": {
        "interval": 300,
        "metricsPeriod": 300,
        "strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": HUNDRED, "targetThresholds": HUNDRED}}],
    },
    "resource-strategy-fit": {
        "resourceStrategyFitWeight": 10,
        "resources": {name: {"type": "LeastAllocated", "weight": 1} for name in ("cpu", "memory")},
        "sra": {"enable": False, "resources": "", "weight": 10, "resourceWeight": {}},
        "proportional": {"enable": False, "resources": "", "resourceProportion": {}},
    },
    "sla": {"sla-waiting-time": 0},
    "task-topology": {"task-topology.weight": 1},
    "tdm": {"tdm.evict.period": 60, "tdm.time-zone": "UTC"},
    "usage": {
        "usage.weight": 5,
        "cpu.weight": 1,
        "memory.weight": 1,
        "thresholds": {"cpu": None, "mem": None, "CPUUsageAvg.5m": None, "MEMUsageAvg.5m": None},  # for both: 80
        "estimator": {
            "request_ratio": 0.7,
            "burst_ratio": 0.0,
            "risk_threshold": 0.6,
            "risk_factor": 1.2,
            "be_cpu": "250m",
            "be_mem": "200Mi",
        },
    },
}
ACTION_ROWS: dict[str, dict[str, Any]] = {
    "in-order": {"backfill": "none", "defaultEstimate": 0, "estimates": "told"},
    "consolidate": {
        "movesPerCycle": 64,
        "movesPerHour": 0,
        "movesPerOwner": 0,
        "minimumRunTime": 300,
        "maximumLostWork": 3600,
        "quietPeriod": 1800,
        "protectedQueues": [],
        "protectedNamespaces": [],
        "protectedAnnotation": "pumice.io/stays",
        "minimumPriority": None,
        "minimumWait": 0,
        "holdFor": 600,
        "retryAfter": 10,
    },
    **dict.fromkeys(("allocate", "backfill"), CACHE),
    "reclaim": CACHE | SPARED,
    **dict.fromkeys(("gangpreempt", "gangreclaim"), GANGS),
    "preempt": CACHE | SPARED | {"enableTopologyAwarePreemption": False, "topologyAwarePreemptWorkerNum": 16},
}


def defaults(kind: Any) -> dict[str, Any]:
    """Arguments by the names that users write; those whose names end in a name of the user's have none."""
    found: dict[str, Any] = msgspec.to_builtins(kind.Args(), enc_hook=float)
    if getattr(kind, "wildcard_args", ()):
        assert found.pop("named") == {}
    return found


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_the_defaults_of_a_plugin(name: str) -> None:
    assert defaults(CATALOGUE[name]) == PLUGINS.get(name, {})


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_the_defaults_of_an_action(name: str) -> None:
    assert defaults(ACTIONS[name]) == ACTION_ROWS.get(name, {})


def test_nothing_is_said_of_what_there_is_not() -> None:
    assert (set(PLUGINS) - set(CATALOGUE), set(ACTION_ROWS) - set(ACTIONS)) == (set(), set())
