"""What RuntimeClasses and LimitRanges among files give to their pods, as admission would."""

from __future__ import annotations

from typing import Any

from pumice.api.core import LimitRange, RuntimeClass
from pumice.api.pod import Pod
from pumice.api.structs import convert, document
from pumice.inputs.cluster_from_files import complete

SCHEDULING = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [{"key": "a"}, {"key": "b"}]}
RUNTIME = {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": SCHEDULING}
RANGE = {
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {
        "limits": [{"type": "Container", "max": {"cpu": "4"}, "defaultRequest": {"memory": "1Gi"}}, {"type": "Pod", "max": {"cpu": "9"}}]
    },
}


def admitted(**metadata: str) -> dict[str, Any]:
    spec = {
        "runtimeClassName": "kata",
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    pod = convert({"metadata": {"name": "p", **metadata}, "spec": spec}, Pod)
    items = [("RuntimeClass", convert(RUNTIME, RuntimeClass)), ("LimitRange", convert(RANGE, LimitRange)), ("Pod", pod)]
    (made,) = [item for kind, item in complete(items) if kind == "Pod"]
    found: dict[str, Any] = document("Pod", made)["spec"]
    return found


def test_a_pod_gets_what_its_runtime_class_and_the_limit_range_of_its_namespace_give() -> None:
    spec = admitted()
    assert spec["nodeSelector"] == {"disk": "ssd", "sandbox": "yes"}
    assert spec["tolerations"] == [{"key": "a"}, {"key": "b"}]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "4"}, "requests": {"cpu": "1", "memory": "1Gi"}}


def test_a_pod_of_another_namespace_gets_no_limits() -> None:
    assert admitted(namespace="team")["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_a_pod_that_a_server_has_admitted_stays_as_it_is() -> None:
    spec = admitted(resourceVersion="7")
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
