"""Pods that are copies of each other, of which what becomes of their spec is found out once."""

from pumice.cluster.apiserver import WriteOptions
from tests.apiserver.made import pod, store


def test_pods_of_one_spec_get_the_same_defaults_class_and_owners_of_fields_and_share_nothing() -> None:
    made = store()
    stated = {"schedulingGates": [{"name": "wait"}], "nodeSelector": {"disk": "ssd"}}
    pods = [made.create("pods", pod(name, **stated), "default", WriteOptions(manager="me", tracked=True)) for name in ("a", "b", "c")]
    first, second, third = pods
    assert first["spec"] == second["spec"] == third["spec"] and first["spec"]["terminationGracePeriodSeconds"] == 30
    assert first["status"] == third["status"] and third["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert third["status"]["qosClass"] == "BestEffort"
    fields = [each["metadata"]["managedFields"][0]["fieldsV1"] for each in pods]
    assert fields[0] == fields[1] == fields[2] and "f:nodeSelector" in fields[2]["f:spec"]
    parts = [each["spec"]["containers"][0] for each in pods]
    assert parts[0] is not parts[1] is not parts[2]


def test_a_field_that_no_pod_has_is_told_of_each_pod() -> None:
    made = store()
    for name in ("a", "b"):
        options = WriteOptions()
        assert "colour" not in made.create("pods", pod(name, colour="red"), "default", options)["spec"]
        assert options.warnings == ['unknown field "spec.colour"']
