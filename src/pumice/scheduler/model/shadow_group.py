"""Shadow PodGroups, as kube-batch makes them inside the scheduler: every pod without a group gets one that only the scheduler knows.

Pods of one controller share a group. Its minimum is the pod's annotation; its status is never written.
"""

from pumice.api.annotations import SHADOW_MIN_MEMBER
from pumice.api.integers import integer
from pumice.api.meta import Metadata
from pumice.api.pod import Pod
from pumice.api.volcano import PodGroup, PodGroupSpec

MARK = "volcano/shadow-pod-group"


def shadow_group(pod: Pod) -> PodGroup:
    meta = pod.metadata
    owner = meta.controller
    namespace = meta.namespace or "default"
    name = f"shadow-{(owner.uid or owner.name) if owner else meta.uid or f'{namespace}-{meta.name}'}"
    minimum = (meta.annotations or {}).get(SHADOW_MIN_MEMBER, "")
    return PodGroup(
        Metadata(name=name, namespace=namespace, annotations={MARK: "true"}, creation_timestamp=meta.creation_timestamp),
        PodGroupSpec(min_member=max(0, integer(minimum, 1)), priority_class_name=pod.spec.priority_class_name),
    )
