"""Volcano's webhooks without HTTP: its admission rules as rules of the embedded API server.

A refusal reads as one of a webhook does, and has its code: 400, no reason. What the rules look up, they find in the store.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api import kinds
from pumice.api.meta import DEFAULT_QUEUE, ROOT_QUEUE
from pumice.cluster.apiserver import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule, Store
from pumice.cluster.apiserver.admission import Mutate, Validate
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.store_lister import StoreLister
from pumice.controllers import admission

RESOURCES = {
    kinds.POD: ("pods", "pod"),
    kinds.QUEUE: ("queues.scheduling.volcano.sh", "queue"),
    kinds.POD_GROUP: ("podgroups.scheduling.volcano.sh", "podgroup"),
    kinds.JOB: ("jobs.batch.volcano.sh", "job"),
    kinds.HYPER_NODE: ("hypernodes.topology.volcano.sh", "hypernode"),
    kinds.JOB_FLOW: ("jobflows.flow.volcano.sh", "jobflow"),
    kinds.CRON_JOB: ("cronjobs.batch.volcano.sh", "cronjob"),
}  #: by kind: the resource, and the word in the name of its webhook


def volcano_rules(lister: StoreLister, settings: admission.Settings = admission.DEFAULTS) -> Iterable[AdmissionRule]:
    """For `Store.admission.add`. Mutations of all kinds come before validations, as the server does it."""
    for kind, rules in admission.RULES.items():
        resource, word = RESOURCES[kind]
        if rules.mutate is not None:
            yield AdmissionRule((resource,), (admission.CREATE,), mutate=_mutation(lister, settings))
        if rules.validate is not None:
            yield AdmissionRule((resource,), tuple(sorted(rules.operations)), validate=_validation(lister, settings, word))


def _mutation(lister: StoreLister, settings: admission.Settings) -> Mutate:
    def mutate(review: AdmissionAttributes, _: AdmissionLister) -> Object:
        return admission.mutate(review.operation, review.obj, lister, settings)

    return mutate


def _validation(lister: StoreLister, settings: admission.Settings, word: str) -> Validate:
    def validate(review: AdmissionAttributes, _: AdmissionLister) -> AdmissionRefusal | None:
        new = None if review.operation == admission.DELETE else review.obj
        problems = admission.validate(review.operation, new, review.old, lister, settings)
        if not problems:
            return None
        found = "; ".join(map(str, problems))
        return AdmissionRefusal(f'admission webhook "validate{word}.volcano.sh" denied the request: {found}', 400, "")

    return validate


def default_queues(store: Store) -> None:
    """The queues that Volcano makes when it starts."""
    for name, spec in ((ROOT_QUEUE, {"weight": 1, "reclaimable": False}), (DEFAULT_QUEUE, {"weight": 1, "reclaimable": True})):
        if store.find("queues.scheduling.volcano.sh", "", name) is None:
            queue: Object = {"metadata": {"name": name}, "spec": spec}
            store.create("queues.scheduling.volcano.sh", queue)
