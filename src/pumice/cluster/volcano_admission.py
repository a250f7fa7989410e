"""Volcano's webhooks without HTTP: its admission rules behind the name of its service, which its configurations call.

A refusal has the text of a webhook's refusal, and its code: 400, without a reason. The rules look objects up in the store.
"""

from functools import partial

from pumice.cluster.apiserver import AdmissionAttributes, StatusError
from pumice.cluster.apiserver.admission.webhooks import Verdict
from pumice.cluster.store_lister import StoreLister
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import HOOKS, SERVICE, ClientConfig, configuration


def serve_volcano_admission(lister: StoreLister, settings: admission.Settings = admission.DEFAULTS) -> None:
    """Answer the calls of Volcano's webhooks in this process, and create the configurations that make them, if they are missing."""
    store, config = lister.store, ClientConfig("volcano-system", SERVICE)
    store.webhooks.services[(config.namespace, config.service)] = partial(_volcano_admission, lister, settings)
    for hook in HOOKS.values():
        made = configuration(hook, config, b"")
        if store.find(hook.resource.resource, "", made["metadata"]["name"]) is None:
            store.create(hook.resource.resource, made)


def _volcano_admission(lister: StoreLister, settings: admission.Settings, path: str, review: AdmissionAttributes) -> Verdict:
    hook = HOOKS.get(path)
    if hook is None:
        return StatusError(500, "InternalError", f"Volcano's admission has no webhook at {path}")
    if hook.mutating:
        return admission.mutate(review.operation, review.obj, lister, settings)
    new = None if review.operation == admission.DELETE else review.obj
    problems = admission.validate(review.operation, new, review.old, lister, settings)
    if not problems:
        return None
    return StatusError(400, "", f'admission webhook "{hook.name}" denied the request: {"; ".join(map(str, problems))}')
