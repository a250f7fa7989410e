"""Workloads whose pods are not made: controllers' events say what refused them, and a Job itself that it is suspended."""

from __future__ import annotations

import pytest

from bench.causes import TWO, batch_job, job, resource_quota
from bench.small_cluster import SmallCluster
from pumice.answers import whatif, why
from pumice.answers.not_made import take_in_refusals
from pumice.api.core import Event
from pumice.api.errors import InputError
from pumice.api.json_objects import Object
from pumice.api.structs import convert
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from tests.answers.test_not_admitted import made

LIMIT = {"type": "Container", "max": {"cpu": "1"}}
LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [LIMIT]}}


def web(cpu: str) -> Object:
    pod = {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def asked(cluster: SmallCluster) -> tuple[Cluster, Policy, float]:
    """The state as the commands read it: with the events of controllers."""
    cluster.settle()
    state = cluster.state
    take_in_refusals(state[0], [("Event", convert(each, Event)) for each in cluster.store.all("events")])
    return state


@pytest.mark.parametrize(
    ("subject", "refused"),
    [("job/default/waits", job("waits", 2, {"cpu": "2"})), ("deployment/web", web("2")), ("default/web", web("2"))],
)
def test_what_a_limit_range_refuses_is_told(subject: str, refused: Object) -> None:
    state = asked(made(*TWO, LIMITS, refused))
    answer = why(*state, subject, advise=True)
    assert answer.state == "waits"
    assert answer.line.startswith("its controller cannot create its pods: ")
    assert answer.line.endswith("must be less than or equal to cpu limit of 1")
    assert whatif(*state, subject).line == answer.line


def test_a_quota_that_refuses_all_pods_of_a_job_of_kubernetes_is_told_with_its_amounts() -> None:
    state = asked(made(*TWO, resource_quota(requests__cpu=1), batch_job("waits", 2, {"cpu": "2"}, "default", {})))
    line = why(*state, "job/waits").line
    assert "exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1" in line


def test_where_nothing_was_refused_nothing_is_told_of_it() -> None:
    state = asked(made(*TWO, web("2")))
    assert why(*state, "deployment/web").subject == "deployment/web"
    with pytest.raises(InputError, match="there is no job default/nobody"):
        why(*state, "deployment/nobody")


@pytest.mark.parametrize(("phase", "told"), [("Aborted", "is suspended"), ("Completed", "has ended"), ("Pending", "waits")])
def test_a_job_without_a_podgroup_says_in_which_phase_it_is(phase: str, told: str) -> None:
    cluster = made(*TWO)
    cluster.store.create(cluster.store.kinds.of_object("batch.volcano.sh/v1alpha1", "Job"), job("waits", 1, {"cpu": "2"}), "default")
    cluster.update_status(job("waits", 1, {"cpu": "2"}) | {"status": {"state": {"phase": phase}}})
    assert why(*cluster.state, "job/waits").state == told
