"""Random states for kube-scheduler's rules: a profile, nodes, what runs on them, budgets, volumes, devices, and pods that come one by one.

Each state draws some of what profiles and pods may say, so that rules meet each other. Objects are valid: a real API server takes them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
GPU, CARD, HUGE, DISK = "example.com/gpu", "example.com/card", "hugepages-2Mi", "ephemeral-storage"
NAMESPACES = {
    "default": {"resource.kubernetes.io/admin-access": "true"},
    "blue": {"team": "blue"},
    "green": {"team": "green", "env": "test"},
}
IMAGES = {"img0": 20 << 20, "img1:1": 300 << 20, "img2:1": 700 << 20, "reg.example.com:5000/img3": 1500 << 20}
STARTS = [f"2026-01-01T00:0{minute}:00Z" for minute in range(4)]
DRIVER, OTHER_DRIVER, DEVICES = "csi.example.com", "other.example.com", "devices.example.com"
THEMES = ("amounts", "labels", "taints", "spread", "affinity", "ports", "images", "volumes", "preemption", "devices")
SCORERS = {
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 2,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "TaintToleration": 3,
    "VolumeBinding": 1,
    "DynamicResources": 2,
}
FILTERS = ("NodePorts", "NodeUnschedulable", "NodeAffinity", "TaintToleration", "InterPodAffinity", "PodTopologySpread", "NodeResourcesFit")


class KubeState:
    """One state; the same for the same seed. `newer`: for 1.37, which has mended what 1.36.1 does wrong with parts of devices."""

    def __init__(self, seed: int, *, newer: bool = False) -> None:
        self.newer = newer
        self._draw = random.Random(seed)
        self._pick = self._draw.choice
        self.of = f"s{seed}"  #: the profile, and before all names: watches of different kinds may show the state before
        self._themes = set(self._draw.sample(THEMES, self._draw.randint(1, 4))) | ({"preemption"} if self._often(0.3) else set())
        if packed := self._often(0.15):  # little but priorities and amounts decides
            self._themes = {"preemption", *self._some(["ports", "spread", "affinity", "amounts"], 0, 1)}
        self._roomy = not packed and self._often(0.5)  #: many nodes fit, so that scores decide
        self.profile = self._profile()
        self.nodes = [
            self._node(f"{self.of}-n{number}") for number in range(self._draw.randint(3, 8) if self._roomy else self._draw.randint(1, 6))
        ]
        self._names = [node["metadata"]["name"] for node in self.nodes]
        self._ports: dict[str, set[tuple[str, int]]] = {}  #: by node: those that are taken
        self._for_one: set[str] = set()  #: claims that one pod may use
        self._in_use: set[str] = set()  #: those of them that a running pod uses
        self._volumes: list[str] = []  #: claims that pods may name, each of the namespace default
        self.objects = [*self._workloads(), *self._storage(), *self._devices()]
        most = (6 if packed else 3) * len(self.nodes)
        self.running = [self._running(f"{self.of}-r{number}") for number in range(self._draw.randint(most // 2 if packed else 0, most))]
        self.budgets = (
            [self._budget(f"{self.of}-b{number}") for number in range(self._draw.choice([0, 0, 1, 2, 3]))]
            if self._has("preemption")
            else []
        )
        self.pending = [self._pending(f"{self.of}-p{number}") for number in range(self._draw.randint(2, 5))]

    def _often(self, share: float) -> bool:
        return self._draw.random() < share

    def _has(self, theme: str, share: float = 1.0) -> bool:
        """Whether something of a theme is to be, with this chance where the state has the theme, else seldom."""
        return self._often(share if theme in self._themes else 0.04 * share)

    def _some(self, items: Any, least: int = 0, most: int = 2) -> list[Any]:
        items = list(items)
        return self._draw.sample(items, min(len(items), self._draw.randint(least, most)))

    # -- the profile

    def _profile(self) -> Body:
        profile: Body = {"schedulerName": self.of}
        plugins: Body = {}
        if self._often(0.4):
            changed = self._some(SCORERS, 1, 4)
            enabled = [{"name": name, "weight": self._pick([1, 2, 7, 50])} for name in changed if self._often(0.7)]
            plugins["score"] = {"disabled": [{"name": name} for name in changed], "enabled": enabled}
        if self._often(0.15):
            plugins["filter"] = {
                "disabled": [{"name": name} for name in self._some(FILTERS[: -1 if "devices" in self._themes else None], 1, 2)]
            }
        if self._often(0.1):  # what is on at one of its points only may fail upstream
            chosen = self._some([name for name in FILTERS if name not in SCORERS], 1, 2)
            plugins["multiPoint"] = {"disabled": [{"name": name} for name in chosen]}
        if self._often(0.08):
            plugins["postFilter"] = {"disabled": [{"name": self._pick(["*", "DefaultPreemption", "DynamicResources"])}]}
        if plugins:
            profile["plugins"] = plugins
        if config := [{"name": name, "args": args} for name, args in self._arguments() if args]:
            profile["pluginConfig"] = config
        if self._often(0.1):
            profile["percentageOfNodesToScore"] = self._pick([0, 10, 100])
        return profile

    def _arguments(self) -> Iterator[tuple[str, Body]]:
        if self._often(0.5):
            yield "NodeResourcesFit", self._fit_arguments()
        if self._often(0.3):
            names = self._some(["cpu", "memory", GPU, DISK, HUGE], 1, 4)
            yield "NodeResourcesBalancedAllocation", {"resources": [{"name": name, "weight": 1} for name in names]}
        if self._often(0.3):
            yield (
                "InterPodAffinity",
                {
                    "hardPodAffinityWeight": self._pick([0, 1, 20, 100]),
                    "ignorePreferredTermsOfExistingPods": self._often(0.5),
                },
            )
        if self._often(0.25):
            yield "NodeAffinity", {"addedAffinity": self._node_affinity(fields=False)}
        if self._often(0.4):
            yield "PodTopologySpread", self._spread_arguments()
        if self._often(0.2):
            yield (
                "DefaultPreemption",
                {"minCandidateNodesPercentage": self._pick([10, 100]), "minCandidateNodesAbsolute": self._pick([1, 100])},
            )

    def _fit_arguments(self) -> Body:
        kind = self._pick(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
        names = self._some(["cpu", "memory", GPU, CARD, DISK, HUGE], 1, 4)
        strategy: Body = {"type": kind, "resources": [{"name": name, "weight": self._pick([1, 2, 3, 100])} for name in names]}
        if kind == "RequestedToCapacityRatio":
            points = sorted(self._draw.sample(range(101), self._draw.randint(1, 4)))
            strategy["requestedToCapacityRatio"] = {"shape": [{"utilization": each, "score": self._draw.randint(0, 10)} for each in points]}
        arguments: Body = {"scoringStrategy": strategy}
        if self._often(0.2) and "devices" not in self._themes:
            arguments["ignoredResources"] = [self._pick([GPU, CARD])]
        if self._often(0.1) and "devices" not in self._themes:
            arguments["ignoredResourceGroups"] = ["example.com"]
        return arguments

    def _spread_arguments(self) -> Body:
        if self._often(0.3):
            return {"defaultingType": "System"}
        keys = self._some([(key, action) for key in (HOST, ZONE) for action in ("DoNotSchedule", "ScheduleAnyway")], 0, 3)
        given = [{"maxSkew": self._pick([1, 1, 2, 5]), "topologyKey": key, "whenUnsatisfiable": action} for key, action in keys]
        return {"defaultingType": "List", "defaultConstraints": given}

    # -- nodes

    def _node(self, name: str) -> Body:
        labels = {HOST: name} if self._often(0.95) else {}
        if self._often(0.85):
            labels |= {ZONE: self._pick(["z1", "z2", "z3"])}
        if self._often(0.6):
            labels |= {REGION: self._pick(["r1", "r2"])}
        if self._often(0.15):
            labels |= {OLD_ZONE: self._pick(["z1", "z2"]), OLD_REGION: "r1"}
        if self._often(0.7):
            labels |= {"disk": self._pick(["ssd", "hdd"]), "gen": self._pick(["1", "2", "3", "x", "010"])}
        room = {
            "cpu": self._pick(["1", "2", "3", "2500m"] if "preemption" in self._themes else ["1", "2", "3", "4", "2500m", "8"]),
            "memory": self._pick(["1Gi", "2Gi", "4Gi", "3000M", "8Gi"]),
            "pods": self._pick(["110", "110", "110", "3", "5"]),
        }
        if self._often(0.7):
            room[DISK] = self._pick(["10Gi", "50Gi", "5G"])
        if self._often(0.4):
            room[GPU] = self._pick(["0", "1", "4", "8"])
        if self._often(0.3):
            room[CARD] = self._pick(["2", "8"])
        if self._often(0.3):
            room[HUGE] = self._pick(["64Mi", "512Mi"])
        node: Body = {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": room, "capacity": room}}
        if self._has("taints", 0.7):
            node["spec"]["taints"] = self._taints()
        if self._has("taints", 0.08):
            node["spec"]["unschedulable"] = True
        if self._has("images", 0.9):
            node["status"]["images"] = [
                {"names": [image, f"{image}@sha256:{'0' * 64}"], "sizeBytes": IMAGES[image]} for image in self._some(IMAGES, 0, 4)
            ]
        return node

    def _taints(self) -> list[Body]:
        kinds = self._some(
            [(key, effect) for key in "ab" for effect in ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")], 1, 3
        )
        return [
            {"key": key, "effect": effect} | ({"value": self._pick(["1", "5", "x"])} if self._often(0.7) else {})
            for key, effect in dict.fromkeys(kinds)
        ]

    # -- pods

    def _running(self, name: str) -> Body:
        pod = self._pod(name)
        node = pod["spec"]["nodeName"] = self._pick(self._names)
        _without(pod["spec"], self._ports.setdefault(node, set()))
        pod["spec"]["schedulerName"] = self._pick([self.of, "another"])
        self._leave_to_one(pod["spec"])
        phase = self._pick(["Running"] * 8 + ["Pending", "Succeeded", "Failed"])
        status: Body = {"phase": phase} | ({"startTime": self._pick(STARTS)} if self._often(0.85) else {})
        if self._often(0.12):
            pod["terminates"] = True
            if self._often(0.5):
                by = self._pick(["PreemptionByScheduler", "EvictionByEvictionAPI"])
                status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": by, "message": "m"}]
        if self._has("amounts", 0.25) and not self.newer:  # 1.37 adds up the containers before it compares: docs/differences.md
            self._resize(pod, status)
        return pod | {"status": status}

    def _leave_to_one(self, spec: Body) -> None:
        volumes = [each for each in spec.pop("volumes", ()) if each.get("persistentVolumeClaim", {}).get("claimName") not in self._in_use]
        self._in_use |= {each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes} & self._for_one
        if volumes:
            spec["volumes"] = volumes

    def _resize(self, pod: Body, status: Body) -> None:
        """What kubelets say of amounts that are given and used, and of a resize that waits."""
        status["containerStatuses"] = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "allocatedResources": {"cpu": self._pick(["100m", "2"]), "memory": self._pick(["64Mi", "1Gi"])},
                "resources": {"requests": {"cpu": self._pick(["100m", "3"]), "memory": self._pick(["64Mi", "1Gi"])}},
            }
            for each in pod["spec"]["containers"]
        ]
        if "resources" in pod["spec"] and self._often(0.7):
            status["allocatedResources"] = {"cpu": self._pick(["100m", "2"]), "memory": self._pick(["64Mi", "3Gi"])}
            status["resources"] = {"requests": {"cpu": self._pick(["100m", "3"]), "memory": self._pick(["64Mi", "3Gi"])}}
        if self._often(0.5):
            reason = self._pick(["Infeasible", "Deferred"])
            status.setdefault("conditions", []).append({"type": "PodResizePending", "status": "True", "reason": reason, "message": "m"})

    def _pending(self, name: str) -> Body:
        pod = self._pod(name)
        pod["spec"]["schedulerName"] = self.of
        _without(pod["spec"], set())
        if "preemption" in self._themes:
            pod["spec"]["priority"] = self._pick([0, 10, 100, 1000, 1000])
        if self._has("preemption", 0.1):
            pod["spec"]["preemptionPolicy"] = "Never"
        if self._often(0.03):
            pod["spec"]["schedulingGates"] = [{"name": "example.com/g"}]
        return pod

    def _pod(self, name: str) -> Body:
        labels = {
            key: value
            for key, value in (("app", self._pick("abc")), ("tier", self._pick("xy")), ("rev", self._pick("12")))
            if self._often(0.8)
        }
        metadata: Body = {"name": name, "namespace": self._pick(["default", "default", "default", "blue", "green"]), "labels": labels}
        if self._often(0.25):
            metadata["ownerReferences"] = [self._owner()]
        spec: Body = {"containers": [self._container(f"c{number}") for number in range(self._pick([1, 1, 1, 2, 3]))]}
        spec["priority"] = self._pick((-10, 0, 0, 10, 10, 100) if self._has("preemption") else (0, 0, 0, 100))
        spec["terminationGracePeriodSeconds"] = self._pick([0, 0, 30])
        if self._has("amounts", 0.3):
            spec["initContainers"] = [self._init(f"i{number}") for number in range(self._draw.randint(1, 3))]
        if self._has("amounts", 0.15):
            spec["overhead"] = {"cpu": self._pick(["100m", "500m"]), "memory": "128Mi"}
        if self._has("amounts", 0.2):
            whole = {"cpu": self._pick(["1", "2"]), "memory": self._pick(["512Mi", "1Gi", "2Gi"])}
            chosen = dict(self._some(whole.items(), 1, 2))
            self._enlarge(spec, chosen)
        if self._has("labels", 0.4):
            spec["nodeSelector"] = {self._pick(["disk", "disk", ZONE]): self._pick(["ssd", "hdd", "z1"])}
        affinity: Body = {}
        if self._has("labels", 0.6):
            affinity["nodeAffinity"] = self._node_affinity(fields=True)
        if self._has("affinity", 0.5):
            affinity["podAffinity"] = self._pod_affinity()
        if self._has("affinity", 0.5):
            affinity["podAntiAffinity"] = self._pod_affinity()
        if affinity:
            spec["affinity"] = affinity
        if self._has("taints", 0.7):
            spec["tolerations"] = [self._toleration() for _ in range(self._draw.randint(1, 3))]
        if self._has("spread", 0.7):
            spec["topologySpreadConstraints"] = self._constraints()
        if self._has("ports", 0.15):
            spec["hostNetwork"] = True
        if metadata["namespace"] == "default":
            self._use_volumes(spec)
            self._use_devices(spec)
        return {"metadata": metadata, "spec": spec}

    def _enlarge(self, spec: Body, whole: Body) -> None:
        """Resources of the pod as a whole, at least what its containers request."""
        for each in (*spec["containers"], *spec.get("initContainers", ())):
            for part in each.get("resources", {}).values():
                for name in ("cpu", "memory"):
                    if name in part:
                        part[name] = {"cpu": "100m", "memory": "100Mi"}[name]
        spec["resources"] = self._pick([{"requests": whole}, {"requests": whole, "limits": whole}, {"limits": whole}])

    def _container(self, name: str) -> Body:
        container: Body = {"name": name, "image": self._pick(list(IMAGES)) if self._has("images", 0.9) else "x"}
        requests: Body = {}
        if self._often(0.8):
            requests["cpu"] = self._pick(["0", "50m", "100m", "300m", *([] if self._roomy else ["500m", "1", "1500m"])])
        if self._often(0.7):
            requests["memory"] = self._pick(["0", "64Mi", "100M", "200Mi", *([] if self._roomy else ["500M", "1Gi", "1500Mi"])])
        if self._has("amounts", 0.3):
            requests[DISK] = self._pick(["1Gi", "8Gi"])
        exact: Body = {}
        if self._has("amounts", 0.3):
            exact[GPU] = self._pick(["0", "1", "2"])
        if self._has("amounts", 0.15):
            exact[CARD] = self._pick(["1", "3"])
        if self._has("amounts", 0.1) and {"cpu", "memory"} & {*requests}:
            exact[HUGE] = self._pick(["32Mi", "64Mi"])
        form = self._pick(["requests", "requests", "both", "limits"])
        resources: Body = {"limits": requests | exact} if form == "limits" else {"requests": requests | exact, "limits": exact}
        if form == "both":
            resources["limits"] = requests | exact
        container["resources"] = resources
        if self._has("ports", 0.6):
            container["ports"] = [self._port(number) for number in range(self._draw.randint(1, 2))]
        return container

    def _init(self, name: str) -> Body:
        made = self._container(name)
        return made | ({"restartPolicy": "Always"} if self._often(0.5) else {})

    def _port(self, number: int) -> Body:
        port = self._pick([80, 80, 81, 443])
        made: Body = {"containerPort": port, "hostPort": port, "protocol": self._pick(["TCP", "TCP", "UDP", "SCTP"])}
        return made | ({"hostIP": self._pick(["127.0.0.1", "10.0.0.1", "0.0.0.0"])} if self._often(0.4) else {})

    # -- rules about nodes

    def _expression(self) -> Body:
        kind = self._pick(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if kind in ("Gt", "Lt"):
            return {"key": "gen", "operator": kind, "values": [self._pick(["0", "1", "2", "10"])]}
        key, values = self._pick([("disk", ["ssd", "hdd"]), (ZONE, ["z1", "z2", "z3"]), (REGION, ["r1"])])
        return {"key": key, "operator": kind} | ({"values": self._some(values, 1, 2)} if kind in ("In", "NotIn") else {})

    def _term(self, fields: bool) -> Body:
        term: Body = {}
        if self._often(0.85):
            term["matchExpressions"] = [self._expression() for _ in range(self._pick([1, 1, 2]))]
        if fields and self._often(0.2):
            term["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": self._pick(["In", "In", "NotIn"]),
                    "values": [self._pick([*self._names, f"{self.of}-none"])],
                }
            ]
        return term

    def _node_affinity(self, fields: bool) -> Body:
        affinity: Body = {}
        if self._often(0.35 if fields else 0.15):
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": [self._term(fields) for _ in range(self._pick([1, 1, 2]))]
            }
        if self._often(0.7):
            preferred = [
                {"weight": self._pick([1, 10, 33, 100]), "preference": self._term(fields)} for _ in range(self._draw.randint(1, 3))
            ]
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
        return affinity

    def _toleration(self) -> Body:
        kind = self._pick(["Equal", "Exists", "", "Gt", "Lt"])
        made: Body = {"key": self._pick(["a", "b", "node.kubernetes.io/unschedulable"])} | ({"operator": kind} if kind else {})
        if kind in ("Equal", ""):
            made["value"] = self._pick(["1", "5", "x", ""])
        elif kind in ("Gt", "Lt"):
            made["value"] = self._pick(["0", "1", "3", "-2"])
        elif self._often(0.1):
            del made["key"]
        return made | ({"effect": self._pick(["NoSchedule", "PreferNoSchedule", "NoExecute"])} if self._often(0.5) else {})

    # -- rules about other pods

    def _selector(self) -> Body | None:
        roll = self._draw.random()
        if roll < 0.06:
            return {}
        if roll < 0.1:
            return None
        if roll < 0.7:
            return {"matchLabels": {"app": self._pick("abc")}}
        kind = self._pick(["In", "NotIn", "Exists", "DoesNotExist"])
        return {
            "matchExpressions": [
                {"key": self._pick(["app", "tier"]), "operator": kind} | ({"values": self._some("abxy", 1, 2)} if "In" in kind else {})
            ]
        }

    def _constraints(self) -> list[Body]:
        found = []
        for key, action in self._some(
            [(key, action) for key in (HOST, ZONE, REGION) for action in ("DoNotSchedule", "ScheduleAnyway")], 1, 3
        ):
            made: Body = {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": self._pick([1, 1, 2, 3])}
            if (selector := self._selector()) is not None:
                made["labelSelector"] = selector
            if action == "DoNotSchedule" and self._often(0.25):
                made["minDomains"] = self._draw.randint(1, 4)
            if self._often(0.3):
                made["nodeAffinityPolicy"] = self._pick(["Honor", "Ignore"])
            if self._often(0.3):
                made["nodeTaintsPolicy"] = self._pick(["Honor", "Ignore"])
            if selector is not None and self._often(0.2):
                used = {*selector.get("matchLabels", ()), *(each["key"] for each in selector.get("matchExpressions", ()))}
                made["matchLabelKeys"] = self._some(sorted({"rev", "tier"} - used), 1, 2) or ["rev"]
            found.append(made)
        return found

    def _affinity_term(self) -> Body:
        term: Body = {"topologyKey": self._pick([HOST, ZONE, ZONE, REGION, "disk"])}
        if (selector := self._selector()) is not None:
            term["labelSelector"] = selector
            used = {*selector.get("matchLabels", ()), *(each["key"] for each in selector.get("matchExpressions", ()))}
            free = [key for key in ("rev", "tier") if key not in used]
            if free and self._often(0.25):
                term[self._pick(["matchLabelKeys", "mismatchLabelKeys"])] = [self._pick(free)]
        if self._often(0.2):
            term["namespaces"] = self._some(NAMESPACES, 1, 2)
        if self._often(0.2):
            term["namespaceSelector"] = self._pick(
                [{}, {"matchLabels": {"team": "blue"}}, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}]
            )
        return term

    def _pod_affinity(self) -> Body:
        affinity: Body = {}
        if self._often(0.3):
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [self._affinity_term() for _ in range(self._pick([1, 1, 2]))]
        if self._often(0.8):
            weighed = [
                {"weight": self._pick([1, 10, 57, 100]), "podAffinityTerm": self._affinity_term()} for _ in range(self._pick([1, 1, 2]))
            ]
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = weighed
        return affinity

    # -- what selects pods

    def _owner(self) -> Body:
        kind, version = self._pick(
            [("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicationController", "v1"), ("Job", "batch/v1")]
        )
        return {"apiVersion": version, "kind": kind, "name": f"{self.of}-w{self._pick('012')}", "uid": "u", "controller": True}

    def _workloads(self) -> Iterator[Body]:
        for number in range(self._pick([0, 0, 1, 2, 3])):
            name, kind = f"{self.of}-w{number}", self._pick(["Service", "ReplicaSet", "StatefulSet", "ReplicationController"])
            labels = {"tier": self._pick("xy")} if kind == "Service" else {"app": self._pick("abc")}
            metadata = {"name": name, "namespace": self._pick(["default", "default", "blue"])}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
            spec: Body = {"selector": {"matchLabels": labels}, "replicas": 0, "template": template}
            if kind == "Service":
                spec = {"selector": labels, "ports": [{"port": 80}]}
            elif kind == "ReplicationController":
                spec["selector"] = labels
            elif kind == "StatefulSet":
                spec["serviceName"] = "x"
            yield {"kind": kind, "metadata": metadata, "spec": spec}

    def _budget(self, name: str) -> Body:
        spec: Body = {"maxUnavailable": 1}
        if (selector := self._selector()) is not None:
            spec["selector"] = selector
        names = [f"{self.of}-r{number}" for number in range(6)]
        status: Body = {
            "disruptionsAllowed": self._pick([0, 0, 1, 2]),
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "expectedPods": 3,
            "observedGeneration": 1,
        }
        if self._often(0.25):
            status["disruptedPods"] = dict.fromkeys(self._some(names, 1, 2), STARTS[0])
        return {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": self._pick(["default", "default", "blue"])},
            "spec": spec,
            "status": status,
        }

    # -- volumes

    def _storage(self) -> Iterator[Body]:
        if not self._has("volumes"):
            return
        late, early = f"{self.of}-late", f"{self.of}-early"
        topology = [{"matchLabelExpressions": [{"key": ZONE, "values": self._some(["z1", "z2", "z3"], 1, 2)}]}]
        for name, mode, provisioner in (
            (late, "WaitForFirstConsumer", DRIVER),
            (early, "Immediate", DRIVER),
            (f"{self.of}-local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
        ):
            made: Body = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
            yield made | ({"allowedTopologies": topology} if self._often(0.4) and provisioner == DRIVER else {})
        tracked = self._often(0.4)
        yield {"kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {"storageCapacity": tracked, "attachRequired": True}}
        for number in range(self._draw.randint(0, 2) if tracked else 0):
            capacity: Body = {"capacity": self._pick(["1Gi", "5Gi", "20Gi"]), "storageClassName": late}
            capacity |= {"maximumVolumeSize": self._pick(["2Gi", "10Gi"])} if self._often(0.3) else {}
            where = {"nodeTopology": self._pick([{}, {"matchLabels": {ZONE: self._pick(["z1", "z2"])}}])}
            yield {"kind": "CSIStorageCapacity", "metadata": {"name": f"{self.of}-k{number}", "namespace": "default"}} | capacity | where
        for name in self._names:
            if self._often(0.6):
                drivers = [
                    {"name": driver, "nodeID": name, "topologyKeys": [], "allocatable": {"count": self._pick([1, 2, 5])}}
                    for driver in self._some([DRIVER, OTHER_DRIVER], 1, 2)
                ]
                yield {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}
        for number in range(self._draw.randint(1, 4)):
            yield from self._claim(number, late, early)
        for number in range(self._draw.randint(0, 2)):
            yield self._volume(f"{self.of}-v{number}", f"{self.of}-local", {})

    def _claim(self, number: int, late: str, early: str) -> Iterator[Body]:
        name = f"{self.of}-c{number}"
        self._volumes.append(name)
        kind = self._pick(["bound", "bound", "bound", "late", "late", "late", "local", "local", "early", "missing"])
        modes = [self._pick(["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"])]
        self._for_one |= {name} if modes == ["ReadWriteOncePod"] else set()
        spec: Body = {"accessModes": modes, "resources": {"requests": {"storage": self._pick(["1Gi", "3Gi", "8Gi"])}}}
        claim: Body = {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}}
        if kind == "bound":
            spec |= {"storageClassName": late, "volumeName": f"{name}-v"}
            notes = {"pv.kubernetes.io/bind-completed": "yes"}
            claim["metadata"]["annotations"] = notes
            owner = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": name, "namespace": "default"}
            yield self._volume(f"{name}-v", late, {"claimRef": owner, "accessModes": modes})
            yield claim | {"spec": spec, "status": {"phase": "Bound", "accessModes": modes}}
        elif kind != "missing":
            spec["storageClassName"] = {"late": late, "local": f"{self.of}-local", "early": early}[kind]
            yield claim | {"spec": spec}

    def _volume(self, name: str, class_name: str, more: Body) -> Body:
        labels: Body = {}
        if self._often(0.4):
            zone, region = self._pick([(ZONE, REGION), (OLD_ZONE, OLD_REGION)])
            labels = {zone: self._pick(["z1", "z2", "z1__z2"])} | ({region: "r1"} if self._often(0.4) else {})
        spec: Body = {
            "capacity": {"storage": self._pick(["1Gi", "4Gi", "10Gi"])},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
        }
        spec |= {"csi": {"driver": self._pick([DRIVER, DRIVER, OTHER_DRIVER]), "volumeHandle": self._pick([name, "shared"])}} | more
        if self._often(0.4):
            spec["nodeAffinity"] = {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [self._expression()]} for _ in range(self._pick([1, 1, 2]))]}
            }
        return {"kind": "PersistentVolume", "metadata": {"name": name, "labels": labels}, "spec": spec}

    def _use_volumes(self, spec: Body) -> None:
        volumes: list[Body] = []
        if self._has("images", 0.3):
            volumes.append({"image": {"reference": self._pick(list(IMAGES))}})
        if self._has("volumes", 0.08):  # nobody makes its claim
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            volumes.append({"ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
        if self._volumes and self._has("volumes", 0.8):
            claims = self._some(self._volumes, 1, 2)
            volumes += [{"persistentVolumeClaim": {"claimName": claim, "readOnly": self._often(0.2)}} for claim in claims]
        if self._has("volumes", 0.3):
            reads = {"readOnly": True} if self._often(0.4) else {}
            volumes.append(
                self._pick(
                    [
                        {"gcePersistentDisk": {"pdName": "g"} | reads},
                        {"awsElasticBlockStore": {"volumeID": "a"} | reads},
                        {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.com.example:q", "lun": 0} | reads},
                        {"rbd": {"monitors": self._some(["m1", "m2"], 1, 2), "image": "i", "pool": "p"} | reads},
                        {"emptyDir": {}},
                    ]
                )
            )
        if volumes:
            spec["volumes"] = [{"name": f"v{number}"} | each for number, each in enumerate(volumes)]

    # -- devices

    def _devices(self) -> Iterator[Body]:
        self._claims: list[str] = []
        self._parts = self._often(0.5)
        self._parts_alone = self._parts and not self.newer  #: 1.36.1 leaks counters of refused devices; a request for all of them ends it
        if "devices" not in self._themes:
            return
        for name in ("any", "big", "ext"):
            spec: Body = {}
            if name == "big":
                spec["selectors"] = [_cel(f'device.attributes["{DEVICES}"].model == "big"')]
            if name == "ext":
                spec["extendedResourceName"] = CARD
            yield {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
        for name in self._names:
            if self._often(0.8):
                yield from self._slices(name)
        if self._often(0.3):
            yield self._slice(f"{self.of}-net", {"allNodes": True})
        for number in range(self._draw.randint(1, 5)):
            name = f"{self.of}-d{number}"
            self._claims.append(name)
            if self._often(0.95):
                yield {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": {"devices": self._request()}}

    def _slices(self, node: str) -> Iterator[Body]:
        """Those of a node; the devices of some are parts of whole ones."""
        where = {"nodeName": node}
        if self._parts and self._often(0.7):
            counters = [{"name": "whole", "counters": {"memory": {"value": self._pick(["40Gi", "80Gi"])}}}]
            pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
            yield {
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-sets"},
                "spec": {"driver": DEVICES, "pool": pool, "sharedCounters": counters} | where,
            }
            made = self._slice(node, where)
            made["spec"]["pool"] = pool
            for device in made["spec"]["devices"]:
                takes = {"memory": {"value": self._pick(["10Gi", "40Gi"])}}
                device["consumesCounters"] = [{"counterSet": "whole", "counters": takes}]
            yield made
        else:
            yield self._slice(node, where)

    def _slice(self, name: str, where: Body) -> Body:
        devices = [self._device(f"d{number}") for number in range(self._draw.randint(1, 4))]
        pool = {"name": name, "generation": 1, "resourceSliceCount": self._pick([1] * 9 + [2])}
        spec: Body = {"driver": DEVICES, "pool": pool, "devices": devices} | where
        if self._often(0.1):
            del spec[next(iter(where))]
            spec["perDeviceNodeSelection"] = True
            for device in devices:
                device["nodeName"] = self._pick(self._names)
        return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}

    def _device(self, name: str) -> Body:
        device: Body = {"name": name, "attributes": {"model": {"string": self._pick(["big", "small"])}}}
        if self._often(0.8):
            device["attributes"] |= {"rack": {"int": self._draw.randint(1, 2)}}
        if self._often(0.6):
            device["capacity"] = {"ram": {"value": self._pick(["8Gi", "16Gi"])}}
            if self._often(0.4):
                device["allowMultipleAllocations"] = not self._parts_alone
        if self._often(0.2) and not self._parts_alone:
            effect = self._pick(["NoSchedule", "NoExecute"])
            device["taints"] = [{"key": "d", "value": self._pick("12"), "effect": effect}]
        return device

    def _request(self) -> Body:
        requests: list[Body] = []
        for number in range(self._pick([1, 1, 1, 2])):
            if self._often(0.25):
                options = [{"name": f"o{each}"} | self._exactly(admin=False) for each in range(self._draw.randint(1, 3))]
                requests.append({"name": f"r{number}", "firstAvailable": options})
            else:
                requests.append({"name": f"r{number}", "exactly": self._exactly(admin=True)})
        found: Body = {"requests": requests}
        if self._often(0.25) and not self._parts_alone:
            kind = self._pick(["matchAttribute", "distinctAttribute"]) if self.newer else "matchAttribute"
            found["constraints"] = [{kind: f"{DEVICES}/{self._pick(['rack', 'model'])}"}]
        return found

    def _exactly(self, admin: bool) -> Body:
        made: Body = {"deviceClassName": self._pick(["any", "any", "any", "big", "none"] if self._often(0.3) else ["any"])}
        whole = self._often(0.15) and not self._parts_alone
        made |= {"allocationMode": "All"} if whole else {"allocationMode": "ExactCount", "count": self._pick([1, 1, 1, 2, 3])}
        if self._often(0.25):
            texts = [
                f'device.attributes["{DEVICES}"].rack == 1',
                f'device.capacity["{DEVICES}"].ram.compareTo(quantity("10Gi")) > 0',
                "true",
            ]
            texts.append(f'"rack" in device.attributes["{DEVICES}"] && device.attributes["{DEVICES}"].rack != 1')
            made["selectors"] = [_cel(self._pick(texts))]
        if self._often(0.25):
            made["tolerations"] = [
                {"key": "d", "operator": "Exists"}
                if self._often(0.5)
                else {"key": "d", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
            ]
        if self._often(0.2):
            made["capacity"] = {"requests": {"ram": self._pick(["2Gi", "6Gi", "12Gi"])}}
        if admin and self._often(0.1):
            made["adminAccess"] = True
        return made

    def _use_devices(self, spec: Body) -> None:
        cards = any(CARD in each["resources"].get("limits", ()) for each in (*spec["containers"], *spec.get("initContainers", ())))
        if self._claims and not cards and self._has("devices", 0.7):  # upstream never binds some pods with both
            names = self._some(self._claims, 1, 2)
            spec["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
            for container in spec["containers"]:
                if self._often(0.7):
                    container["resources"]["claims"] = [{"name": name} for name in names]


def _without(spec: Body, taken: set[tuple[str, int]]) -> None:
    """Each port of a node once: upstream forgets all of its users when one of them ends."""
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for port in container.pop("ports", ()):
            if (key := (port["protocol"], port["hostPort"])) not in taken:
                taken.add(key)
                container.setdefault("ports", []).append(port)


def _cel(text: str) -> Body:
    return {"cel": {"expression": text}}
