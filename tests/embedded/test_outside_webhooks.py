"""What controllers write is shown to webhooks of other programs, and the controllers wait for their answers."""

from __future__ import annotations

from tests.apiserver.webhook_program import serving
from tests.embedded.cluster import DEPLOYMENTS, cluster, until

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def test_a_controller_waits_for_a_webhook_and_reports_only_its_refusal() -> None:
    with serving() as program, cluster("1x4cpu", speed=20) as api:
        api.create("/api/v1/namespaces", {"metadata": {"name": "test"}})
        api.create("/api/v1/namespaces/test/services", program.service())
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
        api.create(HOOKS, {"metadata": {"name": "hooks"}, "webhooks": [program.hook("/see", rule)]})
        program.answer = lambda path, request: {"allowed": len(program.asked) > 2, "status": {"message": "not yet"}}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        api.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        until(lambda: [pod for pod in api.pods(app="web") if pod["status"]["phase"] == "Running"])
        events = [one["message"] for one in api.items("/api/v1/namespaces/default/events") if one["reason"] == "FailedCreate"]
        assert events == ['Error creating: admission webhook "see.example.com" denied the request: not yet']
