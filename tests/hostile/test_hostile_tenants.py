"""Whatever one tenant writes, controllers and webhooks go on with what the others write."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.cluster.apiserver import StatusError
from pumice.controllers import admission
from pumice.live.webhooks import review
from tests.controllers.test_admission import cluster
from tests.embedded.cluster import Still
from tests.hostile.mutations import Object, examples, mutated
from tests.samples import times

GREAT = [10**9, 2**31 - 1, "50%", "9" * 30 + "%", "3", -1]
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
CONTAINER = {"name": "c", "image": "i", "ports": [{"containerPort": 1}], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
PODS = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
ONCE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}
CLAIM = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def of(api_version: str, kind: str, **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "odd", "annotations": {"x": "y"}}, "spec": spec}


INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 2, "backoffLimitPerIndex": 1, "maxFailedIndexes": 2}
WORKLOADS = [
    of("apps/v1", "Deployment", replicas=2, selector=SELECTOR, template=PODS, strategy=ROLLING, revisionHistoryLimit=3),
    of("apps/v1", "StatefulSet", replicas=2, selector=SELECTOR, template=PODS, updateStrategy=ROLLING, volumeClaimTemplates=[CLAIM]),
    of("apps/v1", "DaemonSet", selector=SELECTOR, template=PODS, updateStrategy=ROLLING),
    of("batch/v1", "Job", template=ONCE, backoffLimit=2, activeDeadlineSeconds=100, ttlSecondsAfterFinished=5, **INDEXED),
    of("batch/v1", "CronJob", schedule="* * * * *", startingDeadlineSeconds=10, jobTemplate={"spec": {"template": ONCE}}),
    of("policy/v1", "PodDisruptionBudget", minAvailable="50%", selector=SELECTOR),
    of("v1", "ResourceQuota", hard={"pods": "10"}, scopes=["NotTerminating"]),
    of("v1", "PersistentVolumeClaim", **CLAIM["spec"]),
    of("v1", "Pod", **PODS["spec"]) | {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
]
VOLCANOS = [each for each in examples() if each["kind"] in ("Job", "PodGroup", "JobFlow", "JobTemplate", "CronJob", "Queue", "HyperNode")]
TENANTS = WORKLOADS + [each for each in VOLCANOS if each["kind"] not in ("Queue", "HyperNode")]
GOOD = of("apps/v1", "Deployment", replicas=2, selector={"matchLabels": {"good": "yes"}})
GOOD["spec"]["template"] = {"metadata": {"labels": {"good": "yes"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def write(still: Still, odd: Object) -> None:
    """If it is taken."""
    kind = None
    if isinstance(odd.get("apiVersion"), str) and isinstance(odd.get("kind"), str):
        kind = still.store.kinds.of_object(odd["apiVersion"], odd["kind"])
    if kind is None or not kind.namespaced:
        return
    if isinstance(odd.get("metadata"), dict):
        odd["metadata"].pop("namespace", None)
    try:
        still.store.create(kind, odd, "tenant")
    except StatusError as error:
        assert 400 <= error.code < 500


def let_work(still: Still, rounds: int) -> None:
    """Not until all is done: who asks for a billion pods is never served."""
    for _ in range(rounds):
        for worker in (still.store.collector, *still.plane._workers):
            worker.step()


@settings(max_examples=times(7), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(mutated(TENANTS, GREAT), min_size=1, max_size=4))
def test_controllers_serve_the_others_and_stumble_over_nothing(caplog: pytest.LogCaptureFixture, odd: list[Object]) -> None:
    caplog.clear()
    still = Still()
    still.store.create("namespaces", {"metadata": {"name": "tenant"}})
    with caplog.at_level(logging.ERROR):
        for each in odd:
            write(still, json.loads(json.dumps(each)))
            let_work(still, 10)
        still.store.create("deployments.apps", GOOD, "default")
        let_work(still, 30)
    assert len([pod for pod in still.store.all("pods") if pod["metadata"]["namespace"] == "default"]) == 2
    assert not [record.message for record in caplog.records]


def headed(subject: Object) -> st.SearchStrategy[Object]:
    """Odd, but for what the API server reads itself before it asks."""
    head = {field: subject[field] for field in ("apiVersion", "kind", "metadata")}
    return mutated([subject], GREAT).map(lambda odd: odd | head)


@settings(max_examples=times(38), deadline=None)
@given(st.sampled_from(VOLCANOS).flatmap(headed), st.sampled_from([admission.CREATE, admission.UPDATE]), st.booleans())
def test_webhooks_answer_whatever_they_are_asked_about(odd: Object, operation: str, old: bool) -> None:
    asked = {"uid": "u", "operation": operation, "namespace": "tenant", "object": odd} | ({"oldObject": odd} if old else {})
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()
    try:
        found = review.read(body)
    except review.NotAReview:
        return
    world = cluster()
    review.mutated(found, review.patch(found, world, admission.DEFAULTS))
    review.judged(found, review.problems(found, world, admission.DEFAULTS))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"selector": {"matchExpressions": [{"operator": "In", "values": ["b"]}]}}, "spec.selector.matchExpressions[0].key"),
        ({"selector": {"matchExpressions": [{"key": "a"}]}}, "spec.selector.matchExpressions[0].operator"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "spec.selector.matchExpressions[0].values"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "spec.selector.matchExpressions[0].values",
        ),
        ({"strategy": {"rollingUpdate": {"maxSurge": "x"}}}, "spec.strategy.rollingUpdate.maxSurge"),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": "9" * 5000 + "%"}}}, "spec.strategy.rollingUpdate.maxUnavailable"),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": -1}}}, "spec.strategy.rollingUpdate.maxUnavailable"),
    ],
)
def test_what_a_controller_could_not_read_is_refused_with_its_field(change: Object, field: str) -> None:
    still = Still()
    with pytest.raises(StatusError) as caught:
        still.store.create("deployments.apps", WORKLOADS[0] | {"spec": WORKLOADS[0]["spec"] | change}, "default")
    assert caught.value.code == 422 and f"{field}: " in caught.value.message and len(caught.value.message) < 600
